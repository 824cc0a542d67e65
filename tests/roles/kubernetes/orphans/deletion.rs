//! `--delete`: the resources that it deletes, and the flags that it requires.

use crate::kubernetes::orphans::fixture::{FOUND, Fixture, NOTHING};
use crate::text::{assert_failed, assert_has};

#[tokio::test]
async fn only_leaked_resources_of_the_cluster_are_deleted() {
    let fixture = Fixture::new().await;
    let [used, lost, young, attached, released] = fixture.disks().await;
    let foreign = fixture.disk(Some("c-other")).await;
    let snapshot = fixture.snapshot(&used).await;
    fixture.volume("used", &used, "Bound");
    fixture.volume("released", &released, "Released");
    fixture.attach(&attached, "i-one").await;
    for (id, older_than, reason) in [
        (&used, "0s", "an object in Kubernetes refers to it"),
        (&released, "0s", "an object in Kubernetes refers to it"),
        (&attached, "0s", "it is attached to i-one"),
        (&young, "30d", "--older-than is 30days"),
        (&foreign, "0s", "it belongs to cluster ID c-other"),
        (&"d-gone".to_owned(), "0s", "it does not exist"),
    ] {
        let (code, result, found) = fixture.delete(id, older_than).await;
        assert_eq!((code, result.as_str()), (FOUND, "refused"), "{id}: {found}");
        assert_has(&found, &[reason]);
        assert!(id == "d-gone" || fixture.exists(id).await, "{id}");
    }
    assert_eq!(fixture.kit.fake.count("DeleteDisk").await, 0);
    for id in [&lost, &snapshot] {
        let (code, result, reason) = fixture.delete(id, "0s").await;
        assert_eq!((code, result.as_str(), reason.as_str()), (NOTHING, "deleted", ""));
    }
    assert!(!fixture.exists(&lost).await);
    assert_eq!(fixture.kit.fake.count("DeleteDisk").await, 1);
    assert_eq!(fixture.kit.fake.count("DeleteSnapshot").await, 1);
}

#[tokio::test]
async fn deletion_needs_an_age_a_confirmation_and_ids() {
    let fixture = Fixture::new().await;
    let [used, lost] = fixture.disks().await;
    fixture.volume("used", &used, "Bound");
    for (flags, named) in [
        (vec!["--delete", lost.as_str(), "--yes"], "--older-than"),
        (vec!["--delete", lost.as_str(), "--older-than=0s"], "set --yes"),
        (vec!["--older-than=0s"], "--delete"),
        (vec!["--delete", "i-one", "--older-than=0s", "--yes"], "\"i-one\""),
    ] {
        let ended = fixture.run(&flags).await;
        assert_failed(&ended, 64, &[named]);
        assert_eq!(ended.stdout, "", "{flags:?}");
    }
    assert!(fixture.exists(&lost).await);
}

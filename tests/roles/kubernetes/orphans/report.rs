//! What is reported in each class, what is never reported, and when the report is an error.

use serde_json::json;

use crate::kubernetes::orphans::fixture::{ATTACHMENTS, CONTENTS, FOUND, Fixture, GROUPS, NOTHING, PVS, UNAVAILABLE};

fn row(class: &str, id: &str) -> (String, String) {
    (class.to_owned(), id.to_owned())
}

#[tokio::test]
async fn each_class_is_reported_and_what_is_used_is_not() {
    let fixture = Fixture::new().await;
    let (used, lost, released, attached) = (
        fixture.disk(Some("c-test")).await,
        fixture.disk(Some("c-test")).await,
        fixture.disk(Some("c-test")).await,
        fixture.disk(Some("c-test")).await,
    );
    let (foreign, untagged) = (fixture.disk(Some("c-other")).await, fixture.disk(None).await);
    let (kept, leaked) = (fixture.snapshot(&used).await, fixture.snapshot(&used).await);
    fixture.volume("used", &used, "Bound");
    fixture.volume("released", &released, "Released");
    fixture.volume("attached", &attached, "Bound");
    fixture.volume("foreign", &foreign, "Bound");
    fixture.volume("untagged", &untagged, "Bound");
    fixture.volume("gone", "d-gone", "Bound");
    fixture.content("kept", &kept);
    fixture.content("gone", "s-gone");
    fixture.attach(&used, "i-one").await;
    fixture.attach(&attached, "i-two").await;
    fixture.kit.node("one", None, Some("i-one"));
    fixture.kit.node("two", None, Some("i-two"));
    fixture.attachment("used", "one");
    fixture.attachment("attached", "one");

    let mut found = fixture.findings().await;
    let mut expected = vec![
        row("leaked", &lost),
        row("leaked", &leaked),
        row("released", &released),
        row("attached-without-va", &attached),
        row("foreign", &foreign),
        row("foreign", &untagged),
        row("missing", "d-gone"),
        row("missing", "s-gone"),
    ];
    found.sort();
    expected.sort();
    assert_eq!(found, expected);

    let table = fixture.run(&["--min-age=0s", "--class=released,leaked"]).await;
    assert_eq!(table.code, FOUND);
    for part in [&lost, "team/claim-released", "20 GiB", "cn-beijing-b"] {
        assert!(table.stdout.contains(part), "{part}: {}", table.stdout);
    }
    assert!(!table.stdout.contains("foreign"), "{}", table.stdout);
}

#[tokio::test]
async fn resources_in_use_and_young_ones_are_no_orphans() {
    let fixture = Fixture::new().await;
    let used = fixture.disk(Some("c-test")).await;
    fixture.volume("used", &used, "Bound");
    assert_eq!(fixture.findings().await, []);
    fixture.disk(Some("c-test")).await;
    let ended = fixture.run(&[]).await;
    assert_eq!(ended.code, NOTHING, "{ended:?}");
    assert!(
        ended.stdout.contains("1 unreferenced resources are younger"),
        "{}",
        ended.stdout
    );
}

#[tokio::test]
async fn all_pages_of_a_list_are_read() {
    let fixture = Fixture::new().await;
    fixture.kit.api.change(|world| world.page = Some(2));
    for name in ["a", "b", "c", "d", "e"] {
        let disk = fixture.disk(Some("c-test")).await;
        fixture.volume(name, &disk, "Bound");
    }
    assert_eq!(fixture.findings().await, []);
    assert_eq!(fixture.kit.api.count(&format!("GET {PVS}")), 6);
}

#[tokio::test]
async fn failed_list_of_kubernetes_is_an_error_and_no_disk_is_reported() {
    let fixture = Fixture::new().await;
    let used = fixture.disk(Some("c-test")).await;
    fixture.disk(Some("c-test")).await;
    fixture.volume("used", &used, "Bound");
    fixture.snapshot(&used).await;
    for place in [PVS, ATTACHMENTS, CONTENTS, "/apis/storage.k8s.io/v1/csinodes", GROUPS] {
        let forbidden = format!("GET {place}");
        fixture.kit.api.change(|world| world.forbidden = vec![forbidden]);
        let ended = fixture.run(&["--min-age=0s"]).await;
        assert_eq!(ended.code, UNAVAILABLE, "{place}: {ended:?}");
        assert_eq!(ended.stdout, "", "{place}");
        for text in ["cannot list", "Grant the user of the kubeconfig this right"] {
            assert!(ended.stderr.contains(text), "{place}: {}", ended.stderr);
        }
    }
    // If the CRD is not installed, contents cannot exist.
    fixture.kit.api.change(|world| {
        world.forbidden.clear();
        world.store.put(GROUPS, json!({"groups": []}));
    });
    assert_eq!(fixture.findings().await.len(), 2);
}

#[tokio::test]
async fn contents_of_any_version_protect_and_a_group_without_them_is_an_error() {
    let fixture = Fixture::new().await;
    let used = fixture.disk(Some("c-test")).await;
    fixture.volume("used", &used, "Bound");
    let snapshot = fixture.snapshot(&used).await;
    fixture.content("content", &snapshot);
    // Another CRD of the group has a newer version.
    fixture.serve_versions(&["v2", "v1"]);
    assert_eq!(fixture.findings().await, []);
    fixture.serve_versions(&["v2"]);
    let ended = fixture.run(&["--min-age=0s"]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (UNAVAILABLE, ""));
    let reason = "has the group snapshot.storage.k8s.io without them. Install or upgrade all CRDs of snapshots";
    assert!(ended.stderr.contains(reason), "{}", ended.stderr);
}

#[tokio::test]
async fn empty_list_of_the_cloud_is_an_error() {
    let fixture = Fixture::new().await;
    let used = fixture.disk(Some("c-test")).await;
    fixture.volume("used", &used, "Bound");
    fixture.kit.fake.configure(json!({"denied": ["DescribeDisks"]})).await;
    let ended = fixture.run(&["--min-age=0s"]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (UNAVAILABLE, ""));
    assert!(ended.stderr.contains("ecs:DescribeDisks"), "{}", ended.stderr);
    fixture
        .kit
        .fake
        .configure(json!({"denied": ["DescribeSnapshots"]}))
        .await;
    let (code, document) = fixture.report(&[]).await;
    assert_eq!(code, NOTHING);
    let note = document["notes"][0].as_str().unwrap();
    assert!(note.contains("ecs:DescribeSnapshots"), "{note}");
}

#[tokio::test]
async fn api_server_of_another_cluster_is_an_error() {
    let fixture = Fixture::new().await;
    let (disk, other) = (fixture.disk(Some("c-test")).await, fixture.disk(Some("c-other")).await);
    fixture.volume("other", &other, "Bound");
    let ended = fixture.run(&["--min-age=0s"]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (UNAVAILABLE, ""));
    assert!(
        ended.stderr.contains("the kubeconfig is of another cluster"),
        "{}",
        ended.stderr
    );
    let (_, document) = fixture.report(&["--allow-unreferenced"]).await;
    assert_eq!(document["items"][0]["id"], disk.as_str());
}

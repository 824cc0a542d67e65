//! The resources of each class, those that are never reported, and errors.

use serde_json::json;

use crate::kubernetes::orphans::fixture::{ATTACHMENTS, CONTENTS, FOUND, Fixture, GROUPS, NOTHING, PVS, UNAVAILABLE};
use crate::text::{assert_failed, assert_has, assert_lacks};

/// Asserts that a run prints no report, but an error with these parts.
async fn assert_unavailable(fixture: &Fixture, parts: &[&str]) {
    let ended = fixture.run(&["--min-age=0s"]).await;
    assert_failed(&ended, UNAVAILABLE, parts);
    assert_eq!(ended.stdout, "");
}

fn row(class: &str, id: &str) -> (String, String) {
    (class.to_owned(), id.to_owned())
}

#[tokio::test]
async fn each_class_is_reported_and_used_resources_are_not() {
    let fixture = Fixture::new().await;
    let [used, lost, released, attached] = fixture.disks().await;
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
    assert_has(&table.stdout, &[&lost, "team/claim-released", "20 GiB", "cn-beijing-b"]);
    assert_lacks(&table.stdout, &["foreign"]);
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
    assert_has(&ended.stdout, &["1 unreferenced resources are younger"]);
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
    for path in [PVS, ATTACHMENTS, CONTENTS, "/apis/storage.k8s.io/v1/csinodes", GROUPS] {
        fixture.kit.forbid(&[&format!("GET {path}")]);
        let advice = "Grant the user of the kubeconfig this right";
        assert_unavailable(&fixture, &["cannot list", advice]).await;
    }
    // If the CRD is not installed, contents cannot exist.
    fixture.kit.forbid(&[]);
    fixture.kit.put(GROUPS, json!({"groups": []}));
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
    let reason = "has the group snapshot.storage.k8s.io without them. Install or upgrade all CRDs of snapshots";
    assert_unavailable(&fixture, &[reason]).await;
}

#[tokio::test]
async fn empty_list_of_the_cloud_is_an_error() {
    let fixture = Fixture::new().await;
    let used = fixture.disk(Some("c-test")).await;
    fixture.volume("used", &used, "Bound");
    fixture.kit.fake.configure(json!({"denied": ["DescribeDisks"]})).await;
    assert_unavailable(&fixture, &["ecs:DescribeDisks"]).await;
    let denied = json!({"denied": ["DescribeSnapshots"]});
    fixture.kit.fake.configure(denied).await;
    let (code, document) = fixture.report(&[]).await;
    assert_eq!(code, NOTHING);
    assert_has(document["notes"][0].as_str().unwrap(), &["ecs:DescribeSnapshots"]);
}

#[tokio::test]
async fn api_server_of_another_cluster_is_an_error() {
    let fixture = Fixture::new().await;
    let (disk, other) = (fixture.disk(Some("c-test")).await, fixture.disk(Some("c-other")).await);
    fixture.volume("other", &other, "Bound");
    assert_unavailable(&fixture, &["the kubeconfig is of another cluster"]).await;
    let (_, document) = fixture.report(&["--allow-unreferenced"]).await;
    assert_eq!(document["items"][0]["id"], disk.as_str());
}

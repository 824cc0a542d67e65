//! `explain` describes classes and claims, without a cloud and with the stock of one.

use std::path::PathBuf;

use serde_json::Value;

use crate::common::fake::Fake;
use crate::common::process::{Ended, diskplugin};
use crate::monitoring::files::files_below;
use crate::running::NO_METADATA;
use crate::text::{assert_failed, assert_has, assert_succeeded};

fn path(name: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join(name).display().to_string()
}

fn examples() -> Vec<String> {
    let files = files_below("examples", "yaml");
    files.iter().map(|path| path.display().to_string()).collect()
}

async fn explain(flags: &[&str], files: &[&str]) -> Ended {
    diskplugin(["explain", "--output=json"])
        .args(flags)
        .args(files)
        .ended()
        .await
}

fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

fn object<'a>(explanation: &'a Value, name: &str) -> &'a Value {
    let objects = explanation["objects"].as_array().unwrap();
    let found = objects.iter().find(|object| object["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {explanation}"))
}

fn problems(explanation: &Value, name: &str) -> Vec<(String, String)> {
    let problems = object(explanation, name)["problems"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let both = |problem: &Value| (text(&problem["field"]), text(&problem["message"]));
    problems.iter().map(both).collect()
}

#[tokio::test]
async fn every_example_is_accepted() {
    let files = examples();
    let ended = explain(&[], &files.iter().map(String::as_str).collect::<Vec<_>>()).await;
    assert_succeeded(&ended);
    let explanation = json(&ended);
    for object in explanation["objects"].as_array().unwrap() {
        let kind = object["kind"].as_str().unwrap();
        let is_class = kind.ends_with("Class");
        // Nothing is created for claims of existing volumes.
        let is_static = object["skipped"].as_str().is_some_and(|why| why.contains("volumeName"));
        let is_new = kind == "PersistentVolumeClaim" && !is_static;
        let expected = if is_class || is_new { "accepted" } else { "skipped" };
        assert_eq!(object["result"], expected, "{object}");
        let creates = kind == "StorageClass" || is_new;
        let candidates = object["candidates"].as_array().unwrap();
        assert_eq!(creates, !candidates.is_empty(), "{object}");
    }
}

#[tokio::test]
async fn sizes_levels_and_performance_are_those_of_the_claim() {
    let files = ["storageclass", "expansion", "volumeattributesclass"];
    let files = files.map(|name| path(&format!("examples/{name}.yaml")));
    let ended = explain(&["--size=35.5Gi"], &files.each_ref().map(String::as_str)).await;
    let explanation = json(&ended);
    let fast = &object(&explanation, "disk-fast")["candidates"];
    assert_eq!(fast[0]["level"], "PL1");
    assert_eq!(fast[0]["sizeGiB"], 36);
    assert_eq!(fast[0]["performance"]["readIops"], 3600);
    assert_eq!(fast[0]["performance"]["writeMBps"], 138.0);
    assert_eq!(fast[1]["category"], "cloud_auto");
    let auto = &object(&explanation, "disk-auto")["candidates"][0];
    assert_eq!(auto["provisionedIops"], 1000);
    assert_eq!(auto["bursting"], true);
    // The claim requests 500 GiB, and its VolumeAttributesClass PL2.
    let claim = &object(&explanation, "data")["candidates"][0];
    assert_eq!(claim["level"], "PL2");
    assert_eq!(claim["sizeGiB"], 500);
    for change in object(&explanation, "essd-pl2")["changes"].as_array().unwrap() {
        assert_has(change["rejection"].as_str().unwrap(), &["461"]);
    }
}

#[tokio::test]
async fn every_problem_of_every_object_is_reported_with_its_field() {
    let file = path("tests/data/explain/invalid.yaml");
    let ended = explain(&[], &[&file]).await;
    assert_failed(&ended, 1, &["7 of 9 objects would be rejected"]);
    let explanation = json(&ended);
    // Object, field, and a part of the message.
    let expected = "
every-mistake parameters.encrypted: not a string
every-mistake parameters.diskTags/acs:team: reserves keys
every-mistake parameters.blockSize: allowed: a power of two
every-mistake parameters.fsTyp: unknown parameter \"fsTyp\"
every-mistake parameters.performanceLevel: allowed: a comma-separated list of PL0
every-mistake parameters.type: allowed: available, or
every-mistake parameters.kmsKeyId: requires \"encrypted\"
every-mistake mountOptions[1]: \"nobarrier\" is refused
shared allowedTopologies: \"topology.kubernetes.io/zone\" is required
too-large spec.accessModes[0]: not supported for filesystems
larger size: no size from 5 GiB to 2000 GiB
no-such-level parameters.performanceLevel: allowed: PL0, PL1, PL2, PL3
no-such-level parameters.zoneId: unknown mutable parameter
forever parameters.retentionDays: from 1 to 65536
forever parameters.snapshotType: unknown parameter
group parameters.retentionDays: unknown parameter
";
    let expected: Vec<_> = expected
        .trim()
        .lines()
        .map(|row| row.split_once(' ').unwrap())
        .collect();
    for (name, _) in &expected {
        let found = problems(&explanation, name);
        let of_object: Vec<_> = expected.iter().filter(|(other, _)| other == name).collect();
        assert_eq!(found.len(), of_object.len(), "{name}: {found:#?}");
        for ((field, message), (_, problem)) in found.iter().zip(of_object) {
            let (expected, part) = problem.split_once(": ").unwrap();
            assert!(field == expected && message.contains(part), "{name}: {found:#?}");
        }
    }
    assert_eq!(object(&explanation, "another")["result"], "skipped");
}

#[tokio::test]
async fn classes_of_the_vendors_driver_are_explained_as_classes_of_this_one() {
    let dir = tempfile::tempdir().unwrap();
    let class = "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: old}, parameters: {omitFsck: x}, \
                 provisioner: diskplugin.csi.alibabacloud.com}";
    let file = dir.path().join("class.yaml");
    std::fs::write(&file, class).unwrap();
    let ended = diskplugin(["explain", file.to_str().unwrap()]).ended().await;
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_has(
        &ended.stdout,
        &["StorageClass old: REJECTED", "unknown parameter \"omitFsck\""],
    );
}

#[tokio::test]
async fn unusable_files_are_invalid_settings_and_are_reported_together() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let files = [
        write("syntax.yaml", "a: [1"),
        write("list.yaml", "- 1"),
        write("empty.yaml", "---\n"),
        dir.path().join("missing.yaml").display().to_string(),
    ];
    let files = files.each_ref().map(String::as_str);
    assert_failed(&explain(&[], &files).await, 64, &files);
    assert_failed(&explain(&["--size=big"], &["-"]).await, 64, &["--size"]);
}

#[tokio::test]
async fn live_shows_zones_and_categories_in_the_order_of_their_stock() {
    let fake = Fake::start(&["--out-of-stock=cn-beijing-c/cloud_essd"]).await;
    let classes = path("examples/topology/topology.yaml");
    let url = format!("--ecs-endpoint={}", fake.url);
    let live = [
        "explain",
        "--output=json",
        "--live",
        "--region=cn-beijing",
        &url,
        &classes,
    ];
    let start = diskplugin(live).args([path("examples/storageclass.yaml")]).keys();
    let ended = start.ended().await;
    assert_succeeded(&ended);
    let explanation = json(&ended);
    let order = |name: &str| {
        let candidates = object(&explanation, name)["candidates"].as_array().unwrap();
        let one = |of: &Value| (of["zone"].as_str().map(str::to_owned), of["inStock"].as_bool());
        candidates.iter().map(one).collect::<Vec<_>>()
    };
    let zone = |name: &str, stock| (Some(name.to_owned()), Some(stock));
    let both = [zone("cn-beijing-a", true), zone("cn-beijing-c", false)];
    assert_eq!(order("topology"), both);
    // The class restricts no zone: all zones of the region, those out of stock last.
    assert_eq!(order("disk-essd").last(), Some(&zone("cn-beijing-c", false)));
    assert_eq!(order("disk-regional"), [(None, Some(true))]);
    for call in fake.calls().await {
        assert_eq!(call["action"], "DescribeAvailableResource", "{call}");
    }
    // Without credentials nothing is shown.
    let ended = diskplugin(live).args([NO_METADATA]).ended().await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{}", ended.stderr);
}

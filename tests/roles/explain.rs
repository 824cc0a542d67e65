//! `explain`: what classes and claims do, without a cloud and with the stock of one.

use std::path::PathBuf;

use serde_json::Value;

use crate::common::fake::{Fake, KEY, SECRET};
use crate::common::process::{Ended, diskplugin};

fn path(name: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join(name).display().to_string()
}

fn examples() -> Vec<String> {
    let mut folders = vec![PathBuf::from(path("examples"))];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "yaml") {
                files.push(path.display().to_string());
            }
        }
    }
    files.sort();
    files
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
    let mut line = vec!["explain".to_owned(), "--output=json".to_owned()];
    line.extend(examples());
    let ended = diskplugin(line).ended().await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let explanation = json(&ended);
    for object in explanation["objects"].as_array().unwrap() {
        let kind = object["kind"].as_str().unwrap();
        let is_class = kind.ends_with("Class");
        // Nothing is created for claims of existing volumes.
        let is_static = object["skipped"].as_str().is_some_and(|why| why.contains("volumeName"));
        if is_class || kind == "PersistentVolumeClaim" && !is_static {
            assert_eq!(object["result"], "accepted", "{object}");
        } else {
            assert_eq!(object["result"], "skipped", "{object}");
        }
        let creates = kind == "StorageClass" || kind == "PersistentVolumeClaim" && !is_static;
        let candidates = object["candidates"].as_array().unwrap();
        assert_eq!(creates, !candidates.is_empty(), "{object}");
    }
}

#[tokio::test]
async fn sizes_levels_and_performance_are_those_of_the_claim() {
    let (classes, claim) = (path("examples/storageclass.yaml"), path("examples/expansion.yaml"));
    let attributes = path("examples/volumeattributesclass.yaml");
    let line = [
        "explain",
        "--output=json",
        "--size=35.5Gi",
        &classes,
        &claim,
        &attributes,
    ];
    let ended = diskplugin(line).ended().await;
    let explanation = json(&ended);
    let fast = &object(&explanation, "disk-fast")["candidates"];
    assert_eq!(fast[0]["level"], "PL1");
    assert_eq!(fast[0]["sizeGiB"], 36);
    assert_eq!(fast[0]["performance"]["readIops"], 3600);
    assert_eq!(fast[0]["performance"]["writeMBps"], 138.0);
    assert_eq!(fast[1]["category"], "cloud_auto");
    let auto = &object(&explanation, "disk-auto")["candidates"][0];
    assert_eq!(
        (&auto["provisionedIops"], &auto["bursting"]),
        (&1000.into(), &true.into())
    );
    // Its VolumeAttributesClass asks for PL2, its size is 500 GiB.
    let claim = &object(&explanation, "data")["candidates"][0];
    assert_eq!((&claim["level"], &claim["sizeGiB"]), (&"PL2".into(), &500.into()));
    let changes = object(&explanation, "essd-pl2")["changes"].as_array().unwrap();
    assert!(
        changes
            .iter()
            .all(|of| { of["rejection"].as_str().is_some_and(|of| of.contains("461")) })
    );
}

#[tokio::test]
async fn every_problem_of_every_object_is_reported_with_its_field() {
    let file = path("tests/data/explain/invalid.yaml");
    let ended = diskplugin(["explain", "--output=json", &file]).ended().await;
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("7 of 9 objects would be rejected"),
        "{}",
        ended.stderr
    );
    let explanation = json(&ended);
    let expected: [(&str, &[(&str, &str)]); 7] = [
        (
            "every-mistake",
            &[
                ("parameters.encrypted", "not a string"),
                ("parameters.diskTags/acs:team", "reserves keys"),
                ("parameters.blockSize", "allowed: a power of two"),
                ("parameters.fsTyp", "unknown parameter \"fsTyp\""),
                ("parameters.performanceLevel", "allowed: a comma-separated list of PL0"),
                ("parameters.type", "allowed: available, or"),
                ("parameters.kmsKeyId", "requires \"encrypted\""),
                ("mountOptions[1]", "\"nobarrier\" is refused"),
            ],
        ),
        (
            "shared",
            &[("allowedTopologies", "\"topology.kubernetes.io/zone\" is required")],
        ),
        ("too-large", &[("spec.accessModes[0]", "not supported for filesystems")]),
        ("larger", &[("size", "no size from 5 GiB to 2000 GiB")]),
        (
            "no-such-level",
            &[
                ("parameters.performanceLevel", "allowed: PL0, PL1, PL2, PL3"),
                ("parameters.zoneId", "unknown mutable parameter"),
            ],
        ),
        (
            "forever",
            &[
                ("parameters.retentionDays", "from 1 to 65536"),
                ("parameters.snapshotType", "unknown parameter"),
            ],
        ),
        ("group", &[("parameters.retentionDays", "unknown parameter")]),
    ];
    for (name, expected) in expected {
        let found = problems(&explanation, name);
        assert_eq!(found.len(), expected.len(), "{name}: {found:#?}");
        for ((field, message), (wanted, text)) in found.iter().zip(expected) {
            assert!(field == wanted && message.contains(text), "{name}: {found:#?}");
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
    for text in ["StorageClass old: REJECTED", "unknown parameter \"omitFsck\""] {
        assert!(ended.stdout.contains(text), "no {text:?}: {}", ended.stdout);
    }
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
    let mut line = vec!["explain".to_owned()];
    line.extend(files.clone());
    let ended = diskplugin(line).ended().await;
    assert_eq!(ended.code, Some(64), "{}", ended.stderr);
    for file in files {
        assert!(ended.stderr.contains(&file), "{file}: {}", ended.stderr);
    }
    let ended = diskplugin(["explain", "--size=big", "-"]).ended().await;
    assert_eq!(ended.code, Some(64), "{}", ended.stderr);
}

#[tokio::test]
async fn live_shows_zones_and_categories_in_the_order_of_their_stock() {
    let fake = Fake::start(&["--out-of-stock=cn-beijing-c/cloud_essd"]).await;
    let classes = path("examples/topology/topology.yaml");
    let start = diskplugin([
        "explain",
        "--output=json",
        "--live",
        "--region=cn-beijing",
        &format!("--ecs-endpoint={}", fake.url),
        &classes,
        &path("examples/storageclass.yaml"),
    ]);
    let start = start.env("ACCESS_KEY_ID", KEY).env("ACCESS_KEY_SECRET", SECRET);
    let ended = start.ended().await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
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
    let calls = fake.calls().await;
    assert!(
        calls.iter().all(|call| call["action"] == "DescribeAvailableResource"),
        "{calls:?}"
    );
    // Without credentials nothing is shown.
    let ended = diskplugin([
        "explain",
        "--live",
        "--region=cn-beijing",
        "--metadata-endpoint=http://127.0.0.1:9",
        &format!("--ecs-endpoint={}", fake.url),
        &classes,
    ]);
    let ended = ended.ended().await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{}", ended.stderr);
    assert!(!ended.stderr.contains(SECRET));
}

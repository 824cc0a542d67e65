//! Modification of disks: category, performance level, provisioned IOPS, bursting and tags.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use diskplugin::cloud::{CreateDisk, EcsApi};
use diskplugin::disk::FailureKind;
use diskplugin::model::{
    Category, Change, ClientToken, DiskId, Failure, Gib, PerformanceLevel, Tags,
};

use crate::kit::{Setup, minutes, node_one, seconds, text, zone};

fn category_change(category: Category) -> Change {
    Change {
        category: Some(category),
        ..Change::default()
    }
}

fn tags(pairs: &[(&str, &str)]) -> Tags {
    let owned = |(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned());
    pairs.iter().map(owned).collect()
}

/// Every property of an AutoPL disk that can be modified.
fn full_change() -> Change {
    Change {
        category: Some(Category::CloudAuto),
        provisioned_iops: Some(1000),
        bursting: Some(true),
        tags: tags(&[("team", "blue")]),
        ..Change::default()
    }
}

/// The current category, performance level, provisioned IOPS and bursting of the disk.
fn properties(setup: &Setup, disk: &DiskId) -> (String, Value, u64, bool) {
    let row = setup.row(disk);
    (
        row["category"].as_str().unwrap().to_owned(),
        row["level"].clone(),
        row["provisioned_iops"].as_u64().unwrap(),
        row["bursting"].as_bool().unwrap(),
    )
}

/// The properties after [`full_change`].
fn changed_properties() -> (String, Value, u64, bool) {
    ("cloud_auto".to_owned(), Value::Null, 1000, true)
}

async fn disk_of(setup: &Setup, category: Category, size: u32) -> DiskId {
    let request = CreateDisk {
        zone: Some(zone("a")),
        category,
        performance_level: None,
        provisioned_iops: None,
        bursting: false,
        multi_attach: false,
        resource_group: None,
        size: Gib(size),
        name: "external".to_owned(),
        snapshot: None,
        encrypted: false,
        kms_key: None,
        tags: Tags::new(),
        token: ClientToken::derive("test", ["external"]),
    };
    setup
        .cloud
        .ecs()
        .create_disk(minutes(1), &request)
        .await
        .unwrap()
}

async fn modify(setup: &Setup, disk: &DiskId, change: &Change) {
    let modified = setup.disks.modifier.modify(minutes(1), disk, change).await;
    modified.unwrap_or_else(|error| panic!("modify: {}", text(&error)));
}

/// Number of calls that change the disk, without dry runs.
fn writes(setup: &Setup) -> u64 {
    let calls = setup.cloud.calls().into_iter();
    let dry_runs = calls
        .filter(|call| call.params.contains_key("DryRun"))
        .count();
    setup.calls("ModifyDiskSpec") - u64::try_from(dry_runs).unwrap()
        + setup.calls("ModifyDiskAttribute")
        + setup.calls("TagResources")
}

#[tokio::test(start_paused = true)]
async fn modify_applies_the_whole_change_and_a_repeat_writes_nothing() {
    let setup = Setup::new(&[]);
    setup.configure(&json!({"delays": {"modify": "30s"}}));
    let disk = setup.disk("pvc-1").await;
    let started = Instant::now();
    modify(&setup, &disk, &full_change()).await;
    assert!(started.elapsed() >= Duration::from_secs(30));
    assert_eq!(properties(&setup, &disk), changed_properties());
    assert_eq!(setup.row(&disk)["tags"]["team"], "blue");
    assert_eq!(writes(&setup), 3);
    // Longer than any staleness of a read.
    tokio::time::sleep(Duration::from_secs(5)).await;
    setup.cloud.clear_calls();
    modify(&setup, &disk, &full_change()).await;
    let calls: Vec<_> = setup.cloud.calls().into_iter().map(|c| c.action).collect();
    assert_eq!(calls, ["DescribeDisks"]);
}

#[tokio::test(start_paused = true)]
async fn a_performance_level_change_completes_without_polling_tasks() {
    let setup = Setup::new(&["--stale=2s"]);
    let disk = disk_of(&setup, Category::CloudEssd, 500).await;
    let level = Change {
        level: Some(PerformanceLevel::Pl2),
        ..Change::default()
    };
    modify(&setup, &disk, &level).await;
    assert_eq!(setup.row(&disk)["level"], "PL2");
    assert_eq!(setup.calls("DescribeTasks"), 0);
}

#[tokio::test(start_paused = true)]
async fn reverting_a_change_immediately_is_applied_despite_stale_reads() {
    for seed in 0..20 {
        let seed = format!("--seed={seed}");
        let setup = Setup::new(&["--stale=0s..2s", "--stale-jumping", &seed]);
        let disk = disk_of(&setup, Category::CloudAuto, 20).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        for (bursting, iops, team) in [(true, 500, "a"), (false, 0, "b"), (true, 500, "a")] {
            let change = Change {
                bursting: Some(bursting),
                provisioned_iops: Some(iops),
                tags: tags(&[("team", team)]),
                ..Change::default()
            };
            modify(&setup, &disk, &change).await;
            let (_, _, current_iops, current_bursting) = properties(&setup, &disk);
            assert_eq!(
                (current_iops, current_bursting),
                (u64::from(change.provisioned_iops.unwrap()), bursting),
                "{seed}"
            );
            assert_eq!(setup.row(&disk)["tags"]["team"], team, "{seed}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeated_modify_waits_for_the_running_task_even_after_a_restart() {
    let setup = Setup::new(&[]);
    setup.configure(&json!({"delays": {"modify": "10m"}}));
    let disk = setup.disk("pvc-1").await;
    let late = setup
        .disks
        .modifier
        .modify(minutes(1), &disk, &full_change())
        .await;
    let late = late.unwrap_err();
    assert_eq!(late.failure_kind(), FailureKind::DeadlineExceeded);
    for part in ["task t-", disk.as_str(), "Processing"] {
        assert!(text(&late).contains(part), "{}", text(&late));
    }
    let again = setup
        .disks
        .modifier
        .modify(minutes(1), &disk, &full_change())
        .await;
    assert_eq!(
        again.unwrap_err().failure_kind(),
        FailureKind::DeadlineExceeded
    );
    let disks = setup.restarted();
    disks
        .modifier
        .modify(minutes(20), &disk, &full_change())
        .await
        .unwrap();
    assert_eq!(properties(&setup, &disk), changed_properties());
    assert_eq!(setup.cloud.state()["tasks"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn concurrent_modifications_share_task_polls() {
    let setup = Setup::new(&[]);
    setup.configure(&json!({"delays": {"modify": "60s"}}));
    let mut ids = Vec::new();
    for n in 0..30 {
        ids.push(setup.disk(&format!("pvc-{n}")).await);
    }
    let mut changes = tokio::task::JoinSet::new();
    for disk in ids {
        let disks = std::sync::Arc::clone(&setup.disks);
        let change = category_change(Category::CloudAuto);
        changes.spawn(async move {
            disks
                .modifier
                .modify(minutes(5), &disk, &change)
                .await
                .is_ok()
        });
    }
    assert!(changes.join_all().await.into_iter().all(|ok| ok));
    // One poll every 5 to 10 seconds.
    assert!(
        setup.calls("DescribeTasks") <= 14,
        "{}",
        setup.calls("DescribeTasks")
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_task_is_reported_and_a_repeated_modify_starts_another() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    // The first call is a dry run.
    setup.configure(&json!({"faults": [
        {"action": "ModifyDiskSpec", "from": 2, "kind": "fails-later"}]}));
    let change = category_change(Category::CloudAuto);
    let failed = setup
        .disks
        .modifier
        .modify(minutes(1), &disk, &change)
        .await;
    let failed = failed.unwrap_err();
    assert!(failed.failure() == Failure::ModifyFailed, "{failed:?}");
    assert_eq!(failed.failure_kind(), FailureKind::Internal);
    assert_eq!(properties(&setup, &disk).0, "cloud_essd");
    modify(&setup, &disk, &change).await;
    assert_eq!(properties(&setup, &disk).0, "cloud_auto");
}

#[tokio::test(start_paused = true)]
async fn a_disk_in_its_cooling_period_fails_the_precondition_and_is_not_partly_modified() {
    let setup = Setup::new(&[]);
    setup.configure(&json!({"rules": {"cooling_period": "10m"}}));
    let disk = setup.disk("pvc-1").await;
    let change = category_change(Category::CloudAuto);
    modify(&setup, &disk, &change).await;
    let back = Change {
        tags: tags(&[("team", "red")]),
        ..category_change(Category::CloudEssd)
    };
    let rejected = setup.disks.modifier.modify(minutes(1), &disk, &back).await;
    let rejected = rejected.unwrap_err();
    assert_eq!(rejected.failure_kind(), FailureKind::FailedPrecondition);
    for part in [
        disk.as_str(),
        "changed recently",
        "DiskInCoolingPeriod",
        "RequestId",
    ] {
        assert!(text(&rejected).contains(part), "{}", text(&rejected));
    }
    assert_eq!(setup.row(&disk)["tags"]["team"], Value::Null);
    tokio::time::sleep(Duration::from_secs(600)).await;
    modify(&setup, &disk, &back).await;
}

#[tokio::test(start_paused = true)]
async fn an_impossible_change_is_rejected_without_a_write_and_out_of_stock_is_resource_exhausted() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    let level = |level| Change {
        level: Some(level),
        ..Change::default()
    };
    let iops = Change {
        provisioned_iops: Some(17_001),
        ..category_change(Category::CloudAuto)
    };
    for change in [
        level(PerformanceLevel::Pl0),
        level(PerformanceLevel::Pl3),
        iops,
        category_change(Category::Cloud),
    ] {
        let rejected = setup
            .disks
            .modifier
            .modify(minutes(1), &disk, &change)
            .await;
        let rejected = rejected.unwrap_err();
        assert_eq!(
            rejected.failure_kind(),
            FailureKind::InvalidArgument,
            "{}",
            text(&rejected)
        );
        assert!(rejected.to_string().contains(disk.as_str()));
    }
    assert_eq!(setup.calls("ModifyDiskSpec"), 0);
    // Restrictions that only the cloud can check.
    let code = json!({"code": {"status": 403, "code": "InvalidDiskCategory.NotSupported"}});
    setup.fault("ModifyDiskSpec", &code);
    let auto = category_change(Category::CloudAuto);
    let rejected = setup.disks.modifier.modify(minutes(1), &disk, &auto);
    assert_eq!(
        rejected.await.unwrap_err().failure_kind(),
        FailureKind::InvalidArgument
    );
    setup.configure(&json!({"out_of_stock": ["*/cloud_auto"]}));
    let rejected = setup.disks.modifier.modify(minutes(1), &disk, &auto);
    assert_eq!(
        rejected.await.unwrap_err().failure_kind(),
        FailureKind::ResourceExhausted
    );
    let unknown = "d-none".parse().unwrap();
    let rejected = setup
        .disks
        .modifier
        .modify(minutes(1), &unknown, &full_change())
        .await;
    assert_eq!(rejected.unwrap_err().failure_kind(), FailureKind::NotFound);
}

#[tokio::test(start_paused = true)]
async fn modify_waits_for_a_busy_disk_and_reports_the_reason_at_the_deadline() {
    let setup = Setup::new(&["--attach-delay=5s", "--cut-delay=20s"]);
    let disk = setup.disk("pvc-1").await;
    let (node, change) = (node_one(), category_change(Category::CloudAuto));
    let (attached, changed) = tokio::join!(
        setup.disks.attacher.attach(minutes(1), &disk, &node),
        setup.disks.modifier.modify(minutes(1), &disk, &change)
    );
    assert!(attached.is_ok());
    changed.unwrap_or_else(|error| panic!("{}", text(&error)));
    let snapshot = crate::kit::new_snapshot("snap", &disk);
    let incomplete = setup.disks.snapshotter.create(seconds(1), &snapshot).await;
    incomplete.unwrap_err();
    let back = category_change(Category::CloudEssd);
    let busy = setup
        .disks
        .modifier
        .modify(seconds(3), &disk, &back)
        .await
        .unwrap_err();
    assert_eq!(busy.failure_kind(), FailureKind::Aborted, "{}", text(&busy));
    assert!(
        text(&busy).contains("DiskCreatingSnapshot"),
        "{}",
        text(&busy)
    );
    modify(&setup, &disk, &back).await;
}

#[tokio::test(start_paused = true)]
async fn enabling_bursting_waits_for_a_running_modification() {
    let setup = Setup::new(&[]);
    let disk = disk_of(&setup, Category::CloudAuto, 20).await;
    let code = "BurstingEnabledForModifyingDiskUnsupported";
    let busy = json!({"code": {"status": 400, "code": code}});
    setup.faults("ModifyDiskAttribute", 3, &busy);
    let change = Change {
        bursting: Some(true),
        ..Change::default()
    };
    modify(&setup, &disk, &change).await;
    assert!(properties(&setup, &disk).3);
    assert_eq!(setup.calls("ModifyDiskAttribute"), 4);
}

#[tokio::test(start_paused = true)]
async fn deletion_waits_for_a_running_modification() {
    let setup = Setup::new(&[]);
    setup.configure(&json!({"delays": {"modify": "30s"}}));
    let disk = setup.disk("pvc-1").await;
    let late = setup
        .disks
        .modifier
        .modify(seconds(2), &disk, &full_change())
        .await;
    late.unwrap_err();
    let busy = setup
        .disks
        .provisioner
        .delete(seconds(5), &disk)
        .await
        .unwrap_err();
    assert_eq!(busy.failure_kind(), FailureKind::Aborted, "{}", text(&busy));
    setup.delete(&disk).await;
    assert!(setup.row(&disk).is_null());
}

#[tokio::test(start_paused = true)]
async fn modify_converges_despite_lost_responses_and_crashes() {
    let kinds = [
        json!("internal-error"),
        json!("internal-error-after"),
        json!("reset-before"),
        json!("reset-after"),
        json!("truncated"),
        json!("service-unavailable"),
        json!({"delay-before": "3s"}),
        json!({"delay-after": "3s"}),
        json!({"code": {"status": 404, "code": "InternalError"}}),
        json!({"code": {"status": 400, "code": "Throttling"}}),
    ];
    let actions = [
        "ModifyDiskSpec",
        "ModifyDiskAttribute",
        "TagResources",
        "ResizeDisk",
        "DescribeTasks",
        "DescribeDisks",
    ];
    for seed in 0..60_u64 {
        let seed_flag = format!("--seed={seed}");
        let stale =
            ["--stale=0s", "--stale=2s", "--stale=0s..2s"][usize::try_from(seed % 3).unwrap()];
        let mut flags = vec![stale, seed_flag.as_str(), "--resize-delay=1s..5s"];
        flags.extend((seed % 3 == 2).then_some("--stale-jumping"));
        let setup = Setup::new(&flags);
        let disk = setup.disk("pvc-1").await;
        let faults: Vec<Value> = (0..12)
            .map(|n| {
                let choice = seed * 31 + n * 17;
                let kind = &kinds[usize::try_from(choice % 10).unwrap()];
                let action = actions[usize::try_from((choice / 10) % 6).unwrap()];
                json!({"action": action, "from": 1 + choice % 5, "kind": kind})
            })
            .collect();
        setup.configure(&json!({"faults": faults, "delays": {"modify": "1s..40s"}}));
        let (mut disks, mut modified, mut resized) = (setup.restarted(), false, false);
        for attempt in 0..100 {
            // The process terminates at any point of the call.
            let lifetime = Duration::from_millis(200 + (seed * 977 + attempt * 379) % 20_000);
            let work = async {
                if !modified {
                    modified = disks
                        .modifier
                        .modify(minutes(1), &disk, &full_change())
                        .await
                        .is_ok();
                }
                if modified && !resized {
                    let range = crate::kit::gib(30);
                    resized = disks.resizer.resize(minutes(1), &disk, range).await.is_ok();
                }
            };
            let _ = tokio::time::timeout(lifetime, work).await;
            if modified && resized {
                break;
            }
            disks = setup.restarted();
            tokio::time::sleep(Duration::from_millis(attempt % 7 * 300)).await;
        }
        assert!(modified && resized, "seed {seed}: 100 attempts failed");
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(
            properties(&setup, &disk),
            changed_properties(),
            "seed {seed}"
        );
        assert_eq!(setup.row(&disk)["size"], 30, "seed {seed}");
        assert_eq!(setup.row(&disk)["tags"]["team"], "blue", "seed {seed}");
        let tasks = setup.cloud.state()["tasks"].as_array().unwrap().len();
        assert_eq!(tasks, 1, "seed {seed}: one change, one task");
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_can_be_attached_and_detached_during_a_modification() {
    let setup = Setup::new(&["--attach-delay=2s", "--detach-delay=2s"]);
    setup.configure(&json!({"delays": {"modify": "3m"}}));
    let disk = setup.disk("pvc-1").await;
    let node = node_one();
    let attach_and_detach = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let started = Instant::now();
        let attacher = &setup.disks.attacher;
        attacher.attach(minutes(1), &disk, &node).await.unwrap();
        attacher.detach(minutes(1), &disk, &node).await.unwrap();
        started.elapsed()
    };
    let change = category_change(Category::CloudAuto);
    let modify = setup.disks.modifier.modify(minutes(5), &disk, &change);
    let (changed, elapsed) = tokio::join!(modify, attach_and_detach);
    changed.unwrap();
    assert!(elapsed <= Duration::from_secs(5), "{elapsed:?}");
    assert!(
        setup.calls("DescribeTasks") <= 32,
        "{:?}",
        setup.cloud.counts()
    );
}

#[tokio::test(start_paused = true)]
async fn modifying_a_busy_disk_costs_few_calls() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    setup.cloud.clear_calls();
    let busy = json!({"code": {"status": 403, "code": "IncorrectDiskStatus"}});
    let fault = json!({"action": "ModifyDiskSpec", "for": "30s", "kind": busy});
    setup.configure(&json!({"faults": [fault]}));
    let change = category_change(Category::CloudAuto);
    modify(&setup, &disk, &change).await;
    let (writes, reads) = (setup.calls("ModifyDiskSpec"), setup.calls("DescribeDisks"));
    assert!(writes <= 9, "{writes}");
    assert!(reads <= 10, "{reads}");
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_disk_is_not_reported_as_not_found() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    let fault = json!({"action": "DescribeDisks", "for": "1m", "kind": "no-rows"});
    setup.configure(&json!({"faults": [fault]}));
    let change = category_change(Category::CloudAuto);
    let hidden = setup
        .disks
        .modifier
        .modify(seconds(20), &disk, &change)
        .await;
    let hidden = hidden.unwrap_err();
    assert_eq!(
        hidden.failure_kind(),
        FailureKind::Unavailable,
        "{}",
        text(&hidden)
    );
    assert!(
        text(&hidden).contains("ecs:DescribeDisks"),
        "{}",
        text(&hidden)
    );
    assert_eq!(writes(&setup), 0);
}

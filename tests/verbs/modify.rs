//! Changing what a disk is: rehearsed, begun once, waited for together, found again after a crash.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use diskplugin::cloud::{CreateDisk, EcsApi};
use diskplugin::disk::FailureKind;
use diskplugin::model::{
    Category, Change, ClientToken, DiskId, Failure, Gib, PerformanceLevel, Tags,
};

use crate::kit::{Setup, minutes, node_one, seconds, text, zone};

fn to(category: Category) -> Change {
    Change {
        category: Some(category),
        ..Change::default()
    }
}

fn tags(pairs: &[(&str, &str)]) -> Tags {
    let own = |(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned());
    pairs.iter().map(own).collect()
}

/// All that can be changed about an AutoPL disk.
fn everything() -> Change {
    Change {
        category: Some(Category::CloudAuto),
        provisioned_iops: Some(1000),
        bursting: Some(true),
        tags: tags(&[("team", "blue")]),
        ..Change::default()
    }
}

/// What the disk really is: category, level, IOPS, bursting.
fn is(setup: &Setup, disk: &DiskId) -> (String, Value, u64, bool) {
    let row = setup.row(disk);
    (
        row["category"].as_str().unwrap().to_owned(),
        row["level"].clone(),
        row["provisioned_iops"].as_u64().unwrap(),
        row["bursting"].as_bool().unwrap(),
    )
}

fn wholly() -> (String, Value, u64, bool) {
    ("cloud_auto".to_owned(), Value::Null, 1000, true)
}

async fn sized(setup: &Setup, category: Category, size: u32) -> DiskId {
    let request = CreateDisk {
        zone: Some(zone("a")),
        category,
        performance_level: None,
        provisioned_iops: None,
        bursting: false,
        multi_attach: false,
        resource_group: None,
        size: Gib(size),
        name: "by-hand".to_owned(),
        snapshot: None,
        encrypted: false,
        kms_key: None,
        tags: Tags::new(),
        token: ClientToken::derive("test", ["by-hand"]),
    };
    setup
        .cloud
        .ecs()
        .create_disk(minutes(1), &request)
        .await
        .unwrap()
}

fn writes(setup: &Setup) -> u64 {
    let dry = setup.cloud.calls().into_iter();
    let dry = dry
        .filter(|call| call.params.contains_key("DryRun"))
        .count();
    setup.calls("ModifyDiskSpec") - u64::try_from(dry).unwrap()
        + setup.calls("ModifyDiskAttribute")
        + setup.calls("TagResources")
}

#[tokio::test(start_paused = true)]
async fn everything_that_is_wanted_is_had_and_a_repeat_writes_nothing() {
    let setup = Setup::new(&[]);
    setup.configure(&json!({"delays": {"modify": "30s"}}));
    let disk = setup.disk("pvc-1").await;
    let begun = Instant::now();
    let verbs = &setup.disks;
    verbs
        .modifier
        .modify(minutes(2), &disk, &everything())
        .await
        .unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(30));
    assert_eq!(is(&setup, &disk), wholly());
    assert_eq!(setup.row(&disk)["tags"]["team"], "blue");
    assert_eq!(writes(&setup), 3);
    // Longer than a read may be old.
    tokio::time::sleep(Duration::from_secs(5)).await;
    setup.cloud.clear_calls();
    verbs
        .modifier
        .modify(minutes(2), &disk, &everything())
        .await
        .unwrap();
    let calls: Vec<_> = setup.cloud.calls().into_iter().map(|c| c.action).collect();
    assert_eq!(calls, ["DescribeDisks"]);
}

#[tokio::test(start_paused = true)]
async fn another_level_or_number_of_iops_is_had_at_once() {
    let setup = Setup::new(&["--stale=2s"]);
    let disk = sized(&setup, Category::CloudEssd, 500).await;
    let level = Change {
        level: Some(PerformanceLevel::Pl2),
        ..Change::default()
    };
    setup
        .disks
        .modifier
        .modify(minutes(1), &disk, &level)
        .await
        .unwrap();
    assert_eq!(setup.row(&disk)["level"], "PL2");
    assert_eq!(setup.calls("DescribeTasks"), 0);
}

#[tokio::test(start_paused = true)]
async fn changing_back_at_once_is_no_less_a_change_however_old_the_reads() {
    for seed in 0..20 {
        let seed = format!("--seed={seed}");
        let setup = Setup::new(&["--stale=0s..2s", "--stale-jumping", &seed]);
        let disk = sized(&setup, Category::CloudAuto, 20).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        for (bursting, iops, team) in [(true, 500, "a"), (false, 0, "b"), (true, 500, "a")] {
            let wanted = Change {
                bursting: Some(bursting),
                provisioned_iops: Some(iops),
                tags: tags(&[("team", team)]),
                ..Change::default()
            };
            setup
                .disks
                .modifier
                .modify(minutes(1), &disk, &wanted)
                .await
                .unwrap();
            let (_, _, has, bursts) = is(&setup, &disk);
            assert_eq!(
                (has, bursts),
                (u64::from(wanted.provisioned_iops.unwrap()), bursting),
                "{seed}"
            );
            assert_eq!(setup.row(&disk)["tags"]["team"], team, "{seed}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_outlives_the_call_is_found_by_its_repeat_also_after_a_restart() {
    let setup = Setup::new(&[]);
    setup.configure(&json!({"delays": {"modify": "10m"}}));
    let disk = setup.disk("pvc-1").await;
    let late = setup
        .disks
        .modifier
        .modify(minutes(1), &disk, &everything())
        .await;
    let late = late.unwrap_err();
    assert_eq!(late.failure_kind(), FailureKind::DeadlineExceeded);
    for part in ["task t-", disk.as_str(), "Processing"] {
        assert!(text(&late).contains(part), "{}", text(&late));
    }
    let again = setup
        .disks
        .modifier
        .modify(minutes(1), &disk, &everything())
        .await;
    assert_eq!(
        again.unwrap_err().failure_kind(),
        FailureKind::DeadlineExceeded
    );
    let verbs = setup.restarted();
    verbs
        .modifier
        .modify(minutes(20), &disk, &everything())
        .await
        .unwrap();
    assert_eq!(is(&setup, &disk), wholly());
    assert_eq!(setup.cloud.state()["tasks"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn any_number_of_tasks_is_polled_for_by_few_calls() {
    let setup = Setup::new(&[]);
    setup.configure(&json!({"delays": {"modify": "60s"}}));
    let mut ids = Vec::new();
    for n in 0..30 {
        ids.push(setup.disk(&format!("pvc-{n}")).await);
    }
    let mut changes = tokio::task::JoinSet::new();
    for disk in ids {
        let disks = std::sync::Arc::clone(&setup.disks);
        let wanted = to(Category::CloudAuto);
        changes.spawn(async move {
            disks
                .modifier
                .modify(minutes(5), &disk, &wanted)
                .await
                .is_ok()
        });
    }
    assert!(changes.join_all().await.into_iter().all(|ok| ok));
    // Every five to ten seconds.
    assert!(
        setup.calls("DescribeTasks") <= 14,
        "{}",
        setup.calls("DescribeTasks")
    );
}

#[tokio::test(start_paused = true)]
async fn a_task_that_fails_is_told_and_the_repeat_begins_another() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    // The rehearsal is the first call.
    setup.configure(&json!({"faults": [
        {"action": "ModifyDiskSpec", "from": 2, "kind": "fails-later"}]}));
    let wanted = to(Category::CloudAuto);
    let failed = setup
        .disks
        .modifier
        .modify(minutes(1), &disk, &wanted)
        .await;
    let failed = failed.unwrap_err();
    assert!(failed.failure() == Failure::ModifyFailed, "{failed:?}");
    assert_eq!(failed.failure_kind(), FailureKind::Internal);
    assert_eq!(is(&setup, &disk).0, "cloud_essd");
    setup
        .disks
        .modifier
        .modify(minutes(1), &disk, &wanted)
        .await
        .unwrap();
    assert_eq!(is(&setup, &disk).0, "cloud_auto");
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_cools_is_a_precondition_that_says_so_and_nothing_is_half_changed() {
    let setup = Setup::new(&[]);
    setup.configure(&json!({"rules": {"cooling_period": "10m"}}));
    let disk = setup.disk("pvc-1").await;
    let wanted = to(Category::CloudAuto);
    setup
        .disks
        .modifier
        .modify(minutes(1), &disk, &wanted)
        .await
        .unwrap();
    let back = Change {
        tags: tags(&[("team", "red")]),
        ..to(Category::CloudEssd)
    };
    let refused = setup.disks.modifier.modify(minutes(1), &disk, &back).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.failure_kind(), FailureKind::FailedPrecondition);
    for part in [
        disk.as_str(),
        "not long ago",
        "DiskInCoolingPeriod",
        "RequestId",
    ] {
        assert!(text(&refused).contains(part), "{}", text(&refused));
    }
    assert_eq!(setup.row(&disk)["tags"]["team"], Value::Null);
    tokio::time::sleep(Duration::from_secs(600)).await;
    setup
        .disks
        .modifier
        .modify(minutes(1), &disk, &back)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_can_never_be_is_refused_without_a_write_and_what_is_sold_out_is_exhausted() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    let level = |level| Change {
        level: Some(level),
        ..Change::default()
    };
    let iops = Change {
        provisioned_iops: Some(17_001),
        ..to(Category::CloudAuto)
    };
    for wanted in [
        level(PerformanceLevel::Pl0),
        level(PerformanceLevel::Pl3),
        iops,
        to(Category::Cloud),
    ] {
        let refused = setup
            .disks
            .modifier
            .modify(minutes(1), &disk, &wanted)
            .await;
        let refused = refused.unwrap_err();
        assert_eq!(
            refused.failure_kind(),
            FailureKind::InvalidArgument,
            "{}",
            text(&refused)
        );
        assert!(refused.to_string().contains(disk.as_str()));
    }
    assert_eq!(setup.calls("ModifyDiskSpec"), 0);
    // What only the cloud knows.
    let code = json!({"code": {"status": 403, "code": "InvalidDiskCategory.NotSupported"}});
    setup.fault("ModifyDiskSpec", &code);
    let auto = to(Category::CloudAuto);
    let refused = setup.disks.modifier.modify(minutes(1), &disk, &auto);
    assert_eq!(
        refused.await.unwrap_err().failure_kind(),
        FailureKind::InvalidArgument
    );
    setup.configure(&json!({"out_of_stock": ["*/cloud_auto"]}));
    let refused = setup.disks.modifier.modify(minutes(1), &disk, &auto);
    assert_eq!(
        refused.await.unwrap_err().failure_kind(),
        FailureKind::ResourceExhausted
    );
    let unknown = "d-none".parse().unwrap();
    let refused = setup
        .disks
        .modifier
        .modify(minutes(1), &unknown, &everything())
        .await;
    assert_eq!(refused.unwrap_err().failure_kind(), FailureKind::NotFound);
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_is_busy_is_waited_for_and_told_at_the_deadline() {
    let setup = Setup::new(&["--attach-delay=5s", "--cut-delay=20s"]);
    let disk = setup.disk("pvc-1").await;
    let (node, wanted) = (node_one(), to(Category::CloudAuto));
    let (attached, changed) = tokio::join!(
        setup.disks.attacher.attach(minutes(1), &disk, &node),
        setup.disks.modifier.modify(minutes(1), &disk, &wanted)
    );
    assert!(attached.is_ok());
    changed.unwrap_or_else(|error| panic!("{}", text(&error)));
    let snapshot = crate::kit::new_snapshot("snap", &disk);
    let cutting = setup.disks.snapshotter.create(seconds(1), &snapshot).await;
    cutting.unwrap_err();
    let back = to(Category::CloudEssd);
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
    setup
        .disks
        .modifier
        .modify(minutes(1), &disk, &back)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn bursting_waits_until_a_running_change_is_done() {
    let setup = Setup::new(&[]);
    let disk = sized(&setup, Category::CloudAuto, 20).await;
    let code = "BurstingEnabledForModifyingDiskUnsupported";
    let busy = json!({"code": {"status": 400, "code": code}});
    setup.faults("ModifyDiskAttribute", 3, &busy);
    let wanted = Change {
        bursting: Some(true),
        ..Change::default()
    };
    setup
        .disks
        .modifier
        .modify(minutes(1), &disk, &wanted)
        .await
        .unwrap();
    assert!(is(&setup, &disk).3);
    assert_eq!(setup.calls("ModifyDiskAttribute"), 4);
}

#[tokio::test(start_paused = true)]
async fn deletion_waits_until_a_running_change_is_done() {
    let setup = Setup::new(&[]);
    setup.configure(&json!({"delays": {"modify": "30s"}}));
    let disk = setup.disk("pvc-1").await;
    let late = setup
        .disks
        .modifier
        .modify(seconds(2), &disk, &everything())
        .await;
    late.unwrap_err();
    let busy = setup
        .disks
        .provisioner
        .delete(seconds(5), &disk)
        .await
        .unwrap_err();
    assert_eq!(busy.failure_kind(), FailureKind::Aborted, "{}", text(&busy));
    setup
        .disks
        .provisioner
        .delete(minutes(2), &disk)
        .await
        .unwrap();
    assert!(setup.row(&disk).is_null());
}

#[tokio::test(start_paused = true)]
async fn whatever_is_lost_and_whenever_the_driver_dies_the_repeats_end_in_the_wanted_disk() {
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
                let pick = seed * 31 + n * 17;
                let kind = &kinds[usize::try_from(pick % 10).unwrap()];
                let action = actions[usize::try_from((pick / 10) % 6).unwrap()];
                json!({"action": action, "from": 1 + pick % 5, "kind": kind})
            })
            .collect();
        setup.configure(&json!({"faults": faults, "delays": {"modify": "1s..40s"}}));
        let (mut verbs, mut changed, mut grown) = (setup.restarted(), false, false);
        for attempt in 0..100 {
            // The call is cut off at any instant, and the driver with it.
            let patience = Duration::from_millis(200 + (seed * 977 + attempt * 379) % 20_000);
            let work = async {
                if !changed {
                    changed = verbs
                        .modifier
                        .modify(minutes(1), &disk, &everything())
                        .await
                        .is_ok();
                }
                if changed && !grown {
                    let range = crate::kit::gib(30);
                    grown = verbs.resizer.resize(minutes(1), &disk, range).await.is_ok();
                }
            };
            let _ = tokio::time::timeout(patience, work).await;
            if changed && grown {
                break;
            }
            verbs = setup.restarted();
            tokio::time::sleep(Duration::from_millis(attempt % 7 * 300)).await;
        }
        assert!(changed && grown, "seed {seed}: a hundred attempts in vain");
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(is(&setup, &disk), wholly(), "seed {seed}");
        assert_eq!(setup.row(&disk)["size"], 30, "seed {seed}");
        assert_eq!(setup.row(&disk)["tags"]["team"], "blue", "seed {seed}");
        let tasks = setup.cloud.state()["tasks"].as_array().unwrap().len();
        assert_eq!(tasks, 1, "seed {seed}: one change, one task");
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_is_attached_and_detached_while_the_cloud_changes_it() {
    let setup = Setup::new(&["--attach-delay=2s", "--detach-delay=2s"]);
    setup.configure(&json!({"delays": {"modify": "3m"}}));
    let disk = setup.disk("pvc-1").await;
    let node = node_one();
    let life = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let begun = Instant::now();
        let attacher = &setup.disks.attacher;
        attacher.attach(minutes(1), &disk, &node).await.unwrap();
        attacher.detach(minutes(1), &disk, &node).await.unwrap();
        begun.elapsed()
    };
    let wanted = to(Category::CloudAuto);
    let modify = setup.disks.modifier.modify(minutes(5), &disk, &wanted);
    let (changed, took) = tokio::join!(modify, life);
    changed.unwrap();
    assert!(took <= Duration::from_secs(5), "{took:?}");
    assert!(
        setup.calls("DescribeTasks") <= 32,
        "{:?}",
        setup.cloud.counts()
    );
}

#[tokio::test(start_paused = true)]
async fn a_busy_disk_is_modified_after_few_attempts() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    setup.cloud.clear_calls();
    let busy = json!({"code": {"status": 403, "code": "IncorrectDiskStatus"}});
    let fault = json!({"action": "ModifyDiskSpec", "for": "30s", "kind": busy});
    setup.configure(&json!({"faults": [fault]}));
    let wanted = to(Category::CloudAuto);
    setup
        .disks
        .modifier
        .modify(minutes(2), &disk, &wanted)
        .await
        .unwrap();
    let (orders, reads) = (setup.calls("ModifyDiskSpec"), setup.calls("DescribeDisks"));
    assert!(orders <= 9, "{orders}");
    assert!(reads <= 10, "{reads}");
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_cannot_be_read_is_not_reported_as_absent() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    let fault = json!({"action": "DescribeDisks", "for": "1m", "kind": "no-rows"});
    setup.configure(&json!({"faults": [fault]}));
    let wanted = to(Category::CloudAuto);
    let hidden = setup
        .disks
        .modifier
        .modify(seconds(20), &disk, &wanted)
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

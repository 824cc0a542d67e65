//! Modifications that are rejected or fail, and their retries after faults and crashes.

use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn a_failed_task_is_reported_and_a_repeated_modify_starts_another() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    // The first call is a dry run.
    setup.configure(&json!({"faults": [
        {"action": "ModifyDiskSpec", "from": 2, "kind": "fails-later"}]}));
    let change = category_change(Category::CloudAuto);
    let failed = setup.try_modify(minutes(1), &disk, &change).await.unwrap_err();
    assert_failure(&failed, Failure::ModifyFailed);
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
    let rejected = setup.try_modify(minutes(1), &disk, &back).await.unwrap_err();
    let parts = [disk.as_str(), "changed recently", "DiskInCoolingPeriod", "RequestId"];
    assert_error(&rejected, FailureKind::FailedPrecondition, &parts);
    assert_eq!(setup.row(&disk)["tags"]["team"], Value::Null);
    sleep(600).await;
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
        let rejected = setup.try_modify(minutes(1), &disk, &change).await.unwrap_err();
        assert_error(&rejected, FailureKind::InvalidArgument, &[]);
        assert!(rejected.to_string().contains(disk.as_str()));
    }
    assert_eq!(setup.calls("ModifyDiskSpec"), 0);
    // Restrictions that only the cloud can check.
    setup.reject("ModifyDiskSpec", 403, "InvalidDiskCategory.NotSupported");
    let auto = category_change(Category::CloudAuto);
    let rejected = setup.try_modify(minutes(1), &disk, &auto);
    assert_eq!(rejected.await.unwrap_err().failure_kind(), FailureKind::InvalidArgument);
    setup.configure(&json!({"out_of_stock": ["*/cloud_auto"]}));
    let rejected = setup.try_modify(minutes(1), &disk, &auto);
    assert_eq!(
        rejected.await.unwrap_err().failure_kind(),
        FailureKind::ResourceExhausted
    );
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
        error_code(404, "InternalError"),
        error_code(400, "Throttling"),
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
        let stale = ["--stale=0s", "--stale=2s", "--stale=0s..2s"][usize::try_from(seed % 3).unwrap()];
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
        let (mut disks, mut modified, mut resized) = (setup.restarted().disks, false, false);
        for attempt in 0..100 {
            // The process terminates at any point of the call.
            let lifetime = Duration::from_millis(200 + (seed * 977 + attempt * 379) % 20_000);
            let work = async {
                if !modified {
                    modified = disks.modifier.modify(minutes(1), &disk, &full_change()).await.is_ok();
                }
                if modified && !resized {
                    let range = gib(30);
                    resized = disks.resizer.resize(minutes(1), &disk, range).await.is_ok();
                }
            };
            let _ = timeout(lifetime, work).await;
            if modified && resized {
                break;
            }
            disks = setup.restarted().disks;
            tokio::time::sleep(Duration::from_millis(attempt % 7 * 300)).await;
        }
        assert!(modified && resized, "seed {seed}: 100 attempts failed");
        sleep(60).await;
        assert_eq!(properties(&setup, &disk), changed_properties());
        assert_eq!(setup.row(&disk)["size"], 30);
        assert_eq!(setup.row(&disk)["tags"]["team"], "blue");
        let tasks = setup.cloud.state()["tasks"].as_array().unwrap().len();
        assert_eq!(tasks, 1, "seed {seed}: one change, one task");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_disk_is_not_reported_as_not_found() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    let fault = json!({"action": "DescribeDisks", "for": "1m", "kind": "no-rows"});
    setup.configure(&json!({"faults": [fault]}));
    let change = category_change(Category::CloudAuto);
    let hidden = setup.try_modify(seconds(20), &disk, &change).await.unwrap_err();
    assert_error(&hidden, FailureKind::Unavailable, &["ecs:DescribeDisks"]);
    assert_eq!(writes(&setup), 0);
}

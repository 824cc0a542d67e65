//! Modifications while a task, another operation or another modification of the disk is in progress.

use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn a_repeated_modify_waits_for_the_running_task_even_after_a_restart() {
    let setup = Setup::new(&[]);
    setup.configure(&json!({"delays": {"modify": "10m"}}));
    let disk = setup.disk("pvc-1").await;
    let late = setup.try_modify(minutes(1), &disk, &full_change()).await.unwrap_err();
    let parts = ["task t-", disk.as_str(), "Processing"];
    assert_error(&late, FailureKind::DeadlineExceeded, &parts);
    let again = setup.try_modify(minutes(1), &disk, &full_change()).await;
    assert_eq!(again.unwrap_err().failure_kind(), FailureKind::DeadlineExceeded);
    let restarted = setup.restarted();
    modify(&restarted, &disk, &full_change()).await;
    assert_eq!(properties(&setup, &disk), changed_properties());
    assert_eq!(setup.cloud.state()["tasks"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn concurrent_modifications_share_task_polls() {
    let setup = Setup::new(&[]);
    setup.configure(&json!({"delays": {"modify": "60s"}}));
    let ids = setup.create_disks(30).await;
    let modify = |setup: Setup, disk| async move {
        let change = category_change(Category::CloudAuto);
        with_retries(|| setup.try_modify(minutes(5), &disk, &change)).await
    };
    assert!(setup.each(ids, modify).await.iter().all(Result::is_ok));
    // One poll every 5 to 10 seconds.
    assert!(setup.calls("DescribeTasks") <= 14, "{}", setup.calls("DescribeTasks"));
}

#[tokio::test(start_paused = true)]
async fn modify_waits_for_a_busy_disk_and_reports_the_reason_at_the_deadline() {
    let setup = Setup::new(&["--attach-delay=5s", "--cut-delay=20s"]);
    let disk = setup.disk("pvc-1").await;
    let (node, change) = (node_one(), category_change(Category::CloudAuto));
    let (attached, changed) = tokio::join!(
        setup.try_attach(minutes(1), &disk, &node),
        setup.try_modify(minutes(1), &disk, &change)
    );
    assert!(attached.is_ok());
    changed.unwrap_or_else(|error| panic!("{}", text(&error)));
    let snapshot = new_snapshot("snap", &disk);
    setup.try_snapshot(seconds(1), &snapshot).await.unwrap_err();
    let back = category_change(Category::CloudEssd);
    let busy = setup.try_modify(seconds(3), &disk, &back).await.unwrap_err();
    assert_error(&busy, FailureKind::Aborted, &["DiskCreatingSnapshot"]);
    modify(&setup, &disk, &back).await;
}

#[tokio::test(start_paused = true)]
async fn enabling_bursting_waits_for_a_running_modification() {
    let setup = Setup::new(&[]);
    let disk = disk_of(&setup, Category::CloudAuto, 20).await;
    let code = "BurstingEnabledForModifyingDiskUnsupported";
    setup.faults("ModifyDiskAttribute", 3, &error_code(400, code));
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
    setup.try_modify(seconds(2), &disk, &full_change()).await.unwrap_err();
    let busy = setup.try_delete(seconds(5), &disk).await.unwrap_err();
    assert_error(&busy, FailureKind::Aborted, &[]);
    setup.delete(&disk).await;
}

#[tokio::test(start_paused = true)]
async fn a_disk_can_be_attached_and_detached_during_a_modification() {
    let setup = Setup::new(&["--attach-delay=2s", "--detach-delay=2s"]);
    setup.configure(&json!({"delays": {"modify": "3m"}}));
    let disk = setup.disk("pvc-1").await;
    let node = node_one();
    let attach_and_detach = async {
        sleep(1).await;
        let started = Instant::now();
        setup.try_attach(minutes(1), &disk, &node).await.unwrap();
        setup.try_detach(minutes(1), &disk, &node).await.unwrap();
        started.elapsed()
    };
    let change = category_change(Category::CloudAuto);
    let modify = with_retries(|| setup.try_modify(minutes(5), &disk, &change));
    let (changed, elapsed) = tokio::join!(modify, attach_and_detach);
    changed.unwrap();
    assert!(elapsed <= Duration::from_secs(5), "{elapsed:?}");
    assert!(setup.calls("DescribeTasks") <= 32, "{:?}", setup.cloud.counts());
}

#[tokio::test(start_paused = true)]
async fn modifying_a_busy_disk_costs_few_calls() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    setup.cloud.clear_calls();
    let busy = error_code(403, "IncorrectDiskStatus");
    let fault = json!({"action": "ModifyDiskSpec", "for": "30s", "kind": busy});
    setup.configure(&json!({"faults": [fault]}));
    let change = category_change(Category::CloudAuto);
    modify(&setup, &disk, &change).await;
    let (writes, reads) = (setup.calls("ModifyDiskSpec"), setup.calls("DescribeDisks"));
    assert!(writes <= 9, "{writes}");
    assert!(reads <= 10, "{reads}");
}

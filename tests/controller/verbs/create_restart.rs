//! Creating in a new process: client tokens and disks of the previous one, and rejected credentials.

use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn a_token_used_by_another_process_is_not_replaced_while_responses_are_empty() {
    let setup = Setup::new(&["--create-delay=1s"]);
    let new = new_disk("pvc-1");
    let first = setup.create(&new).await;
    let larger = NewDisk { size: gib(40), ..new };
    let restarted = setup.restarted();
    setup.hide_disks(60);
    let rejected = restarted.try_create(seconds(45), &larger).await.unwrap_err();
    assert_not_final(&rejected);
    assert_eq!(setup.only_disk(), first.id);
    sleep(60).await;
    let differs = restarted.try_create(minutes(1), &larger).await;
    assert!(matches!(differs, Err(Error::AlreadyExists { .. })), "{differs:?}");
    assert_eq!(setup.only_disk(), first.id);
}

#[tokio::test(start_paused = true)]
async fn a_rejection_after_a_restart_is_not_final_while_stale_reads_hide_the_disk_of_a_later_token() {
    let setup = Setup::new(&["--stale=1s"]);
    setup.disk("other").await;
    setup.configure(&json!({"rules": {"token_burn_percent": 100}, "out_of_stock": ["*/cloud_essd"]}));
    let new = new_disk("pvc-1");
    let create = async |process: &Setup| process.try_create(seconds(9), &new).await;
    create(&setup).await.unwrap_err();
    setup.configure(&json!({"out_of_stock": []}));
    sleep(31).await;
    let created = create(&setup).await.unwrap().id;
    setup.configure(&json!({"stale": {"lag": "8s"}}));
    let restarted = setup.restarted();
    let rejected = create(&restarted).await.unwrap_err();
    assert_not_final(&rejected);
    sleep(60).await;
    let found = retry(60, async || create(&restarted).await).await;
    assert_eq!(found.unwrap().id, created);
    assert_eq!(setup.rows().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_restarted_process_uses_the_same_later_token_after_a_throttled_call() {
    let setup = Setup::new(&["--out-of-stock=*/*", "--stale=1s"]);
    setup.configure(&json!({"rules": {"token_burn_percent": 100}}));
    let new = NewDisk {
        zones: vec![zone("a").into()],
        ..ssd_or_essd("pvc-1")
    };
    setup.try_create(seconds(20), &new).await.unwrap_err();
    setup.configure(&json!({"out_of_stock": ["*/cloud_ssd"]}));
    sleep(31).await;
    let created = setup.try_create(seconds(20), &new).await;
    let created = created.unwrap().id;
    setup.configure(&json!({"stale": {"lag": "60s"}}));
    let restarted = setup.restarted();
    let throttled = error_code(400, "Throttling");
    let throttled = json!({"action": "CreateDisk", "from": 2, "times": 1, "kind": throttled});
    setup.configure(&json!({"faults": [throttled]}));
    restarted.try_create(seconds(20), &new).await.unwrap_err();
    let second = retry(300, async || restarted.try_create(seconds(20), &new).await).await;
    assert_eq!((second.unwrap().id, setup.only_disk()), (created.clone(), created));
}

#[tokio::test(start_paused = true)]
async fn rejected_credentials_of_a_new_process_are_not_final_and_are_reported() {
    let setup = Setup::new(&[]);
    setup.disk("other").await;
    let restarted = setup.restarted();
    let kind = error_code(403, "InvalidAccessKeyId.Inactive");
    let fails = ["CreateDisk", "DescribeDisks"].map(|action| json!({"action": action, "times": 100, "kind": kind}));
    setup.configure(&json!({"faults": fails}));
    let new = new_disk("pvc-1");
    let rejected = restarted.try_create(minutes(1), &new).await.unwrap_err();
    // A response to the previous process may be lost, and only another key can list its disk.
    assert_not_final(&rejected);
    assert_names(&rejected, &["InvalidAccessKeyId.Inactive"]);
}

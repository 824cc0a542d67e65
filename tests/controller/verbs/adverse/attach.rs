//! Attachments and detachments across processes, with lost calls and conflicts.

use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn after_a_restart_a_stale_row_does_not_prove_an_attachment() {
    let setup = Setup::new(&["--attach-delay=1s", "--detach-delay=500ms"]);
    let disk = setup.attached("pvc-1").await;
    sleep(60).await;
    setup.detach(&disk, &node_one()).await;
    setup.configure(&json!({"stale": {"lag": "2s"}}));
    // Another process publishes to the same node again, which is busy with an external operation.
    let restarted = setup.restarted();
    setup.faults("AttachDisk", 1, &error_code(403, "InvalidOperation.Conflict"));
    let row = restarted.try_attach(seconds(60), &disk, &node_one()).await;
    assert!(
        row.is_err() || setup.attachments(&disk).iter().any(|(node, _)| node == "i-one"),
        "OK, but the disk is attached to {:?}",
        setup.attachments(&disk)
    );
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_no_detachment_is_reported_from_a_row_older_than_the_attachment() {
    for age in [10, 3610] {
        let setup = Setup::new(&["--attach-delay=500ms", "--detach-delay=20s", "--stale=2500ms"]);
        let disk = setup.disk("pvc-1").await;
        sleep(age).await;
        let node = node_one();
        let attach = setup.try_attach(seconds(60), &disk, &node);
        // The old process is killed during the call.
        assert!(timeout(Duration::from_millis(700), attach).await.is_err());
        setup.restarted().detach(&disk, &node).await;
    }
}

/// The request is delayed in transit and takes effect after its caller has given up.
#[tokio::test(start_paused = true)]
async fn unpublish_detaches_a_disk_whose_attachment_takes_effect_late() {
    let setup = Setup::new(&["--attach-delay=500ms", "--detach-delay=500ms"]);
    let disk = setup.disk("pvc-1").await;
    sleep(10).await;
    setup.fault("AttachDisk", &json!({"delay-before": "3s"}));
    // The effect of the canceled call below.
    let (ecs, late) = (client(&setup.cloud), attach_to(&disk, &node_one()));
    let mut effect = JoinSet::new();
    effect.spawn(async move { ecs.attach_disk(minutes(1), &late).await });
    tokio::task::yield_now().await;
    setup.clear_faults();
    setup.fault("AttachDisk", &json!("reset-before"));
    let soon = Deadline::after(Duration::from_millis(400));
    setup.try_attach(soon, &disk, &node_one()).await.unwrap_err();
    setup.try_detach(seconds(60), &disk, &node_one()).await.unwrap();
    effect.join_next().await.unwrap().unwrap().unwrap();
    sleep(5).await;
    setup.attach(&disk, &node_two()).await;
}

#[tokio::test(start_paused = true)]
async fn one_rejected_call_does_not_disable_concurrent_attachment() {
    let setup = Setup::with_nodes(1, &["--attach-delay=2s"]);
    let node: InstanceId = "i-0".parse().unwrap();
    assert!(setup.cloud.tag_instance(&node, "supportConcurrencyAttach", "true"));
    let mut disks = setup.create_disks(15).await;
    // An external operation keeps the instance busy briefly.
    let busy =
        json!({"action": "AttachDisk", "from": 10, "times": 1, "kind": error_code(403, "InvalidOperation.Conflict")});
    setup.configure(&json!({"faults": [busy]}));
    let last = disks.split_off(10);
    let later = disks.split_off(5);
    let mut took = Vec::new();
    for disks in [disks, later, last] {
        let start = Instant::now();
        let node = &node;
        let attach = |setup: Setup, disk| {
            let node = node.clone();
            async move { setup.try_attach(minutes(9), &disk, &node).await }
        };
        assert!(setup.each(disks, attach).await.iter().all(Result::is_ok));
        took.push(start.elapsed());
        sleep(60).await;
    }
    // Five disks in parallel, two seconds each.
    assert!(took[2] <= Duration::from_secs(4), "{took:?}");
}

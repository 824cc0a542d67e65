//! Detaching with stale and empty reads, which do not prove a detachment.

use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn detach_never_succeeds_with_stale_reads_while_the_disk_is_attached() {
    for seed in seeds(60) {
        let flags = ["--stale=0s..2s", "--stale-jumping", "--detach-delay=4s", &seed];
        let setup = Setup::new(&flags);
        let (busy, disk) = (setup.attached("pvc-1").await, setup.attached("pvc-2").await);
        // The node is busy with another disk, so that DetachDisk is rejected. Reads may precede the attachment.
        setup.detach_externally(&busy, &node_one()).await;
        setup.detach(&disk, &node_one()).await;
        let attachments = setup.attachments(&disk);
        assert!(
            attachments.iter().all(|(_, state)| state == "Detaching"),
            "{seed}: {attachments:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_stale_read_from_before_the_creation_does_not_complete_a_detachment() {
    for seed in seeds(60) {
        let delays = ["--create-delay=100ms", "--attach-delay=300ms"];
        let setup = Setup::new(&[delays[0], delays[1], "--detach-delay=5s", &seed]);
        setup.configure(&json!({"stale": {"lag": "0s..2s", "jumping": true, "percent": 30}}));
        let disk = setup.attached("pvc-1").await;
        setup.detach(&disk, &node_one()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn empty_responses_do_not_prove_a_disk_detached() {
    for setup in Setup::alternatives(&["--detach-delay=10s"]) {
        let disk = setup.attached("pvc-1").await;
        sleep(10).await;
        setup.cloud.clear_calls();
        setup.hide_disks(600);
        let early = setup.try_detach(seconds(8), &disk, &node_one()).await.unwrap_err();
        let retried = [FailureKind::DeadlineExceeded, FailureKind::Aborted];
        assert!(retried.contains(&early.failure_kind()), "{}", text(&early));
        assert_eq!(setup.attachments(&disk).len(), 1);
        // No code of DetachDisk proves the detachment without a read that has a canary: the key may be another
        // account's.
        let done = setup.try_detach(seconds(40), &disk, &node_one()).await;
        let unproven = done.unwrap_err();
        assert_not_final(&unproven);
        assert_eq!(setup.attachments(&disk), []);
        assert!(setup.calls("DetachDisk") <= 14, "{}", setup.calls("DetachDisk"));
        setup.clear_faults();
        setup.detach(&disk, &node_one()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_stuck_detachment_is_never_reported_as_complete_while_reads_are_empty() {
    for setup in Setup::alternatives(&[]) {
        let disk = setup.attached("pvc-1").await;
        let faults = json!([
            {"action": "DescribeDisks", "for": "10m", "kind": "no-rows"},
            {"action": "DetachDisk", "kind": "fails-later"},
        ]);
        setup.configure(&json!({"faults": faults}));
        for _ in 0..3 {
            let late = setup.try_detach(seconds(30), &disk, &node_one()).await;
            let kind = late.unwrap_err().failure_kind();
            assert!(
                [FailureKind::DeadlineExceeded, FailureKind::Aborted].contains(&kind),
                "{kind:?}"
            );
        }
        let everywhere = setup.disks.detacher.detach_everywhere(seconds(30), &disk).await;
        let unproven = everywhere.unwrap_err();
        assert_error(&unproven, FailureKind::Unavailable, &[]);
        assert_eq!(setup.attachments(&disk).len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_instance_does_not_prove_a_detachment_while_reads_are_empty() {
    let setup = Setup::new(&[]);
    let disk = setup.attached("pvc-1").await;
    setup.hide_disks(600);
    let missing = error_code(404, "InvalidInstanceId.NotFound");
    setup.configure(&json!({"faults": [
        {"action": "DescribeDisks", "for": "10m", "kind": "no-rows"},
        {"action": "DetachDisk", "for": "10m", "kind": missing},
    ]}));
    let late = setup.try_detach(seconds(20), &disk, &node_one()).await.unwrap_err();
    assert_error(&late, FailureKind::Unavailable, &["InvalidInstanceId.NotFound"]);
}

#[tokio::test(start_paused = true)]
async fn a_single_empty_response_delays_a_detachment_briefly() {
    let setup = Setup::new(&["--detach-delay=3s"]);
    let disk = setup.attached("pvc-1").await;
    setup.cloud.clear_calls();
    setup.fault("DescribeDisks", &json!("no-rows"));
    let begun = Instant::now();
    setup.detach(&disk, &node_one()).await;
    assert!(begun.elapsed() <= Duration::from_millis(4500), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn detach_everywhere_of_a_nonexistent_disk_succeeds_with_proof() {
    for others in [0, 1] {
        let setup = Setup::new(&[]);
        setup.other_disks(others).await;
        sleep(60).await;
        let (disk, begun) = ("d-none".parse().unwrap(), Instant::now());
        let detacher = &setup.restarted().disks.detacher;
        let detach = async || detacher.detach_everywhere(seconds(20), &disk).await;
        retry(100, detach).await.unwrap();
        let took = begun.elapsed();
        assert!(took <= Duration::from_secs(75), "{others}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn detach_after_an_attachment_with_a_lost_response_ignores_stale_reads() {
    let setup = Setup::new(&["--attach-delay=0s", "--detach-delay=5s"]);
    let disk = setup.disk("pvc").await;
    sleep(5).await;
    setup.fault("AttachDisk", &json!("reset-after"));
    setup.attach(&disk, &node_one()).await;
    setup.configure(&json!({"stale": {"lag": "2s"}}));
    setup.detach(&disk, &node_one()).await;
}

#[tokio::test(start_paused = true)]
async fn detach_accounts_for_a_canceled_attach() {
    for seed in seeds(40) {
        let flags = ["--stale=0s..2s", "--stale-jumping", "--attach-delay=200ms", &seed];
        let setup = Setup::new(&[flags[0], flags[1], flags[2], flags[3], "--detach-delay=4s"]);
        let disk = setup.disk("pvc-1").await;
        sleep(5).await;
        // The call takes effect and is canceled before its response.
        setup.fault("AttachDisk", &json!({"delay-after": "30s"}));
        setup.try_attach(seconds(1), &disk, &node_one()).await.unwrap_err();
        setup.detach(&disk, &node_one()).await;
    }
}

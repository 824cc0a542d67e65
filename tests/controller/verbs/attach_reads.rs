//! Attaching with stale and empty reads, and after lost responses.

use crate::verbs::kit::*;

const JUMPING: [&str; 2] = ["--stale=0s..2s", "--stale-jumping"];

#[tokio::test(start_paused = true)]
async fn stale_reads_delay_an_attachment_without_changing_its_result() {
    let torn = r#"--config={"stale":{"torn":true}}"#;
    let modes: [&[&str]; 3] = [&["--stale=2s"], &JUMPING, &[JUMPING[0], JUMPING[1], torn]];
    for flags in modes {
        for seed in seeds(20) {
            let setup = Setup::new(&[flags, &[&seed, "--attach-delay=1s"]].concat());
            let disk = setup.disk("pvc-1").await;
            let begun = Instant::now();
            setup.attach(&disk, &node_one()).await;
            assert!(begun.elapsed() <= Duration::from_millis(3500));
            assert_eq!(setup.calls("AttachDisk"), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stale_read_of_an_earlier_attachment_or_detachment_does_not_complete_a_new_one() {
    for detach_delay in ["--detach-delay=0s", "--detach-delay=4s"] {
        for seed in seeds(60) {
            let delays = ["--attach-delay=1500ms", detach_delay, &seed];
            let setup = Setup::new(&[&JUMPING[..], &delays].concat());
            let disk = setup.disk("pvc-1").await;
            for pause in [3, 3, 0] {
                setup.attach(&disk, &node_one()).await;
                sleep(pause).await;
                setup.detach(&disk, &node_one()).await;
            }
            setup.fault("AttachDisk", &json!("reset-after"));
            setup.attach(&disk, &node_one()).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stale_read_does_not_complete_an_attachment_after_a_detachment_with_a_lost_response() {
    let setup = Setup::new(&["--stale=2s"]);
    let disk = setup.attached("pvc-1").await;
    setup.fault("DetachDisk", &json!("reset-after"));
    setup.detach(&disk, &node_one()).await;
    setup.fault("AttachDisk", &json!("service-unavailable"));
    setup.attach(&disk, &node_one()).await;
}

#[tokio::test(start_paused = true)]
async fn status_available_right_after_the_call_is_not_a_failure() {
    // Stale reads return Available for two seconds, then Attaching for six.
    let setup = Setup::new(&["--stale=2s", "--attach-delay=6s"]);
    let disk = setup.disk("pvc-1").await;
    let begun = Instant::now();
    setup.attach(&disk, &node_one()).await;
    let late = begun.elapsed().saturating_sub(Duration::from_secs(8));
    assert!(late <= Duration::from_secs(1), "{late:?}");
    assert_eq!(setup.calls("AttachDisk"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_slow_attachment_is_not_reported_as_failed_with_jumping_reads() {
    for seed in seeds(60) {
        let flags = ["--stale=0s..2s", "--stale-jumping", "--attach-delay=9s", &seed];
        let setup = Setup::new(&flags);
        setup.attached("pvc-1").await;
    }
}

#[tokio::test(start_paused = true)]
async fn attach_succeeds_after_a_lost_response() {
    for loss in [
        "reset-before",
        "reset-after",
        "html",
        "internal-error",
        "internal-error-after",
    ] {
        for stale in ["--stale=0s", "--stale=2s"] {
            let setup = Setup::new(&["--attach-delay=3s", stale]);
            let disk = setup.disk("pvc-1").await;
            setup.fault("AttachDisk", &json!(loss));
            setup.attach(&disk, &node_one()).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_stale_reads_show_on_another_node_is_not_detached_from_there() {
    let setup = Setup::new(&["--detach-delay=3s", "--attach-delay=1s", "--stale=2s"]);
    let disk = setup.disk("pvc-1").await;
    setup.attach(&disk, &node_two()).await;
    setup.try_detach(seconds(1), &disk, &node_two()).await.unwrap_err();
    let early = setup.try_attach(minutes(1), &disk, &node_one()).await;
    assert!(matches!(early, Ok(_) | Err(Error::InUseElsewhere { .. })), "{early:?}");
    setup.detach(&disk, &node_two()).await;
    setup.attach(&disk, &node_one()).await;
}

#[tokio::test(start_paused = true)]
async fn empty_responses_do_not_prove_a_disk_absent() {
    let no_rows = json!({"action": "DescribeDisks", "for": "10m", "kind": "no-rows"});
    // Accepted, response lost after the call took effect, and rejected.
    let refusal = error_code(403, "IncorrectDiskStatus");
    for order in [json!({"delay-after": "0s"}), json!("reset-after"), refusal] {
        let setup = Setup::new(&["--attach-delay=2s"]);
        let disk = setup.disk("pvc-1").await;
        setup.configure(&json!({"faults": [no_rows, {"action": "AttachDisk", "kind": order}]}));
        let hidden = setup.try_attach(seconds(30), &disk, &node_one()).await.unwrap_err();
        assert_not_final(&hidden);
        if order.get("delay-after").is_some() {
            let parts = ["nor any other resource of this cluster"];
            assert_error(&hidden, FailureKind::DeadlineExceeded, &parts);
        }
        assert!(setup.calls("AttachDisk") <= 8, "{order}");
        setup.clear_faults();
        setup.attach(&disk, &node_one()).await;
    }
}

//! Attaching with stale and empty reads, and after lost responses.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use diskplugin::disk::{Error, FailureKind};

use crate::verbs::kit::{Setup, attached_to, minutes, node_one, node_two, seconds, text};

#[tokio::test(start_paused = true)]
async fn stale_reads_delay_an_attachment_without_changing_its_result() {
    let modes: [&[&str]; 3] = [
        &["--stale=2s"],
        &["--stale=0s..2s", "--stale-jumping"],
        &[
            "--stale=0s..2s",
            "--stale-jumping",
            r#"--config={"stale":{"torn":true}}"#,
        ],
    ];
    for flags in modes {
        for seed in 0..20 {
            let seed = format!("--seed={seed}");
            let flags: Vec<_> = flags.iter().copied().chain([&*seed, "--attach-delay=1s"]).collect();
            let setup = Setup::new(&flags);
            let disk = setup.disk("pvc-1").await;
            let begun = Instant::now();
            let row = setup.disks.attacher.attach(minutes(1), &disk, &node_one()).await;
            let row = row.unwrap_or_else(|error| panic!("{flags:?}: {}", text(&error)));
            assert!(row.is_in_use_on(&node_one()));
            assert_eq!(setup.attachments(&disk), attached_to(&node_one()), "{flags:?}");
            assert!(begun.elapsed() <= Duration::from_millis(3500), "{flags:?}");
            assert_eq!(setup.calls("AttachDisk"), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stale_read_of_an_earlier_attachment_does_not_complete_a_new_one() {
    for seed in 0..60 {
        let seed = format!("--seed={seed}");
        let jumping = ["--stale=0s..2s", "--stale-jumping"];
        let setup = Setup::new(&[jumping[0], jumping[1], "--attach-delay=1500ms", &seed]);
        let disk = setup.disk("pvc-1").await;
        for _ in 0..2 {
            setup.attach(&disk, &node_one()).await;
            assert_eq!(setup.attachments(&disk), attached_to(&node_one()), "{seed}");
            tokio::time::sleep(Duration::from_secs(3)).await;
            setup.detach(&disk, &node_one()).await;
        }
        setup.fault("AttachDisk", &json!("reset-after"));
        setup.attach(&disk, &node_one()).await;
        assert_eq!(setup.attachments(&disk), attached_to(&node_one()), "{seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stale_read_does_not_complete_an_attachment_after_a_detachment_with_a_lost_response() {
    let setup = Setup::new(&["--stale=2s"]);
    let disk = setup.disk("pvc-1").await;
    setup.attach(&disk, &node_one()).await;
    setup.fault("DetachDisk", &json!("reset-after"));
    setup.detach(&disk, &node_one()).await;
    setup.fault("AttachDisk", &json!("service-unavailable"));
    setup.attach(&disk, &node_one()).await;
    assert_eq!(setup.attachments(&disk), attached_to(&node_one()));
}

#[tokio::test(start_paused = true)]
async fn status_available_right_after_the_call_is_not_a_failure() {
    // Stale reads return Available for two seconds, then Attaching for six.
    let setup = Setup::new(&["--stale=2s", "--attach-delay=6s"]);
    let disk = setup.disk("pvc-1").await;
    let begun = Instant::now();
    assert!(
        setup
            .disks
            .attacher
            .attach(minutes(1), &disk, &node_one())
            .await
            .is_ok()
    );
    let late = begun.elapsed().saturating_sub(Duration::from_secs(8));
    assert!(late <= Duration::from_secs(1), "{late:?}");
    assert_eq!(setup.calls("AttachDisk"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_slow_attachment_is_not_reported_as_failed_with_jumping_reads() {
    for seed in 0..60 {
        let seed = format!("--seed={seed}");
        let flags = ["--stale=0s..2s", "--stale-jumping", "--attach-delay=9s", &seed];
        let setup = Setup::new(&flags);
        let disk = setup.disk("pvc-1").await;
        let row = setup.disks.attacher.attach(minutes(1), &disk, &node_one()).await;
        row.unwrap_or_else(|error| panic!("{seed}: {}", text(&error)));
        assert_eq!(setup.attachments(&disk), attached_to(&node_one()), "{seed}");
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
            let row = setup.disks.attacher.attach(minutes(1), &disk, &node_one()).await;
            let row = row.unwrap_or_else(|error| panic!("{loss} {stale}: {}", text(&error)));
            assert!(row.is_in_use_on(&node_one()));
            assert_eq!(setup.attachments(&disk), attached_to(&node_one()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_stale_reads_show_on_another_node_is_not_detached_from_there() {
    let setup = Setup::new(&["--detach-delay=3s", "--attach-delay=1s", "--stale=2s"]);
    let disk = setup.disk("pvc-1").await;
    setup.attach(&disk, &node_two()).await;
    setup
        .disks
        .detacher
        .detach(seconds(1), &disk, &node_two())
        .await
        .unwrap_err();
    let early = setup.disks.attacher.attach(minutes(1), &disk, &node_one()).await;
    assert!(matches!(early, Ok(_) | Err(Error::InUseElsewhere { .. })), "{early:?}");
    setup.detach(&disk, &node_two()).await;
    assert!(
        setup
            .disks
            .attacher
            .attach(minutes(1), &disk, &node_one())
            .await
            .is_ok()
    );
    assert_eq!(setup.attachments(&disk), attached_to(&node_one()));
}

#[tokio::test(start_paused = true)]
async fn empty_responses_do_not_prove_a_disk_absent() {
    let no_rows = json!({"action": "DescribeDisks", "for": "10m", "kind": "no-rows"});
    // Accepted, response lost after the call took effect, and rejected.
    let refusal = json!({"code": {"status": 403, "code": "IncorrectDiskStatus"}});
    for order in [json!(null), json!("reset-after"), refusal] {
        let setup = Setup::new(&["--attach-delay=2s"]);
        let disk = setup.disk("pvc-1").await;
        let mut faults = vec![no_rows.clone()];
        if order != json!(null) {
            faults.push(json!({"action": "AttachDisk", "kind": order}));
        }
        setup.configure(&json!({"faults": faults}));
        let hidden = setup.disks.attacher.attach(seconds(30), &disk, &node_one()).await;
        let kind = hidden.unwrap_err().failure_kind();
        let retried = [
            FailureKind::DeadlineExceeded,
            FailureKind::Aborted,
            FailureKind::Unavailable,
        ];
        assert!(retried.contains(&kind), "{order}: {kind:?}");
        assert!(setup.calls("AttachDisk") <= 8, "{order}");
        setup.configure(&json!({"faults": []}));
        let row = setup.disks.attacher.attach(minutes(1), &disk, &node_one()).await;
        assert!(row.unwrap().is_in_use_on(&node_one()), "{order}");
    }
}

//! Attaching while reads are old, answers are lost and others are at the disk or the node.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use diskplugin::cloud::{AttachDisk, Ecs};
use diskplugin::disk::{Error, FailureKind};
use diskplugin::model::{Failure, InstanceId};

use crate::kit::{Stage, minutes, one, seconds, text, two};

fn held(node: &InstanceId) -> Vec<(String, String)> {
    vec![(node.to_string(), "Attached".to_owned())]
}

#[tokio::test(start_paused = true)]
async fn old_reads_delay_the_answer_and_do_not_change_it() {
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
            let flags: Vec<_> = flags
                .iter()
                .copied()
                .chain([&*seed, "--attach-delay=1s"])
                .collect();
            let stage = Stage::new(&flags);
            let disk = stage.disk("pvc-1").await;
            let begun = Instant::now();
            let row = stage.disks.attacher.attach(minutes(1), &disk, &one()).await;
            let row = row.unwrap_or_else(|error| panic!("{flags:?}: {}", text(&error)));
            assert!(row.is_in_use_on(&one()));
            assert_eq!(stage.holders(&disk), held(&one()), "{flags:?}");
            assert!(begun.elapsed() <= Duration::from_millis(3500), "{flags:?}");
            assert_eq!(stage.calls("AttachDisk"), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_of_the_attachment_before_is_not_taken_for_the_new_one() {
    for seed in 0..60 {
        let seed = format!("--seed={seed}");
        let jumping = ["--stale=0s..2s", "--stale-jumping"];
        let stage = Stage::new(&[jumping[0], jumping[1], "--attach-delay=1500ms", &seed]);
        let disk = stage.disk("pvc-1").await;
        for _ in 0..2 {
            stage
                .disks
                .attacher
                .attach(minutes(1), &disk, &one())
                .await
                .unwrap();
            assert_eq!(stage.holders(&disk), held(&one()), "{seed}");
            tokio::time::sleep(Duration::from_secs(3)).await;
            stage
                .disks
                .attacher
                .detach(minutes(1), &disk, &one())
                .await
                .unwrap();
        }
        stage.fault("AttachDisk", &json!("reset-after"));
        stage
            .disks
            .attacher
            .attach(minutes(1), &disk, &one())
            .await
            .unwrap();
        assert_eq!(stage.holders(&disk), held(&one()), "{seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_of_before_a_detachment_without_an_answer_is_not_taken_for_the_new_attachment() {
    let stage = Stage::new(&["--stale=2s"]);
    let disk = stage.disk("pvc-1").await;
    stage
        .disks
        .attacher
        .attach(minutes(1), &disk, &one())
        .await
        .unwrap();
    stage.fault("DetachDisk", &json!("reset-after"));
    stage
        .disks
        .attacher
        .detach(minutes(1), &disk, &one())
        .await
        .unwrap();
    stage.fault("AttachDisk", &json!("service-unavailable"));
    stage
        .disks
        .attacher
        .attach(minutes(1), &disk, &one())
        .await
        .unwrap();
    assert_eq!(stage.holders(&disk), held(&one()));
}

#[tokio::test(start_paused = true)]
async fn available_right_after_the_call_is_no_failure() {
    // The replica shows Available for two seconds, then Attaching for six.
    let stage = Stage::new(&["--stale=2s", "--attach-delay=6s"]);
    let disk = stage.disk("pvc-1").await;
    let begun = Instant::now();
    assert!(
        stage
            .disks
            .attacher
            .attach(minutes(1), &disk, &one())
            .await
            .is_ok()
    );
    let late = begun.elapsed().saturating_sub(Duration::from_secs(8));
    assert!(late <= Duration::from_secs(1), "{late:?}");
    assert_eq!(stage.calls("AttachDisk"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_attachment_that_falls_back_is_told_well_before_the_deadline_and_can_be_repeated() {
    for delay in ["2s", "100ms"] {
        for stale in ["--stale=0s", "--stale=2s"] {
            let stage = Stage::new(&[&format!("--attach-delay={delay}"), stale]);
            let disk = stage.disk("pvc-1").await;
            stage.fault("AttachDisk", &json!("fails-later"));
            let begun = Instant::now();
            let fell = stage
                .disks
                .attacher
                .attach(minutes(2), &disk, &one())
                .await
                .unwrap_err();
            assert!(
                fell.failure() == Failure::AttachFailed,
                "{delay} {stale}: {}",
                text(&fell)
            );
            assert_eq!(fell.failure_kind(), FailureKind::Internal);
            assert!(
                text(&fell).contains(disk.as_str()) && text(&fell).contains("i-one"),
                "{fell}"
            );
            assert!(
                begun.elapsed() <= Duration::from_secs(20),
                "{:?}",
                begun.elapsed()
            );
            assert!(
                stage
                    .disks
                    .attacher
                    .attach(minutes(2), &disk, &one())
                    .await
                    .is_ok()
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_attachment_that_falls_back_is_told_with_the_first_look_that_proves_it() {
    // When it fails after being accepted, how old reads are, and until when that is told.
    for (fails, stale, told) in [
        ("2s", "0s", 5000),
        ("2s", "2s", 5500),
        ("20s", "0s", 22_000),
        ("20s", "2s", 24_000),
    ] {
        let flags = [
            &*format!("--attach-delay={fails}"),
            &*format!("--stale={stale}"),
        ];
        let stage = Stage::new(&flags);
        let disk = stage.disk("pvc-1").await;
        stage.fault("AttachDisk", &json!("fails-later"));
        let begun = Instant::now();
        let fell = stage.disks.attacher.attach(minutes(2), &disk, &one()).await;
        assert!(
            matches!(&fell, Err(error) if error.failure() == Failure::AttachFailed),
            "{fell:?}"
        );
        let took = begun.elapsed();
        assert!(took <= Duration::from_millis(told), "{flags:?}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_attachment_that_takes_long_is_not_taken_for_one_that_fell_back_however_reads_jump() {
    for seed in 0..60 {
        let seed = format!("--seed={seed}");
        let flags = [
            "--stale=0s..2s",
            "--stale-jumping",
            "--attach-delay=9s",
            &seed,
        ];
        let stage = Stage::new(&flags);
        let disk = stage.disk("pvc-1").await;
        let row = stage.disks.attacher.attach(minutes(1), &disk, &one()).await;
        row.unwrap_or_else(|error| panic!("{seed}: {}", text(&error)));
        assert_eq!(stage.holders(&disk), held(&one()), "{seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_looked_after_and_ends_attached() {
    for loss in [
        "reset-before",
        "reset-after",
        "html",
        "internal-error",
        "internal-error-after",
    ] {
        for stale in ["--stale=0s", "--stale=2s"] {
            let stage = Stage::new(&["--attach-delay=3s", stale]);
            let disk = stage.disk("pvc-1").await;
            stage.fault("AttachDisk", &json!(loss));
            let row = stage.disks.attacher.attach(minutes(1), &disk, &one()).await;
            let row = row.unwrap_or_else(|error| panic!("{loss} {stale}: {}", text(&error)));
            assert!(row.is_in_use_on(&one()));
            assert_eq!(stage.holders(&disk), held(&one()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn somebody_elses_attach_on_the_node_is_waited_out() {
    for alternatives in ["first", "last"] {
        let stage = Stage::new(&["--attach-delay=4s"]);
        stage.configure(&json!({"rules": {"alternatives": alternatives}}));
        let (ours, theirs) = (stage.disk("pvc-1").await, stage.disk("pvc-2").await);
        let foreign = AttachDisk {
            disk: theirs.clone(),
            instance: one(),
            force: false,
            delete_with_instance: false,
        };
        stage
            .cloud
            .ecs()
            .attach_disk(minutes(1), &foreign)
            .await
            .unwrap();
        let begun = Instant::now();
        assert!(
            stage
                .disks
                .attacher
                .attach(minutes(1), &ours, &one())
                .await
                .is_ok()
        );
        assert!(
            begun.elapsed() <= Duration::from_secs(13),
            "{:?}",
            begun.elapsed()
        );
        assert_eq!(
            (stage.holders(&ours), stage.holders(&theirs)),
            (held(&one()), held(&one()))
        );
        // One is of the other; ours was ordered at 0, 0.5, 1.5, 3.5 and 7.5 seconds.
        assert!(
            stage.calls("AttachDisk") <= 6,
            "{}",
            stage.calls("AttachDisk")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_on_its_way_off_another_node_is_waited_for() {
    let stage = Stage::new(&["--detach-delay=10s", "--attach-delay=1s"]);
    let disk = stage.disk("pvc-1").await;
    stage
        .disks
        .attacher
        .attach(minutes(1), &disk, &two())
        .await
        .unwrap();
    let off = stage
        .disks
        .attacher
        .detach(seconds(1), &disk, &two())
        .await
        .unwrap_err();
    assert_eq!(off.failure_kind(), FailureKind::DeadlineExceeded);
    let row = stage.disks.attacher.attach(minutes(1), &disk, &one()).await;
    assert!(row.unwrap().is_in_use_on(&one()));
    assert_eq!(stage.holders(&disk), held(&one()));
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_old_reads_still_show_elsewhere_is_refused_at_worst_and_never_taken() {
    let stage = Stage::new(&["--detach-delay=3s", "--attach-delay=1s", "--stale=2s"]);
    let disk = stage.disk("pvc-1").await;
    stage
        .disks
        .attacher
        .attach(minutes(1), &disk, &two())
        .await
        .unwrap();
    stage
        .disks
        .attacher
        .detach(seconds(1), &disk, &two())
        .await
        .unwrap_err();
    let early = stage.disks.attacher.attach(minutes(1), &disk, &one()).await;
    assert!(
        matches!(early, Ok(_) | Err(Error::InUseElsewhere { .. })),
        "{early:?}"
    );
    stage
        .disks
        .attacher
        .detach(minutes(1), &disk, &two())
        .await
        .unwrap();
    assert!(
        stage
            .disks
            .attacher
            .attach(minutes(1), &disk, &one())
            .await
            .is_ok()
    );
    assert_eq!(stage.holders(&disk), held(&one()));
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_is_still_being_made_is_waited_for() {
    let stage = Stage::new(&["--create-delay=5s"]);
    let disk = stage.foreign(diskplugin::model::Tags::new()).await;
    let row = stage
        .disks
        .attacher
        .attach(minutes(1), &disk, &one())
        .await
        .unwrap();
    assert!(row.is_in_use_on(&one()));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_starts_is_waited_for_and_one_that_does_not_get_ready_is_told_with_the_code() {
    let stage = Stage::new(&[]);
    let disk = stage.disk("pvc-1").await;
    stage.configure(&json!({"delays": {"power": "5s", "ready": "3s"}}));
    assert!(stage.cloud.set_instance_power(&one(), true));
    assert!(
        stage
            .disks
            .attacher
            .attach(minutes(1), &disk, &one())
            .await
            .is_ok()
    );
    stage.configure(&json!({"delays": {"power": "1h"}}));
    stage.cloud.set_instance_power(&two(), false);
    let other = stage.disk("pvc-2").await;
    let late = stage
        .disks
        .attacher
        .attach(seconds(20), &other, &two())
        .await
        .unwrap_err();
    for part in [
        other.as_str(),
        "i-two",
        "IncorrectInstanceStatus",
        "RequestId",
    ] {
        assert!(text(&late).contains(part), "{}", text(&late));
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_is_told_with_what_was_seen_and_the_repeat_finds_it() {
    let stage = Stage::new(&["--attach-delay=30s"]);
    let disk = stage.disk("pvc-1").await;
    let begun = Instant::now();
    let late = stage
        .disks
        .attacher
        .attach(seconds(10), &disk, &one())
        .await
        .unwrap_err();
    assert_eq!(
        (begun.elapsed(), late.failure_kind()),
        (Duration::from_secs(10), FailureKind::DeadlineExceeded)
    );
    let seen = format!("last seen: disk {disk} is Attaching");
    assert!(text(&late).contains(&seen), "{}", text(&late));
    stage.cloud.clear_calls();
    assert!(
        stage
            .restarted()
            .attacher
            .attach(minutes(1), &disk, &one())
            .await
            .is_ok()
    );
    assert_eq!(stage.calls("AttachDisk"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_disappears_meanwhile_is_not_found() {
    let stage = Stage::new(&[]);
    let disk = stage.disk("pvc-1").await;
    stage.fault("AttachDisk", &json!("reset-before"));
    stage
        .cloud
        .ecs()
        .delete_disk(minutes(1), &disk)
        .await
        .unwrap();
    let gone = stage
        .disks
        .attacher
        .attach(minutes(1), &disk, &one())
        .await
        .unwrap_err();
    assert!(matches!(gone, Error::NoSuchDisk { .. }), "{gone:?}");
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_came_by_a_lost_answer_is_off_only_when_reads_of_before_cannot_be_meant() {
    let stage = Stage::settled(&["--attach-delay=0s", "--detach-delay=5s"]).await;
    let disk = stage.disk("pvc").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    stage.fault("AttachDisk", &json!("reset-after"));
    stage
        .disks
        .attacher
        .attach(minutes(1), &disk, &one())
        .await
        .unwrap();
    stage.configure(&json!({"stale": {"lag": "2s"}}));
    stage
        .disks
        .attacher
        .detach(minutes(1), &disk, &one())
        .await
        .unwrap();
    assert_eq!(stage.holders(&disk), []);
}

#[tokio::test(start_paused = true)]
async fn empty_responses_do_not_make_a_disk_absent() {
    let no_rows = json!({"action": "DescribeDisks", "for": "10m", "kind": "no-rows"});
    // Accepted, lost after it took effect, and refused.
    let refusal = json!({"code": {"status": 403, "code": "IncorrectDiskStatus"}});
    for order in [json!(null), json!("reset-after"), refusal] {
        let stage = Stage::new(&["--attach-delay=2s"]);
        let disk = stage.disk("pvc-1").await;
        let mut faults = vec![no_rows.clone()];
        if order != json!(null) {
            faults.push(json!({"action": "AttachDisk", "kind": order}));
        }
        stage.configure(&json!({"faults": faults}));
        let hidden = stage
            .disks
            .attacher
            .attach(seconds(30), &disk, &one())
            .await;
        let meaning = hidden.unwrap_err().failure_kind();
        let repeated = [
            FailureKind::DeadlineExceeded,
            FailureKind::Aborted,
            FailureKind::Unavailable,
        ];
        assert!(repeated.contains(&meaning), "{order}: {meaning:?}");
        assert!(stage.calls("AttachDisk") <= 8, "{order}");
        stage.configure(&json!({"faults": []}));
        let row = stage.disks.attacher.attach(minutes(1), &disk, &one()).await;
        assert!(row.unwrap().is_in_use_on(&one()), "{order}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_attach_is_known_to_the_detach_that_follows() {
    for seed in 0..40 {
        let seed = format!("--seed={seed}");
        let flags = [
            "--stale=0s..2s",
            "--stale-jumping",
            "--attach-delay=200ms",
            &seed,
        ];
        let stage =
            Stage::settled(&[flags[0], flags[1], flags[2], flags[3], "--detach-delay=4s"]).await;
        let disk = stage.disk("pvc-1").await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        // The call takes effect, and is cancelled before its response.
        stage.fault("AttachDisk", &json!({"delay-after": "30s"}));
        stage
            .disks
            .attacher
            .attach(seconds(1), &disk, &one())
            .await
            .unwrap_err();
        stage
            .disks
            .attacher
            .detach(minutes(1), &disk, &one())
            .await
            .unwrap();
        assert_eq!(stage.holders(&disk), [], "{seed}");
    }
}

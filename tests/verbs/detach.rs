//! Detaching: repeatable, and never of somebody else's.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use diskplugin::cloud::{AttachDisk, DetachDisk, Ecs};
use diskplugin::disk::FailureKind;
use diskplugin::model::DiskId;

use crate::kit::{POLL_TOLERANCE, Setup, minutes, node_one, seconds, text, node_two};

async fn attached(setup: &Setup, name: &str) -> DiskId {
    let disk = setup.disk(name).await;
    setup
        .disks
        .attacher
        .attach(minutes(5), &disk, &node_one())
        .await
        .unwrap();
    disk
}

#[tokio::test(start_paused = true)]
async fn the_answer_comes_when_the_disk_is_off_and_costs_few_looks() {
    let setup = Setup::new(&["--detach-delay=3s"]);
    let disk = attached(&setup, "pvc-1").await;
    setup.cloud.clear_calls();
    let begun = Instant::now();
    setup.detach(&disk, &node_one()).await;
    assert!(begun.elapsed() <= Duration::from_secs(3) + POLL_TOLERANCE);
    assert!(setup.attachments(&disk).is_empty());
    assert_eq!(setup.cloud.calls()[0].action, "DetachDisk");
    assert_eq!(setup.calls("DetachDisk"), 1);
    assert!(setup.calls("DescribeDisks") <= 5);
}

#[tokio::test(start_paused = true)]
async fn a_second_detach_a_free_disk_a_gone_disk_and_a_gone_node_are_success() {
    for alternatives in ["first", "last", "seeded"] {
        let setup = Setup::new(&["--detach-delay=1s"]);
        setup.configure(&json!({"rules": {"alternatives": alternatives}}));
        let disk = attached(&setup, "pvc-1").await;
        setup.detach(&disk, &node_one()).await;
        setup.detach(&disk, &node_one()).await;
        setup
            .disks
            .attacher
            .detach_everywhere(minutes(1), &disk)
            .await
            .unwrap();
        setup.delete(&disk).await;
        setup.detach(&disk, &node_one()).await;
        setup
            .disks
            .attacher
            .detach_everywhere(minutes(1), &disk)
            .await
            .unwrap();
        let disk = attached(&setup, "pvc-2").await;
        assert!(setup.cloud.remove_instance(&node_one()));
        setup.detach(&disk, &node_one()).await;
        assert!(setup.attachments(&disk).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn what_another_node_holds_is_success_and_left_alone() {
    for alternatives in ["first", "last"] {
        let setup = Setup::new(&[]);
        setup.configure(&json!({"rules": {"alternatives": alternatives}}));
        let disk = attached(&setup, "pvc-1").await;
        setup.detach(&disk, &node_two()).await;
        assert_eq!(
            setup.attachments(&disk),
            [("i-one".to_owned(), "Attached".to_owned())]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn no_node_means_whichever_holds_it() {
    let setup = Setup::new(&["--detach-delay=2s"]);
    let disk = attached(&setup, "pvc-1").await;
    setup
        .disks
        .attacher
        .detach_everywhere(minutes(1), &disk)
        .await
        .unwrap();
    assert!(setup.attachments(&disk).is_empty());
}

#[tokio::test(start_paused = true)]
async fn no_node_means_also_the_one_that_the_disk_is_on_its_way_to() {
    for flags in [
        &["--attach-delay=4s"][..],
        &["--stale=2s"],
        &["--stale=2s", "--attach-delay=4s", "--detach-delay=2s"],
    ] {
        let setup = Setup::new(flags);
        let disk = setup.disk("pvc-1").await;
        let attach = AttachDisk {
            disk: disk.clone(),
            instance: node_two(),
            force: false,
            delete_with_instance: false,
        };
        let ecs = setup.cloud.ecs();
        ecs.attach_disk(minutes(1), &attach).await.unwrap();
        let off = setup
            .disks
            .attacher
            .detach_everywhere(minutes(1), &disk)
            .await;
        off.unwrap_or_else(|error| panic!("{flags:?}: {}", text(&error)));
        assert!(setup.attachments(&disk).is_empty(), "{flags:?}");
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert!(setup.attachments(&disk).is_empty(), "{flags:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_detach_that_never_ends_is_told_at_the_deadline_and_the_repeat_finds_it() {
    for alternatives in ["first", "last"] {
        let setup = Setup::new(&["--detach-delay=1s"]);
        setup.configure(&json!({"rules": {"alternatives": alternatives}}));
        let disk = attached(&setup, "pvc-1").await;
        setup.fault("DetachDisk", &json!("fails-later"));
        for _ in 0..2 {
            let begun = Instant::now();
            let late = setup
                .disks
                .attacher
                .detach(seconds(20), &disk, &node_one())
                .await
                .unwrap_err();
            assert_eq!(
                (begun.elapsed(), late.failure_kind()),
                (Duration::from_secs(20), FailureKind::DeadlineExceeded)
            );
            let seen = format!("last seen: disk {disk} is Detaching, attached to i-one");
            for part in ["detach disk", "from node i-one", &seen] {
                assert!(text(&late).contains(part), "{}", text(&late));
            }
        }
        assert!(setup.calls("DetachDisk") <= 2);
        setup.cloud.release(&disk);
        setup
            .restarted()
            .attacher
            .detach(minutes(1), &disk, &node_one())
            .await
            .unwrap();
        assert!(setup.attachments(&disk).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_looked_after_and_ends_detached() {
    for loss in [
        "reset-before",
        "reset-after",
        "empty",
        "internal-error",
        "internal-error-after",
    ] {
        for stale in ["--stale=0s", "--stale=2s"] {
            let setup = Setup::new(&["--detach-delay=3s", stale]);
            let disk = attached(&setup, "pvc-1").await;
            setup.fault("DetachDisk", &json!(loss));
            let off = setup.disks.attacher.detach(minutes(1), &disk, &node_one()).await;
            off.unwrap_or_else(|error| panic!("{loss} {stale}: {}", text(&error)));
            assert!(setup.attachments(&disk).is_empty(), "{loss} {stale}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn success_is_never_told_of_a_disk_that_is_still_attached_however_old_the_reads() {
    for seed in 0..60 {
        let seed = format!("--seed={seed}");
        let flags = [
            "--stale=0s..2s",
            "--stale-jumping",
            "--detach-delay=4s",
            &seed,
        ];
        let setup = Setup::new(&flags);
        let (busy, disk) = (
            attached(&setup, "pvc-1").await,
            attached(&setup, "pvc-2").await,
        );
        // The node is at another disk, so that the detach is refused; reads may still be of before
        // the attachment.
        let foreign = DetachDisk {
            disk: busy,
            instance: node_one(),
            delete_with_instance: false,
        };
        setup
            .cloud
            .ecs()
            .detach_disk(minutes(1), &foreign)
            .await
            .unwrap();
        let off = setup.disks.attacher.detach(minutes(1), &disk, &node_one()).await;
        off.unwrap_or_else(|error| panic!("{seed}: {}", text(&error)));
        let holders = setup.attachments(&disk);
        assert!(
            holders.iter().all(|(_, link)| link == "Detaching"),
            "{seed}: {holders:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_on_its_way_to_the_node_is_taken_off_when_it_has_arrived() {
    let setup = Setup::new(&["--attach-delay=5s"]);
    let disk = setup.disk("pvc-1").await;
    let attach = AttachDisk {
        disk: disk.clone(),
        instance: node_one(),
        force: false,
        delete_with_instance: false,
    };
    setup
        .cloud
        .ecs()
        .attach_disk(minutes(1), &attach)
        .await
        .unwrap();
    setup.detach(&disk, &node_one()).await;
    assert!(setup.attachments(&disk).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_stops_is_waited_for_and_one_that_hangs_is_told_with_the_code() {
    let setup = Setup::new(&[]);
    let disk = attached(&setup, "pvc-1").await;
    setup.configure(&json!({"delays": {"power": "5s"}}));
    setup.cloud.set_instance_power(&node_one(), false);
    setup.detach(&disk, &node_one()).await;
    let disk = attached(&setup, "pvc-2").await;
    setup.configure(&json!({"delays": {"power": "1h"}}));
    setup.cloud.set_instance_power(&node_one(), false);
    let late = setup
        .disks
        .attacher
        .detach(seconds(20), &disk, &node_one())
        .await
        .unwrap_err();
    for part in [
        disk.as_str(),
        "i-one",
        "IncorrectInstanceStatus",
        "RequestId",
    ] {
        assert!(text(&late).contains(part), "{}", text(&late));
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_of_before_the_disk_was_made_does_not_say_that_it_is_off() {
    for seed in 0..60 {
        let seed = format!("--seed={seed}");
        let quick = ["--create-delay=100ms", "--attach-delay=300ms"];
        let setup = Setup::long_running(&[quick[0], quick[1], "--detach-delay=5s", &seed]).await;
        setup.configure(&json!({"stale": {"lag": "0s..2s", "jumping": true, "percent": 30}}));
        let disk = attached(&setup, "pvc-1").await;
        setup.detach(&disk, &node_one()).await;
        assert_eq!(setup.attachments(&disk), [], "{seed}");
    }
}

/// All reads of disks return nothing for so long.
fn hide(setup: &Setup, lasts: &str) {
    let fault = json!({"action": "DescribeDisks", "for": lasts, "kind": "no-rows"});
    setup.configure(&json!({"faults": [fault]}));
}

#[tokio::test(start_paused = true)]
async fn empty_responses_do_not_prove_that_a_disk_is_detached() {
    for alternatives in ["first", "last"] {
        let setup = Setup::new(&["--detach-delay=10s"]);
        setup.configure(&json!({"rules": {"alternatives": alternatives}}));
        let disk = attached(&setup, "pvc-1").await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        setup.cloud.clear_calls();
        hide(&setup, "10m");
        let early = setup.disks.attacher.detach(seconds(8), &disk, &node_one()).await;
        let early = early.unwrap_err();
        let repeated = [FailureKind::DeadlineExceeded, FailureKind::Aborted];
        assert!(repeated.contains(&early.failure_kind()), "{}", text(&early));
        assert_eq!(setup.attachments(&disk).len(), 1);
        // The order's code says what no read does. One of three documented alternatives does not.
        let done = setup
            .disks
            .attacher
            .detach(seconds(40), &disk, &node_one())
            .await;
        if alternatives == "first" {
            done.unwrap();
        } else {
            let unproven = done.unwrap_err();
            assert!(
                repeated.contains(&unproven.failure_kind()),
                "{}",
                text(&unproven)
            );
        }
        assert_eq!(setup.attachments(&disk), []);
        assert!(
            setup.calls("DetachDisk") <= 14,
            "{}",
            setup.calls("DetachDisk")
        );
        setup.configure(&json!({"faults": []}));
        let repeated = setup.disks.attacher.detach(minutes(1), &disk, &node_one()).await;
        repeated.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_detach_that_never_ends_is_never_reported_as_done_while_nothing_can_be_read() {
    for alternatives in ["first", "last"] {
        let setup = Setup::new(&[]);
        setup.configure(&json!({"rules": {"alternatives": alternatives}}));
        let disk = attached(&setup, "pvc-1").await;
        let faults = json!([
            {"action": "DescribeDisks", "for": "10m", "kind": "no-rows"},
            {"action": "DetachDisk", "kind": "fails-later"},
        ]);
        setup.configure(&json!({"faults": faults}));
        for _ in 0..3 {
            let late = setup
                .disks
                .attacher
                .detach(seconds(30), &disk, &node_one())
                .await;
            let meaning = late.unwrap_err().failure_kind();
            assert!(
                [FailureKind::DeadlineExceeded, FailureKind::Aborted].contains(&meaning),
                "{meaning:?}"
            );
        }
        let everywhere = setup
            .disks
            .attacher
            .detach_everywhere(seconds(30), &disk)
            .await;
        let unproven = everywhere.unwrap_err();
        assert_eq!(
            unproven.failure_kind(),
            FailureKind::Unavailable,
            "{}",
            text(&unproven)
        );
        assert_eq!(setup.attachments(&disk).len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_does_not_exist_is_no_proof_while_nothing_can_be_read() {
    let setup = Setup::new(&[]);
    let disk = attached(&setup, "pvc-1").await;
    hide(&setup, "10m");
    let missing = json!({"code": {"status": 404, "code": "InvalidInstanceId.NotFound"}});
    setup.configure(&json!({"faults": [
        {"action": "DescribeDisks", "for": "10m", "kind": "no-rows"},
        {"action": "DetachDisk", "for": "10m", "kind": missing},
    ]}));
    let late = setup
        .disks
        .attacher
        .detach(seconds(20), &disk, &node_one())
        .await;
    let late = late.unwrap_err();
    assert_eq!(
        late.failure_kind(),
        FailureKind::DeadlineExceeded,
        "{}",
        text(&late)
    );
    assert!(
        text(&late).contains("InvalidInstanceId.NotFound"),
        "{}",
        text(&late)
    );
}

#[tokio::test(start_paused = true)]
async fn a_read_that_is_empty_for_a_moment_delays_a_detach_by_no_more() {
    let setup = Setup::new(&["--detach-delay=3s"]);
    let disk = attached(&setup, "pvc-1").await;
    setup.cloud.clear_calls();
    setup.fault("DescribeDisks", &json!("no-rows"));
    let begun = Instant::now();
    setup.detach(&disk, &node_one()).await;
    assert_eq!(setup.attachments(&disk), []);
    assert!(
        begun.elapsed() <= Duration::from_millis(4500),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn no_node_and_no_disk_is_success_once_that_is_proven() {
    for others in [0, 1] {
        let setup = Setup::new(&[]);
        setup.other_disks(others).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        let (disk, begun) = ("d-none".parse().unwrap(), Instant::now());
        let attacher = &setup.restarted().attacher;
        attacher.detach_everywhere(minutes(1), &disk).await.unwrap();
        let took = begun.elapsed();
        assert!(took <= Duration::from_secs(5), "{others}: {took:?}");
    }
}

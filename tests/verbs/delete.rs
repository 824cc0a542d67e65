//! Deleting: never what is attached, never what is not ours, and never leaving anything behind.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use diskplugin::cloud::{AttachDisk, Ecs};
use diskplugin::disk::{FailureKind, NewDisk};
use diskplugin::model::{Failure, Tags, tag};

use crate::kit::{Stage, minutes, one, seconds, text, wanted};

#[tokio::test(start_paused = true)]
async fn what_is_attached_is_refused_naming_its_holders_and_is_still_there() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let stage = Stage::new(&[stale]);
        let disk = stage.disk("pvc-1").await;
        stage
            .disks
            .attacher
            .attach(minutes(1), &disk, &one())
            .await
            .unwrap();
        let refused = stage
            .disks
            .provisioner
            .delete(minutes(1), &disk)
            .await
            .unwrap_err();
        assert!(
            refused.failure() == Failure::DiskStillAttached,
            "{refused:?}"
        );
        assert_eq!(refused.failure_kind(), FailureKind::FailedPrecondition);
        assert!(text(&refused).contains("i-one"), "{refused}");
        assert_eq!(
            (
                stage.row(&disk)["status"].as_str(),
                stage.calls("DeleteDisk")
            ),
            (Some("In_use"), 0)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_just_being_attached_is_refused_and_is_still_there() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let stage = Stage::new(&["--attach-delay=3s", stale]);
        let disk = stage.disk("pvc-1").await;
        let attach = AttachDisk {
            disk: disk.clone(),
            instance: one(),
            force: false,
            delete_with_instance: false,
        };
        stage
            .cloud
            .ecs()
            .attach_disk(minutes(1), &attach)
            .await
            .unwrap();
        let refused = stage
            .disks
            .provisioner
            .delete(minutes(1), &disk)
            .await
            .unwrap_err();
        assert!(
            refused.failure() == Failure::DiskStillAttached,
            "{refused:?}"
        );
        assert_eq!(stage.row(&disk)["status"], "In_use");
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_of_before_it_was_detached_does_not_keep_it() {
    for seed in 0..20 {
        let seed = format!("--seed={seed}");
        let stage = Stage::new(&[
            "--stale=0s..2s",
            "--stale-jumping",
            "--detach-delay=2s",
            &seed,
        ]);
        let disk = stage.disk("pvc-1").await;
        stage
            .disks
            .attacher
            .attach(minutes(1), &disk, &one())
            .await
            .unwrap();
        stage
            .disks
            .attacher
            .detach(minutes(1), &disk, &one())
            .await
            .unwrap();
        let deleted = stage.disks.provisioner.delete(minutes(1), &disk).await;
        deleted.unwrap_or_else(|error| panic!("{seed}: {}", text(&error)));
    }
}

#[tokio::test(start_paused = true)]
async fn what_carries_no_tag_or_another_clusters_is_refused_and_is_still_there() {
    let stage = Stage::new(&[]);
    let untagged = stage.foreign(Tags::new()).await;
    let theirs = stage
        .neighbour()
        .provisioner
        .create(minutes(1), &wanted("pvc-1"))
        .await
        .unwrap()
        .id;
    for (disk, owner) in [(untagged, "missing"), (theirs, "neighbour")] {
        let refused = stage
            .disks
            .provisioner
            .delete(minutes(1), &disk)
            .await
            .unwrap_err();
        assert_eq!(
            refused.failure_kind(),
            FailureKind::FailedPrecondition,
            "{refused:?}"
        );
        for part in [disk.as_str(), owner, tag::CLUSTER, "cluster test"] {
            assert!(text(&refused).contains(part), "{refused}");
        }
        assert_eq!(stage.row(&disk)["status"], "Available");
    }
    assert_eq!(stage.calls("DeleteDisk"), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_success_however_the_cloud_says_it() {
    for flags in [&[][..], &["--missing-is-error"]] {
        let stage = Stage::new(flags);
        stage
            .disks
            .provisioner
            .delete(minutes(1), &"d-none".parse().unwrap())
            .await
            .unwrap();
        let disk = stage.disk("pvc-1").await;
        for _ in 0..2 {
            stage
                .disks
                .provisioner
                .delete(minutes(1), &disk)
                .await
                .unwrap();
        }
        assert!(stage.rows().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn somebody_elses_delete_in_between_is_success() {
    let stage = Stage::new(&["--missing-is-error", "--stale=2s"]);
    let disk = stage.disk("pvc-1").await;
    // Old reads still show it.
    stage
        .cloud
        .ecs()
        .delete_disk(minutes(1), &disk)
        .await
        .unwrap();
    stage
        .disks
        .provisioner
        .delete(minutes(1), &disk)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_new_disk_that_reads_do_not_show_yet_is_deleted_all_the_same() {
    for flags in [&["--stale=2s"][..], &["--stale=0s..2s", "--stale-jumping"]] {
        let stage = Stage::new(flags);
        let ours = Tags::from([(tag::CLUSTER.to_owned(), "test".to_owned())]);
        let disk = stage.foreign(ours).await;
        stage
            .disks
            .provisioner
            .delete(minutes(1), &disk)
            .await
            .unwrap();
        assert!(stage.rows().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_is_still_made_or_still_filled_is_waited_for() {
    for alternatives in ["first", "last"] {
        let stage = Stage::new(&["--create-delay=2s", "--load-delay=20s"]);
        stage.configure(&json!({"rules": {"alternatives": alternatives}}));
        let source = stage.disk("source").await;
        let snapshot = stage.snapshot("snap", &source).await;
        let new = NewDisk {
            snapshot: Some(snapshot),
            ..wanted("pvc-1")
        };
        stage
            .disks
            .provisioner
            .create(seconds(1), &new)
            .await
            .unwrap_err();
        let disk = stage
            .rows()
            .into_iter()
            .find(|row| row["id"] != source.as_str())
            .unwrap();
        let disk = disk["id"].as_str().unwrap().parse().unwrap();
        let begun = Instant::now();
        stage
            .disks
            .provisioner
            .delete(minutes(1), &disk)
            .await
            .unwrap();
        assert!(
            begun.elapsed() >= Duration::from_secs(20),
            "{:?}",
            begun.elapsed()
        );
        assert_eq!(stage.only_disk(), source);
        // An attempt a tick and no more.
        assert!(
            stage.calls("DeleteDisk") <= 46,
            "{}",
            stage.calls("DeleteDisk")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_is_filled_beyond_the_deadline_is_told_with_the_code() {
    let stage = Stage::new(&["--load-delay=10m"]);
    let source = stage.disk("source").await;
    let snapshot = stage.snapshot("snap", &source).await;
    let new = NewDisk {
        snapshot: Some(snapshot),
        ..wanted("pvc-1")
    };
    let disk = stage
        .disks
        .provisioner
        .create(minutes(1), &new)
        .await
        .unwrap()
        .id;
    let late = stage
        .disks
        .provisioner
        .delete(seconds(30), &disk)
        .await
        .unwrap_err();
    for part in [
        disk.as_str(),
        "IncorrectDiskStatus.Initializing",
        "RequestId",
    ] {
        assert!(text(&late).contains(part), "{}", text(&late));
    }
    assert_eq!(late.failure_kind(), FailureKind::Aborted);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_unclear_and_the_repeat_finds_it_gone() {
    for loss in ["reset-before", "reset-after", "internal-error-after"] {
        let stage = Stage::new(&["--missing-is-error", "--stale=2s"]);
        let disk = stage.disk("pvc-1").await;
        stage.fault("DeleteDisk", &json!(loss));
        let lost = stage
            .disks
            .provisioner
            .delete(minutes(1), &disk)
            .await
            .unwrap_err();
        assert_eq!(lost.failure_kind(), FailureKind::Unavailable);
        stage
            .disks
            .provisioner
            .delete(minutes(1), &disk)
            .await
            .unwrap();
        assert!(stage.rows().is_empty(), "{loss}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_must_wait_for_long_is_tried_seldom() {
    let stage = Stage::new(&["--cut-delay=60s", "--attach-delay=5s"]);
    let disk = stage.disk("pvc-1").await;
    let snapshot = crate::kit::new_snapshot("snap", &disk);
    let cutting = stage
        .disks
        .snapshotter
        .create(crate::kit::seconds(1), &snapshot);
    cutting.await.unwrap_err();
    let other = stage.disk("pvc-2").await;
    // Also while others look at orders of theirs more often.
    let busy = async {
        for _ in 0..15 {
            stage
                .disks
                .attacher
                .attach(minutes(1), &other, &one())
                .await
                .unwrap();
            stage
                .disks
                .attacher
                .detach(minutes(1), &other, &one())
                .await
                .unwrap();
        }
    };
    let (deleted, ()) = tokio::join!(stage.disks.provisioner.delete(minutes(5), &disk), busy);
    deleted.unwrap();
    assert!(stage.row(&disk).is_null());
    let tries = stage.calls("DeleteDisk");
    assert!((10..=30).contains(&tries), "{tries} attempts in a minute");
}

/// `DescribeDisks` returns 200 and no rows, as it does without the permission.
fn blind(stage: &Stage, seconds: u64) {
    let fault = json!({"action": "DescribeDisks", "for": format!("{seconds}s"), "kind": "no-rows"});
    stage.configure(&json!({"faults": [fault]}));
}

#[tokio::test(start_paused = true)]
async fn an_empty_response_does_not_pass_for_a_deleted_disk() {
    for others in [0, 1] {
        let stage = Stage::new(&["--missing-is-error"]);
        for number in 0..others {
            stage.disk(&format!("other-{number}")).await;
        }
        let disk = stage.disk("pvc-1").await;
        let fresh = stage.restarted();
        tokio::time::sleep(Duration::from_secs(60)).await;
        blind(&stage, 30);
        for disks in [&stage.disks, &fresh] {
            let refused = disks.provisioner.delete(seconds(9), &disk).await;
            let refused = refused.unwrap_err();
            assert_eq!(
                refused.failure_kind(),
                FailureKind::Unavailable,
                "{refused:?}"
            );
            for part in ["ABSENCE_UNPROVEN", "ecs:DescribeDisks", disk.as_str()] {
                assert!(text(&refused).contains(part), "{}", text(&refused));
            }
        }
        assert_eq!(stage.row(&disk)["status"], "Available");
        tokio::time::sleep(Duration::from_secs(30)).await;
        fresh.provisioner.delete(minutes(1), &disk).await.unwrap();
        assert!(stage.row(&disk).is_null());
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_does_not_exist_is_proven_absent_with_three_calls() {
    for others in [0, 1] {
        let stage = Stage::new(&[]);
        for number in 0..others {
            stage.disk(&format!("other-{number}")).await;
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        stage.cloud.clear_calls();
        let begun = Instant::now();
        let none = "d-none".parse().unwrap();
        let fresh = stage.restarted();
        fresh.provisioner.delete(minutes(1), &none).await.unwrap();
        assert!(
            begun.elapsed() <= Duration::from_millis(3500),
            "{:?}",
            begun.elapsed()
        );
        let calls = stage.cloud.calls();
        assert!(calls.len() <= 3, "{calls:#?}");
        assert!(calls.iter().all(|call| call.action != "DeleteDisk"));
    }
}

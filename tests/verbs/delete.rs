//! Deleting: never what is attached, never what is not ours, and never leaving anything behind.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use diskplugin::cloud::{AttachDisk, Ecs};
use diskplugin::disk::{FailureKind, NewDisk};
use diskplugin::model::{Failure, Tags, tag};

use crate::kit::{Setup, minutes, node_one, seconds, text, new_disk};

#[tokio::test(start_paused = true)]
async fn what_is_attached_is_refused_naming_its_holders_and_is_still_there() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::new(&[stale]);
        let disk = setup.disk("pvc-1").await;
        setup.attach(&disk, &node_one()).await;
        let refused = setup
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
                setup.row(&disk)["status"].as_str(),
                setup.calls("DeleteDisk")
            ),
            (Some("In_use"), 0)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_just_being_attached_is_refused_and_is_still_there() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::new(&["--attach-delay=3s", stale]);
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
        let refused = setup
            .disks
            .provisioner
            .delete(minutes(1), &disk)
            .await
            .unwrap_err();
        assert!(
            refused.failure() == Failure::DiskStillAttached,
            "{refused:?}"
        );
        assert_eq!(setup.row(&disk)["status"], "In_use");
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_of_before_it_was_detached_does_not_keep_it() {
    for seed in 0..20 {
        let seed = format!("--seed={seed}");
        let setup = Setup::new(&[
            "--stale=0s..2s",
            "--stale-jumping",
            "--detach-delay=2s",
            &seed,
        ]);
        let disk = setup.disk("pvc-1").await;
        setup.attach(&disk, &node_one()).await;
        setup.detach(&disk, &node_one()).await;
        let deleted = setup.disks.provisioner.delete(minutes(1), &disk).await;
        deleted.unwrap_or_else(|error| panic!("{seed}: {}", text(&error)));
    }
}

#[tokio::test(start_paused = true)]
async fn what_carries_no_tag_or_another_clusters_is_refused_and_is_still_there() {
    let setup = Setup::new(&[]);
    let untagged = setup.unmanaged_disk(Tags::new()).await;
    let theirs = setup
        .other_cluster()
        .provisioner
        .create(minutes(1), &new_disk("pvc-1"))
        .await
        .unwrap()
        .id;
    for (disk, owner) in [(untagged, "missing"), (theirs, "other-cluster")] {
        let refused = setup
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
        assert_eq!(setup.row(&disk)["status"], "Available");
    }
    assert_eq!(setup.calls("DeleteDisk"), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_success_however_the_cloud_says_it() {
    for flags in [&[][..], &["--missing-is-error"]] {
        let setup = Setup::new(flags);
        setup
            .disks
            .provisioner
            .delete(minutes(1), &"d-none".parse().unwrap())
            .await
            .unwrap();
        let disk = setup.disk("pvc-1").await;
        for _ in 0..2 {
            setup.delete(&disk).await;
        }
        assert!(setup.rows().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn somebody_elses_delete_in_between_is_success() {
    let setup = Setup::new(&["--missing-is-error", "--stale=2s"]);
    let disk = setup.disk("pvc-1").await;
    // Old reads still show it.
    setup
        .cloud
        .ecs()
        .delete_disk(minutes(1), &disk)
        .await
        .unwrap();
    setup.delete(&disk).await;
}

#[tokio::test(start_paused = true)]
async fn a_new_disk_that_reads_do_not_show_yet_is_deleted_all_the_same() {
    for flags in [&["--stale=2s"][..], &["--stale=0s..2s", "--stale-jumping"]] {
        let setup = Setup::new(flags);
        let ours = Tags::from([(tag::CLUSTER.to_owned(), "test".to_owned())]);
        let disk = setup.unmanaged_disk(ours).await;
        setup.delete(&disk).await;
        assert!(setup.rows().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_is_still_made_or_still_filled_is_waited_for() {
    for alternatives in ["first", "last"] {
        let setup = Setup::new(&["--create-delay=2s", "--load-delay=20s"]);
        setup.configure(&json!({"rules": {"alternatives": alternatives}}));
        let source = setup.disk("source").await;
        let snapshot = setup.snapshot("snap", &source).await;
        let new = NewDisk {
            snapshot: Some(snapshot),
            ..new_disk("pvc-1")
        };
        setup
            .disks
            .provisioner
            .create(seconds(1), &new)
            .await
            .unwrap_err();
        let disk = setup
            .rows()
            .into_iter()
            .find(|row| row["id"] != source.as_str())
            .unwrap();
        let disk = disk["id"].as_str().unwrap().parse().unwrap();
        let begun = Instant::now();
        setup.delete(&disk).await;
        assert!(
            begun.elapsed() >= Duration::from_secs(20),
            "{:?}",
            begun.elapsed()
        );
        assert_eq!(setup.only_disk(), source);
        // An attempt a tick and no more.
        assert!(
            setup.calls("DeleteDisk") <= 46,
            "{}",
            setup.calls("DeleteDisk")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_is_filled_beyond_the_deadline_is_told_with_the_code() {
    let setup = Setup::new(&["--load-delay=10m"]);
    let source = setup.disk("source").await;
    let snapshot = setup.snapshot("snap", &source).await;
    let new = NewDisk {
        snapshot: Some(snapshot),
        ..new_disk("pvc-1")
    };
    let disk = setup.create(&new).await
        .id;
    let late = setup
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
        let setup = Setup::new(&["--missing-is-error", "--stale=2s"]);
        let disk = setup.disk("pvc-1").await;
        setup.fault("DeleteDisk", &json!(loss));
        let lost = setup
            .disks
            .provisioner
            .delete(minutes(1), &disk)
            .await
            .unwrap_err();
        assert_eq!(lost.failure_kind(), FailureKind::Unavailable);
        setup.delete(&disk).await;
        assert!(setup.rows().is_empty(), "{loss}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_must_wait_for_long_is_tried_seldom() {
    let setup = Setup::new(&["--cut-delay=60s", "--attach-delay=5s"]);
    let disk = setup.disk("pvc-1").await;
    let snapshot = crate::kit::new_snapshot("snap", &disk);
    let cutting = setup
        .disks
        .snapshotter
        .create(crate::kit::seconds(1), &snapshot);
    cutting.await.unwrap_err();
    let other = setup.disk("pvc-2").await;
    // Also while others look at orders of theirs more often.
    let busy = async {
        for _ in 0..15 {
            setup.attach(&other, &node_one()).await;
            setup.detach(&other, &node_one()).await;
        }
    };
    let (deleted, ()) = tokio::join!(setup.disks.provisioner.delete(minutes(5), &disk), busy);
    deleted.unwrap();
    assert!(setup.row(&disk).is_null());
    let tries = setup.calls("DeleteDisk");
    assert!((10..=30).contains(&tries), "{tries} attempts in a minute");
}

/// `DescribeDisks` returns 200 and no rows, as it does without the permission.
fn blind(setup: &Setup, seconds: u64) {
    let fault = json!({"action": "DescribeDisks", "for": format!("{seconds}s"), "kind": "no-rows"});
    setup.configure(&json!({"faults": [fault]}));
}

#[tokio::test(start_paused = true)]
async fn an_empty_response_does_not_pass_for_a_deleted_disk() {
    for others in [0, 1] {
        let setup = Setup::new(&["--missing-is-error"]);
        setup.other_disks(others).await;
        let disk = setup.disk("pvc-1").await;
        let fresh = setup.restarted();
        tokio::time::sleep(Duration::from_secs(60)).await;
        blind(&setup, 30);
        for disks in [&setup.disks, &fresh] {
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
        assert_eq!(setup.row(&disk)["status"], "Available");
        tokio::time::sleep(Duration::from_secs(30)).await;
        fresh.provisioner.delete(minutes(1), &disk).await.unwrap();
        assert!(setup.row(&disk).is_null());
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_does_not_exist_is_proven_absent_with_three_calls() {
    for others in [0, 1] {
        let setup = Setup::new(&[]);
        setup.other_disks(others).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        setup.cloud.clear_calls();
        let begun = Instant::now();
        let none = "d-none".parse().unwrap();
        let fresh = setup.restarted();
        fresh.provisioner.delete(minutes(1), &none).await.unwrap();
        assert!(
            begun.elapsed() <= Duration::from_millis(3500),
            "{:?}",
            begun.elapsed()
        );
        let calls = setup.cloud.calls();
        assert!(calls.len() <= 3, "{calls:#?}");
        assert!(calls.iter().all(|call| call.action != "DeleteDisk"));
    }
}

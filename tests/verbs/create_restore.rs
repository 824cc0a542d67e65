//! Creating from a snapshot.

use serde_json::json;

use diskplugin::disk::{Error, FailureKind, NewDisk};

use diskplugin::model::Category;

use crate::kit::{Stage, between, gib, minutes, new_snapshot, seconds, text, wanted, zone};

#[tokio::test(start_paused = true)]
async fn a_smaller_request_grows_to_its_snapshot() {
    let stage = Stage::new(&[]);
    let large = NewDisk {
        size: gib(50),
        ..wanted("source")
    };
    let source = stage
        .disks
        .provisioner
        .create(minutes(1), &large)
        .await
        .unwrap();
    let snapshot = stage.snapshot("snap", &source.id).await;
    let new = NewDisk {
        snapshot: Some(snapshot.clone()),
        ..wanted("pvc-1")
    };
    let disk = stage
        .disks
        .provisioner
        .create(minutes(1), &new)
        .await
        .unwrap();
    assert_eq!(
        (disk.size.0, disk.source_snapshot.clone()),
        (50, Some(snapshot))
    );
    let again = stage
        .restarted()
        .provisioner
        .create(minutes(1), &new)
        .await
        .unwrap();
    assert_eq!(again.id, disk.id);
}

#[tokio::test(start_paused = true)]
async fn a_limit_below_the_snapshot_is_out_of_range() {
    let stage = Stage::new(&[]);
    let large = NewDisk {
        size: gib(50),
        ..wanted("source")
    };
    let source = stage
        .disks
        .provisioner
        .create(minutes(1), &large)
        .await
        .unwrap();
    let snapshot = stage.snapshot("snap", &source.id).await;
    let new = NewDisk {
        size: between(20, 49),
        snapshot: Some(snapshot.clone()),
        ..wanted("pvc-1")
    };
    let refused = stage
        .disks
        .provisioner
        .create(minutes(1), &new)
        .await
        .unwrap_err();
    assert!(matches!(refused, Error::OutOfRange { .. }), "{refused:?}");
    assert!(
        text(&refused).contains(&format!("snapshot {snapshot} needs 50 GiB")),
        "{refused}"
    );
    assert_eq!(stage.only_disk(), source.id);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_is_not_ready_is_told_and_no_disk_is_bought() {
    let stage = Stage::new(&["--cut-delay=30s"]);
    let source = stage.disk("source").await;
    let begun = stage
        .disks
        .snapshotter
        .create(seconds(5), &new_snapshot("snap", &source))
        .await;
    assert_eq!(
        begun.unwrap_err().failure_kind(),
        FailureKind::DeadlineExceeded
    );
    let id = stage.cloud.state()["snapshots"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let new = NewDisk {
        snapshot: Some(id.parse().unwrap()),
        ..wanted("pvc-1")
    };
    let refused = stage
        .disks
        .provisioner
        .create(minutes(1), &new)
        .await
        .unwrap_err();
    assert_eq!(refused.failure_kind(), FailureKind::FailedPrecondition);
    assert!(text(&refused).contains(&id), "{refused}");
    assert_eq!(stage.only_disk(), source);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_of_a_moment_ago_is_found_however_old_the_reads() {
    for seed in 0..20 {
        let seed = format!("--seed={seed}");
        let stage = Stage::new(&["--stale=0s..2s", "--stale-jumping", &seed]);
        let source = stage.disk("source").await;
        let snapshot = stage.snapshot("snap", &source).await;
        let new = NewDisk {
            snapshot: Some(snapshot),
            ..wanted("pvc-1")
        };
        let made = stage.disks.provisioner.create(minutes(1), &new).await;
        made.unwrap_or_else(|error| panic!("{seed}: {}", text(&error)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_was_told_to_be_ready_is_restored_however_old_the_reads() {
    for seed in 0..20 {
        let seed = format!("--seed={seed}");
        let stage = Stage::new(&["--stale=0s..2s", "--stale-jumping", "--cut-delay=3s", &seed]);
        let source = stage.disk("source").await;
        let snapshot = stage.snapshot("snap", &source).await;
        let new = NewDisk {
            snapshot: Some(snapshot),
            ..wanted("pvc-1")
        };
        let made = stage.disks.provisioner.create(minutes(1), &new).await;
        made.unwrap_or_else(|error| panic!("{seed}: {}", text(&error)));
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_snapshot_is_not_found_by_name() {
    let stage = Stage::new(&[]);
    let new = NewDisk {
        snapshot: Some("s-none".parse().unwrap()),
        ..wanted("pvc-1")
    };
    let refused = stage
        .disks
        .provisioner
        .create(minutes(1), &new)
        .await
        .unwrap_err();
    assert_eq!(refused.failure_kind(), FailureKind::NotFound);
    assert!(text(&refused).contains("s-none"), "{refused}");
    assert_eq!(stage.calls("CreateDisk"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_disk_whose_snapshot_went_while_its_answer_was_lost_is_still_found() {
    let stage = Stage::new(&[]);
    let source = stage.disk("source").await;
    let snapshot = stage.snapshot("snap", &source).await;
    let new = NewDisk {
        snapshot: Some(snapshot.clone()),
        ..wanted("pvc-1")
    };
    stage.fault("CreateDisk", &json!("reset-after"));
    stage
        .disks
        .provisioner
        .create(minutes(1), &new)
        .await
        .unwrap_err();
    stage
        .disks
        .snapshotter
        .delete(minutes(1), &snapshot)
        .await
        .unwrap();
    let disk = stage
        .restarted()
        .provisioner
        .create(minutes(1), &new)
        .await
        .unwrap();
    assert_eq!(disk.source_snapshot, Some(snapshot));
    assert_eq!(stage.rows().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_is_restored_into_another_zone_category_and_size() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let stage = Stage::new(&[stale]);
        let source = stage.disk("source").await;
        let snapshot = stage.snapshot("snap", &source).await;
        stage
            .disks
            .provisioner
            .delete(minutes(1), &source)
            .await
            .unwrap();
        let new = NewDisk {
            snapshot: Some(snapshot.clone()),
            places: vec![zone("b").into()],
            categories: vec![Category::CloudSsd],
            size: gib(50),
            ..wanted("pvc-1")
        };
        let disk = stage
            .disks
            .provisioner
            .create(minutes(1), &new)
            .await
            .unwrap();
        assert_eq!((disk.zone, disk.size.0), (Some(zone("b")), 50));
        assert_eq!(disk.category, Category::CloudSsd);
        assert_eq!(disk.source_snapshot, Some(snapshot));
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_from_an_encrypted_snapshot_is_encrypted_unasked() {
    let stage = Stage::new(&[]);
    let secret = NewDisk {
        encrypted: true,
        ..wanted("source")
    };
    let source = stage
        .disks
        .provisioner
        .create(minutes(1), &secret)
        .await
        .unwrap();
    let snapshot = stage.snapshot("snap", &source.id).await;
    let new = NewDisk {
        snapshot: Some(snapshot),
        ..wanted("pvc-1")
    };
    let disk = stage
        .disks
        .provisioner
        .create(minutes(1), &new)
        .await
        .unwrap();
    assert!(disk.encrypted);
    let again = stage
        .restarted()
        .provisioner
        .create(minutes(1), &new)
        .await
        .unwrap();
    assert_eq!(again.id, disk.id);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_in_the_archive_is_told_with_the_clouds_word() {
    let stage = Stage::new(&[]);
    let source = stage.disk("source").await;
    let snapshot = stage.snapshot("snap", &source).await;
    stage.configure(&json!({"holds": {"archived": [snapshot.as_str()]}}));
    let new = NewDisk {
        snapshot: Some(snapshot),
        ..wanted("pvc-1")
    };
    let refused = stage
        .disks
        .provisioner
        .create(minutes(1), &new)
        .await
        .unwrap_err();
    assert!(
        text(&refused).contains("InvalidSnapshotId.NotReady"),
        "{}",
        text(&refused)
    );
    assert_eq!(stage.only_disk(), source);
}

//! Creating from a snapshot.

use serde_json::json;

use diskplugin::disk::{Error, FailureKind, NewDisk};

use diskplugin::model::Category;

use crate::kit::{Setup, between, gib, minutes, new_snapshot, seconds, text, new_disk, zone};

#[tokio::test(start_paused = true)]
async fn a_smaller_request_grows_to_its_snapshot() {
    let setup = Setup::new(&[]);
    let large = NewDisk {
        size: gib(50),
        ..new_disk("source")
    };
    let source = setup.create(&large).await;
    let snapshot = setup.snapshot("snap", &source.id).await;
    let new = NewDisk {
        snapshot: Some(snapshot.clone()),
        ..new_disk("pvc-1")
    };
    let disk = setup.create(&new).await;
    assert_eq!(
        (disk.size.0, disk.source_snapshot.clone()),
        (50, Some(snapshot))
    );
    let again = setup
        .restarted()
        .provisioner
        .create(minutes(1), &new)
        .await
        .unwrap();
    assert_eq!(again.id, disk.id);
}

#[tokio::test(start_paused = true)]
async fn a_limit_below_the_snapshot_is_out_of_range() {
    let setup = Setup::new(&[]);
    let large = NewDisk {
        size: gib(50),
        ..new_disk("source")
    };
    let source = setup.create(&large).await;
    let snapshot = setup.snapshot("snap", &source.id).await;
    let new = NewDisk {
        size: between(20, 49),
        snapshot: Some(snapshot.clone()),
        ..new_disk("pvc-1")
    };
    let refused = setup
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
    assert_eq!(setup.only_disk(), source.id);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_is_not_ready_is_told_and_no_disk_is_bought() {
    let setup = Setup::new(&["--cut-delay=30s"]);
    let source = setup.disk("source").await;
    let begun = setup
        .disks
        .snapshotter
        .create(seconds(5), &new_snapshot("snap", &source))
        .await;
    assert_eq!(
        begun.unwrap_err().failure_kind(),
        FailureKind::DeadlineExceeded
    );
    let id = setup.cloud.state()["snapshots"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let new = NewDisk {
        snapshot: Some(id.parse().unwrap()),
        ..new_disk("pvc-1")
    };
    let refused = setup
        .disks
        .provisioner
        .create(minutes(1), &new)
        .await
        .unwrap_err();
    assert_eq!(refused.failure_kind(), FailureKind::FailedPrecondition);
    assert!(text(&refused).contains(&id), "{refused}");
    assert_eq!(setup.only_disk(), source);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_of_a_moment_ago_is_found_however_old_the_reads() {
    for seed in 0..20 {
        let seed = format!("--seed={seed}");
        let setup = Setup::new(&["--stale=0s..2s", "--stale-jumping", &seed]);
        let source = setup.disk("source").await;
        let snapshot = setup.snapshot("snap", &source).await;
        let new = NewDisk {
            snapshot: Some(snapshot),
            ..new_disk("pvc-1")
        };
        let made = setup.disks.provisioner.create(minutes(1), &new).await;
        made.unwrap_or_else(|error| panic!("{seed}: {}", text(&error)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_was_told_to_be_ready_is_restored_however_old_the_reads() {
    for seed in 0..20 {
        let seed = format!("--seed={seed}");
        let setup = Setup::new(&["--stale=0s..2s", "--stale-jumping", "--cut-delay=3s", &seed]);
        let source = setup.disk("source").await;
        let snapshot = setup.snapshot("snap", &source).await;
        let new = NewDisk {
            snapshot: Some(snapshot),
            ..new_disk("pvc-1")
        };
        let made = setup.disks.provisioner.create(minutes(1), &new).await;
        made.unwrap_or_else(|error| panic!("{seed}: {}", text(&error)));
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_snapshot_is_not_found_by_name() {
    let setup = Setup::new(&[]);
    let new = NewDisk {
        snapshot: Some("s-none".parse().unwrap()),
        ..new_disk("pvc-1")
    };
    let refused = setup
        .disks
        .provisioner
        .create(minutes(1), &new)
        .await
        .unwrap_err();
    assert_eq!(refused.failure_kind(), FailureKind::NotFound);
    assert!(text(&refused).contains("s-none"), "{refused}");
    assert_eq!(setup.calls("CreateDisk"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_disk_whose_snapshot_went_while_its_answer_was_lost_is_still_found() {
    let setup = Setup::new(&[]);
    let source = setup.disk("source").await;
    let snapshot = setup.snapshot("snap", &source).await;
    let new = NewDisk {
        snapshot: Some(snapshot.clone()),
        ..new_disk("pvc-1")
    };
    setup.fault("CreateDisk", &json!("reset-after"));
    setup
        .disks
        .provisioner
        .create(minutes(1), &new)
        .await
        .unwrap_err();
    setup
        .disks
        .snapshotter
        .delete(minutes(1), &snapshot)
        .await
        .unwrap();
    let disk = setup
        .restarted()
        .provisioner
        .create(minutes(1), &new)
        .await
        .unwrap();
    assert_eq!(disk.source_snapshot, Some(snapshot));
    assert_eq!(setup.rows().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_is_restored_into_another_zone_category_and_size() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::new(&[stale]);
        let source = setup.disk("source").await;
        let snapshot = setup.snapshot("snap", &source).await;
        setup.delete(&source).await;
        let new = NewDisk {
            snapshot: Some(snapshot.clone()),
            places: vec![zone("b").into()],
            categories: vec![Category::CloudSsd],
            size: gib(50),
            ..new_disk("pvc-1")
        };
        let disk = setup.create(&new).await;
        assert_eq!((disk.zone, disk.size.0), (Some(zone("b")), 50));
        assert_eq!(disk.category, Category::CloudSsd);
        assert_eq!(disk.source_snapshot, Some(snapshot));
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_from_an_encrypted_snapshot_is_encrypted_unasked() {
    let setup = Setup::new(&[]);
    let secret = NewDisk {
        encrypted: true,
        ..new_disk("source")
    };
    let source = setup.create(&secret).await;
    let snapshot = setup.snapshot("snap", &source.id).await;
    let new = NewDisk {
        snapshot: Some(snapshot),
        ..new_disk("pvc-1")
    };
    let disk = setup.create(&new).await;
    assert!(disk.encrypted);
    let again = setup
        .restarted()
        .provisioner
        .create(minutes(1), &new)
        .await
        .unwrap();
    assert_eq!(again.id, disk.id);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_in_the_archive_is_told_with_the_clouds_word() {
    let setup = Setup::new(&[]);
    let source = setup.disk("source").await;
    let snapshot = setup.snapshot("snap", &source).await;
    setup.configure(&json!({"holds": {"archived": [snapshot.as_str()]}}));
    let new = NewDisk {
        snapshot: Some(snapshot),
        ..new_disk("pvc-1")
    };
    let refused = setup
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
    assert_eq!(setup.only_disk(), source);
}

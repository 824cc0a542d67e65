//! Reads that lag for longer than usual, or jump between old and new.

use std::time::Duration;

use serde_json::json;

use diskplugin::model::DiskId;

use super::{code, is_final, pass};
use crate::group::new_group;
use crate::kit::{Stage, minutes, new_snapshot, one, seconds, text, two, wanted};

#[tokio::test(start_paused = true)]
async fn reads_that_lag_for_long_create_no_second_disk() {
    for lag in ["9s", "12s", "20s"] {
        let stage = Stage::new(&[]).with_system_disk();
        stage.disk("other").await;
        pass(60).await;
        stage.configure(&json!({"stale": {"lag": lag}}));
        let outcome = stage
            .disks
            .provisioner
            .create(seconds(45), &wanted("pvc-1"))
            .await;
        drop(outcome);
        assert_eq!(stage.rows().len(), 2, "{lag}");
    }
}

#[tokio::test(start_paused = true)]
async fn reads_that_lag_for_long_take_no_second_snapshot() {
    for lag in ["9s", "12s"] {
        let stage = Stage::new(&[]);
        let source = stage.disk("source").await;
        stage
            .disks
            .attacher
            .attach(minutes(1), &source, &one())
            .await
            .unwrap();
        stage.snapshot("other", &source).await;
        pass(60).await;
        stage.configure(&json!({"stale": {"lag": lag}}));
        let outcome = stage
            .disks
            .snapshotter
            .create(seconds(45), &new_snapshot("one", &source))
            .await;
        drop(outcome);
        let count = stage.cloud.state()["snapshots"].as_array().unwrap().len();
        assert_eq!(count, 2, "{lag}");
    }
}

#[tokio::test(start_paused = true)]
async fn reads_that_lag_for_long_take_no_second_group_and_lose_none() {
    for lag in ["2s", "5s", "9s", "12s"] {
        let stage = Stage::new(&["--cut-delay=1s"]);
        let mut sources = Vec::new();
        for name in ["one", "two"] {
            let disk = stage.disk(name).await;
            stage
                .disks
                .attacher
                .attach(minutes(1), &disk, &one())
                .await
                .unwrap();
            sources.push(disk);
        }
        let of: Vec<_> = sources.iter().collect();
        let groups = &stage.disks.snapshotter;
        groups
            .create_group(minutes(1), &new_group("other", &of))
            .await
            .unwrap();
        pass(60).await;
        stage.configure(&json!({"stale": {"lag": lag}}));
        let new = new_group("group", &of);
        let mut final_code = None;
        for _ in 0..3 {
            match groups.create_group(seconds(45), &new).await {
                Ok(_) => break,
                Err(error) if is_final(&error) => final_code = Some(text(&error)),
                Err(_) => {}
            }
        }
        let count = stage.cloud.state()["groups"].as_array().map_or(0, Vec::len);
        assert_eq!((count, final_code), (2, None), "{lag}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_young_disk_is_not_reported_deleted_while_reads_lag() {
    for lag in ["2s", "5s", "9s"] {
        let stage = Stage::new(&[]);
        stage.disk("other").await;
        pass(60).await;
        stage.configure(&json!({"stale": {"lag": lag}}));
        let new = wanted("pvc-1");
        let call = stage.disks.provisioner.create(seconds(45), &new);
        let made = async {
            while stage.rows().len() < 2 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            biased;
            () = made => {}
            _ = call => panic!("ended"),
        }
        let rows = stage.rows();
        let row = rows.iter().find(|row| row["name"] == "pvc-1").unwrap();
        let id: DiskId = row["id"].as_str().unwrap().parse().unwrap();
        let restarted = stage.restarted();
        let outcome = restarted.provisioner.delete(seconds(30), &id).await;
        assert!(
            outcome.is_err() || stage.rows().len() == 1,
            "lag {lag}: OK, and the disk is there"
        );
    }
}

/// Reads are not monotonic: a new value is followed by an old one.
#[tokio::test(start_paused = true)]
async fn reads_that_jump_create_no_second_disk_and_lose_none() {
    for seed in 0..20 {
        for lag in ["0s..2s", "0s..3s"] {
            let seed = format!("--seed={seed}");
            let stage = Stage::new(&[
                &seed,
                "--create-delay=2s",
                "--attach-delay=1s",
                "--detach-delay=1s",
            ]);
            stage.disk("other").await;
            pass(60).await;
            stage.configure(&json!({"stale": {"lag": lag, "jumping": true}}));
            let outcome = stage
                .disks
                .provisioner
                .create(minutes(2), &wanted("pvc-1"))
                .await;
            let made = outcome.unwrap_or_else(|error| panic!("{lag} {seed}: {}", text(&error)));
            assert_eq!(stage.rows().len(), 2, "{lag} {seed}");
            for node in [one(), two(), one()] {
                let attached = stage
                    .disks
                    .attacher
                    .attach(minutes(2), &made.id, &node)
                    .await;
                if let Err(error) = attached {
                    panic!("{lag} {seed}: {}", text(&error));
                }
                assert_eq!(stage.holders(&made.id).len(), 1, "{lag} {seed}");
                stage
                    .disks
                    .attacher
                    .detach(minutes(2), &made.id, &node)
                    .await
                    .unwrap();
                assert_eq!(stage.holders(&made.id), [], "{lag} {seed}");
            }
            stage
                .disks
                .provisioner
                .delete(minutes(2), &made.id)
                .await
                .unwrap();
            assert_eq!(stage.rows().len(), 1, "{lag} {seed}");
        }
    }
}

/// The same node again, by another process, while reads jump and the node is busy.
#[tokio::test(start_paused = true)]
async fn another_process_takes_no_jumping_row_for_an_attachment() {
    let mut wrong = Vec::new();
    for seed in 0..30 {
        let flag = format!("--seed={seed}");
        let stage = Stage::new(&[&flag, "--attach-delay=1s", "--detach-delay=300ms"]);
        let disk = stage.disk("pvc-1").await;
        pass(60).await;
        stage.configure(&json!({"stale": {"lag": "0s..2s", "jumping": true}}));
        stage
            .disks
            .attacher
            .attach(minutes(1), &disk, &one())
            .await
            .unwrap();
        pass(60).await;
        stage
            .disks
            .attacher
            .detach(minutes(1), &disk, &one())
            .await
            .unwrap();
        let restarted = stage.restarted();
        stage.faults("AttachDisk", 1, &code(403, "InvalidOperation.Conflict"));
        let row = restarted.attacher.attach(seconds(60), &disk, &one()).await;
        if row.is_ok() && stage.holders(&disk).is_empty() {
            wrong.push(seed);
        }
    }
    assert!(
        wrong.is_empty(),
        "OK, and the disk is attached to no node: seeds {wrong:?}"
    );
}

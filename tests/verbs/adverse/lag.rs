//! Reads that lag for longer than usual, or jump between old and new.

use std::time::Duration;

use serde_json::json;

use diskplugin::model::DiskId;

use super::{code, is_final, pass};
use crate::group::new_group;
use crate::kit::{Setup, minutes, new_snapshot, node_one, seconds, text, node_two, new_disk};

#[tokio::test(start_paused = true)]
async fn reads_that_lag_for_long_create_no_second_disk() {
    for lag in ["9s", "12s", "20s"] {
        let setup = Setup::new(&[]).with_system_disk();
        setup.disk("other").await;
        pass(60).await;
        setup.configure(&json!({"stale": {"lag": lag}}));
        let outcome = setup
            .disks
            .provisioner
            .create(seconds(45), &new_disk("pvc-1"))
            .await;
        drop(outcome);
        assert_eq!(setup.rows().len(), 2, "{lag}");
    }
}

#[tokio::test(start_paused = true)]
async fn reads_that_lag_for_long_take_no_second_snapshot() {
    for lag in ["9s", "12s"] {
        let setup = Setup::new(&[]);
        let source = setup.disk("source").await;
        setup.attach(&source, &node_one()).await;
        setup.snapshot("other", &source).await;
        pass(60).await;
        setup.configure(&json!({"stale": {"lag": lag}}));
        let outcome = setup
            .disks
            .snapshotter
            .create(seconds(45), &new_snapshot("one", &source))
            .await;
        drop(outcome);
        let count = setup.cloud.state()["snapshots"].as_array().unwrap().len();
        assert_eq!(count, 2, "{lag}");
    }
}

#[tokio::test(start_paused = true)]
async fn reads_that_lag_for_long_take_no_second_group_and_lose_none() {
    for lag in ["2s", "5s", "9s", "12s"] {
        let setup = Setup::new(&["--cut-delay=1s"]);
        let mut sources = Vec::new();
        for name in ["one", "two"] {
            let disk = setup.disk(name).await;
            setup.attach(&disk, &node_one()).await;
            sources.push(disk);
        }
        let of: Vec<_> = sources.iter().collect();
        let groups = &setup.disks.snapshotter;
        groups
            .create_group(minutes(1), &new_group("other", &of))
            .await
            .unwrap();
        pass(60).await;
        setup.configure(&json!({"stale": {"lag": lag}}));
        let new = new_group("group", &of);
        let mut final_code = None;
        for _ in 0..3 {
            match groups.create_group(seconds(45), &new).await {
                Ok(_) => break,
                Err(error) if is_final(&error) => final_code = Some(text(&error)),
                Err(_) => {}
            }
        }
        let count = setup.cloud.state()["groups"].as_array().map_or(0, Vec::len);
        assert_eq!((count, final_code), (2, None), "{lag}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_young_disk_is_not_reported_deleted_while_reads_lag() {
    for lag in ["2s", "5s", "9s"] {
        let setup = Setup::new(&[]);
        setup.disk("other").await;
        pass(60).await;
        setup.configure(&json!({"stale": {"lag": lag}}));
        let new = new_disk("pvc-1");
        let call = setup.disks.provisioner.create(seconds(45), &new);
        let made = async {
            while setup.rows().len() < 2 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            biased;
            () = made => {}
            _ = call => panic!("ended"),
        }
        let rows = setup.rows();
        let row = rows.iter().find(|row| row["name"] == "pvc-1").unwrap();
        let id: DiskId = row["id"].as_str().unwrap().parse().unwrap();
        let restarted = setup.restarted();
        let outcome = restarted.provisioner.delete(seconds(30), &id).await;
        assert!(
            outcome.is_err() || setup.rows().len() == 1,
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
            let setup = Setup::new(&[
                &seed,
                "--create-delay=2s",
                "--attach-delay=1s",
                "--detach-delay=1s",
            ]);
            setup.disk("other").await;
            pass(60).await;
            setup.configure(&json!({"stale": {"lag": lag, "jumping": true}}));
            let outcome = setup
                .disks
                .provisioner
                .create(minutes(2), &new_disk("pvc-1"))
                .await;
            let made = outcome.unwrap_or_else(|error| panic!("{lag} {seed}: {}", text(&error)));
            assert_eq!(setup.rows().len(), 2, "{lag} {seed}");
            for node in [node_one(), node_two(), node_one()] {
                let attached = setup
                    .disks
                    .attacher
                    .attach(minutes(2), &made.id, &node)
                    .await;
                if let Err(error) = attached {
                    panic!("{lag} {seed}: {}", text(&error));
                }
                assert_eq!(setup.attachments(&made.id).len(), 1, "{lag} {seed}");
                setup
                    .disks
                    .attacher
                    .detach(minutes(2), &made.id, &node)
                    .await
                    .unwrap();
                assert_eq!(setup.attachments(&made.id), [], "{lag} {seed}");
            }
            setup
                .disks
                .provisioner
                .delete(minutes(2), &made.id)
                .await
                .unwrap();
            assert_eq!(setup.rows().len(), 1, "{lag} {seed}");
        }
    }
}

/// The same node again, by another process, while reads jump and the node is busy.
#[tokio::test(start_paused = true)]
async fn another_process_takes_no_jumping_row_for_an_attachment() {
    let mut wrong = Vec::new();
    for seed in 0..30 {
        let flag = format!("--seed={seed}");
        let setup = Setup::new(&[&flag, "--attach-delay=1s", "--detach-delay=300ms"]);
        let disk = setup.disk("pvc-1").await;
        pass(60).await;
        setup.configure(&json!({"stale": {"lag": "0s..2s", "jumping": true}}));
        setup.attach(&disk, &node_one()).await;
        pass(60).await;
        setup.detach(&disk, &node_one()).await;
        let restarted = setup.restarted();
        setup.faults("AttachDisk", 1, &code(403, "InvalidOperation.Conflict"));
        let row = restarted.attacher.attach(seconds(60), &disk, &node_one()).await;
        if row.is_ok() && setup.attachments(&disk).is_empty() {
            wrong.push(seed);
        }
    }
    assert!(
        wrong.is_empty(),
        "OK, and the disk is attached to no node: seeds {wrong:?}"
    );
}

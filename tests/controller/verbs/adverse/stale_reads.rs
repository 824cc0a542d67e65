//! Reads that lag for longer than usual, or alternate between old and new values.

use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn long_read_lag_creates_no_second_disk() {
    for lag in ["9s", "12s", "20s"] {
        let setup = Setup::new(&[]);
        setup.disk("other").await;
        sleep(60).await;
        setup.configure(&json!({"stale": {"lag": lag}}));
        drop(setup.try_create(seconds(45), &new_disk("pvc-1")).await);
        assert_eq!(setup.rows().len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn long_read_lag_creates_no_second_snapshot() {
    for lag in ["9s", "12s"] {
        let setup = Setup::new(&[]);
        let source = setup.attached("source").await;
        setup.snapshot("other", &source).await;
        sleep(60).await;
        setup.configure(&json!({"stale": {"lag": lag}}));
        drop(setup.try_snapshot(seconds(45), &new_snapshot("one", &source)).await);
        assert_eq!(setup.snapshots().len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn long_read_lag_creates_no_second_snapshot_group_and_loses_none() {
    for lag in ["2s", "5s", "9s", "12s"] {
        let setup = Setup::new(&["--cut-delay=1s"]);
        let (one, two) = (setup.attached("one").await, setup.attached("two").await);
        let sources = [&one, &two];
        setup.create_group(&new_group("other", &sources)).await;
        sleep(60).await;
        setup.configure(&json!({"stale": {"lag": lag}}));
        let new = new_group("group", &sources);
        let mut final_code = None;
        for _ in 0..3 {
            match setup.try_group(seconds(45), &new).await {
                Ok(_) => break,
                Err(error) if is_final(&error) => final_code = Some(text(&error)),
                Err(_) => {}
            }
        }
        assert_eq!((setup.groups().len(), final_code), (2, None));
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_disk_is_not_reported_deleted_while_reads_lag() {
    for lag in ["2s", "5s", "9s"] {
        let setup = Setup::new(&[]);
        setup.disk("other").await;
        sleep(60).await;
        setup.configure(&json!({"stale": {"lag": lag}}));
        let new = new_disk("pvc-1");
        create_until_row(&setup, setup.try_create(seconds(45), &new)).await;
        let rows = setup.rows();
        let row = rows.iter().find(|row| row["name"] == "pvc-1").unwrap();
        let id: DiskId = row["id"].as_str().unwrap().parse().unwrap();
        let restarted = setup.restarted();
        let outcome = restarted.try_delete(seconds(30), &id).await;
        assert!(
            outcome.is_err() || setup.rows().len() == 1,
            "lag {lag}: OK, but the disk exists"
        );
    }
}

/// Reads are not monotonic: a new value can be followed by an old one.
#[tokio::test(start_paused = true)]
async fn jumping_reads_create_no_second_disk_and_lose_none() {
    for seed in 0..20 {
        for lag in ["0s..2s", "0s..3s"] {
            let seed = format!("--seed={seed}");
            let setup = Setup::new(&[&seed, "--create-delay=2s", "--attach-delay=1s", "--detach-delay=1s"]);
            setup.disk("other").await;
            sleep(60).await;
            setup.configure(&json!({"stale": {"lag": lag, "jumping": true}}));
            let outcome = setup.try_create(minutes(2), &new_disk("pvc-1")).await;
            let created = outcome.unwrap_or_else(|error| panic!("{lag} {seed}: {}", text(&error)));
            assert_eq!(setup.rows().len(), 2);
            for node in [node_one(), node_two(), node_one()] {
                let attached = setup.try_attach(minutes(2), &created.id, &node).await;
                if let Err(error) = attached {
                    panic!("{lag} {seed}: {}", text(&error));
                }
                assert_eq!(setup.attachments(&created.id).len(), 1);
                setup.try_detach(minutes(2), &created.id, &node).await.unwrap();
                assert_eq!(setup.attachments(&created.id), []);
            }
            setup.try_delete(minutes(2), &created.id).await.unwrap();
            assert_eq!(setup.rows().len(), 1);
        }
    }
}

/// Another process attaches to the same node again while reads jump and the node is busy.
#[tokio::test(start_paused = true)]
async fn another_process_does_not_report_an_attachment_from_a_stale_row() {
    let mut wrong = Vec::new();
    for seed in 0..30 {
        let flag = format!("--seed={seed}");
        let setup = Setup::new(&[&flag, "--attach-delay=1s", "--detach-delay=300ms"]);
        let disk = setup.disk("pvc-1").await;
        sleep(60).await;
        setup.configure(&json!({"stale": {"lag": "0s..2s", "jumping": true}}));
        setup.attach(&disk, &node_one()).await;
        sleep(60).await;
        setup.detach(&disk, &node_one()).await;
        let restarted = setup.restarted();
        setup.faults("AttachDisk", 1, &error_code(403, "InvalidOperation.Conflict"));
        let row = restarted.try_attach(seconds(60), &disk, &node_one()).await;
        if row.is_ok() && setup.attachments(&disk).is_empty() {
            wrong.push(seed);
        }
    }
    assert!(wrong.is_empty(), "OK, but the disk is not attached: seeds {wrong:?}");
}

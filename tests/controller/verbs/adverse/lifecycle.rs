//! Volume lifecycles under faults, with canceled calls and alternating processes.

use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn two_processes_that_create_and_delete_concurrently_leave_no_disk() {
    for seed in 0..40 {
        let flag = format!("--seed={seed}");
        let setup = Setup::new(&[&flag, "--create-delay=1s"]);
        setup.disk("other").await;
        sleep(60).await;
        setup.configure(&json!({"stale": {"lag": "0s..2s", "jumping": true, "tags": "2s"}}));
        let standby = setup.restarted();
        let new = new_disk("pvc-1");
        let (one, two) = tokio::join!(setup.try_create(minutes(1), &new), async {
            tokio::time::sleep(Duration::from_millis(seed * 37)).await;
            standby.try_create(minutes(1), &new).await
        },);
        let (one, two) = (one.unwrap(), two.unwrap());
        assert_eq!(one.id, two.id);
        let (_, _) = tokio::join!(
            setup.try_delete(minutes(1), &one.id),
            standby.try_delete(minutes(1), &one.id),
        );
        sleep(10).await;
        assert_eq!(setup.rows().len(), 1);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failover {
    /// One process, whose calls are canceled.
    None,
    /// The process is killed, and a new one continues.
    Restart,
}

/// Repeats a call, each time with another timeout and process, until it succeeds.
async fn repeat<T>(
    mut attempt: impl FnMut() -> (Duration, Arc<DiskServices>),
    call: impl AsyncFn(Arc<DiskServices>) -> Result<T, Error>,
) -> T {
    loop {
        let (limit, process) = attempt();
        if let Ok(Ok(done)) = timeout(limit, call(process)).await {
            return done;
        }
        sleep(1).await;
    }
}

/// Runs volume lifecycles with canceled calls, faults, and reads that lag by at most two seconds.
async fn run_lifecycles(failover: Failover) {
    let mut wrong = BTreeMap::<String, Vec<u64>>::new();
    for seed in 0..60_u64 {
        let flag = format!("--seed={seed}");
        let setup = Setup::with_nodes(
            4,
            &[&flag, "--create-delay=1s", "--attach-delay=1s", "--detach-delay=1s"],
        );
        setup.disk("other").await;
        sleep(3600).await;
        setup.create(&new_disk("warm")).await;
        sleep(60).await;
        setup.configure(&json!({
            "stale": {"lag": "0s..2s", "jumping": true, "tags": "1s"},
            "rules": {"token_burn_percent": 20},
            "faults": [
                percent("CreateDisk", 10, &json!("reset-after")),
                percent("CreateDisk", 15, &error_code(403, "OperationDenied.NoStock")),
                percent("AttachDisk", 10, &json!("reset-after")),
                percent("AttachDisk", 15, &error_code(403, "InvalidOperation.Conflict")),
                percent("DetachDisk", 10, &json!("reset-after")),
                percent("DescribeDisks", 5, &json!("no-rows")),
                percent("DeleteDisk", 10, &json!("reset-after")),
            ],
        }));
        let mut record = |finding: &str| wrong.entry(finding.to_owned()).or_default().push(seed);
        let term = |n: u64| Duration::from_millis(1300 + (seed * 7919 + n * 104_729) % 5000);
        let mut call = 0_u64;
        let mut process = Arc::clone(&setup.disks);
        // Ten processes are killed in their first call; the next one lives for 60 calls, so that it can prove an
        // absence.
        let mut attempt = || {
            call += 1;
            if failover == Failover::Restart && call % 70 <= 10 {
                process = setup.restarted().disks;
            }
            (term(call), Arc::clone(&process))
        };
        for n in 0..6 {
            let name = format!("pvc-{n}");
            let count = || {
                let rows = setup.rows().into_iter();
                rows.filter(|row| row["name"] == name.as_str()).count()
            };
            let new = new_disk(&name);
            let created = loop {
                let (limit, leader) = attempt();
                match timeout(limit, leader.provisioner.create(seconds(30), &new)).await {
                    Ok(Ok(disk)) => break disk.id,
                    Ok(Err(error)) if is_final(&error) && count() > 0 => {
                        record("final code while the disk exists");
                    }
                    _ => {}
                }
                sleep(1).await;
                if count() > 1 {
                    record("two disks with one name");
                }
            };
            if count() > 1 {
                record("two disks with one name");
            }
            for round in 0..3_u64 {
                // Usually the same node again, as for a StatefulSet.
                let node: InstanceId = format!("i-{}", (seed + round / 2) % 4).parse().unwrap();
                let is_attached = || {
                    let attachments = setup.attachments(&created);
                    attachments.iter().any(|(holder, _)| *holder == node.as_str())
                };
                repeat(&mut attempt, async |leader| {
                    leader.attacher.attach(seconds(60), &created, &node).await
                })
                .await;
                if !is_attached() {
                    record("attach succeeded, but the disk is not attached");
                }
                repeat(&mut attempt, async |leader| {
                    leader.detacher.detach(seconds(60), &created, &node).await
                })
                .await;
                if is_attached() {
                    record("detach succeeded, but the disk is attached");
                }
            }
            repeat(&mut attempt, async |leader| {
                leader.provisioner.delete(seconds(60), &created).await
            })
            .await;
            if count() > 0 {
                record("delete succeeded, but the disk exists");
            }
        }
    }
    assert!(wrong.is_empty(), "seeds: {wrong:#?}");
}

#[tokio::test(start_paused = true)]
async fn canceled_calls_produce_no_wrong_result() {
    run_lifecycles(Failover::None).await;
}

#[tokio::test(start_paused = true)]
async fn restarted_processes_produce_no_wrong_result() {
    run_lifecycles(Failover::Restart).await;
}

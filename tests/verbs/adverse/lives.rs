//! Lives of volumes under faults, with calls that are cut off and processes that take turns.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use diskplugin::model::InstanceId;

use super::{code, is_final, pass};
use crate::kit::{Setup, minutes, seconds, new_disk};

#[tokio::test(start_paused = true)]
async fn two_processes_that_create_and_delete_at_once_leave_nothing() {
    for seed in 0..40 {
        let flag = format!("--seed={seed}");
        let setup = Setup::new(&[&flag, "--create-delay=1s"]);
        setup.disk("other").await;
        pass(60).await;
        setup.configure(&json!({"stale": {"lag": "0s..2s", "jumping": true, "tags": "2s"}}));
        let standby = setup.restarted();
        let new = new_disk("pvc-1");
        let (one, two) = tokio::join!(setup.disks.provisioner.create(minutes(1), &new), async {
            tokio::time::sleep(Duration::from_millis(seed * 37)).await;
            standby.provisioner.create(minutes(1), &new).await
        },);
        let (one, two) = (one.unwrap(), two.unwrap());
        assert_eq!(one.id, two.id, "{seed}");
        let (_, _) = tokio::join!(
            setup.disks.provisioner.delete(minutes(1), &one.id),
            standby.provisioner.delete(minutes(1), &one.id),
        );
        pass(10).await;
        assert_eq!(setup.rows().len(), 1, "{seed}");
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// One process, whose calls are cut off.
    None,
    /// A process is killed, and a fresh one goes on.
    Restart,
    /// Another process that has run for long takes over, as with several replicas of the chart.
    Standby,
}

/// Lives of volumes with calls that are cut off, faults, and reads that lag by at most two seconds.
async fn lives(change: Change) {
    let mut wrong = BTreeMap::<String, Vec<u64>>::new();
    for seed in 0..60_u64 {
        let flag = format!("--seed={seed}");
        let setup = Setup::with_nodes(
            4,
            &[
                &flag,
                "--create-delay=1s",
                "--attach-delay=1s",
                "--detach-delay=1s",
            ],
        );
        setup.disk("other").await;
        // A replica that loses its lease does not get it back within a minute.
        let replicas: Vec<_> = (0..64).map(|_| setup.restarted()).collect();
        pass(3600).await;
        setup.create(&new_disk("warm")).await;
        pass(60).await;
        let percent = |action: &str, percent: u8, kind: Value| json!({"action": action, "percent": percent, "kind": kind});
        setup.configure(&json!({
            "stale": {"lag": "0s..2s", "jumping": true, "tags": "1s"},
            "rules": {"token_burn_percent": 20},
            "faults": [
                percent("CreateDisk", 10, json!("reset-after")),
                percent("CreateDisk", 15, code(403, "OperationDenied.NoStock")),
                percent("AttachDisk", 10, json!("reset-after")),
                percent("AttachDisk", 15, code(403, "InvalidOperation.Conflict")),
                percent("DetachDisk", 10, json!("reset-after")),
                percent("DescribeDisks", 5, json!("no-rows")),
                percent("DeleteDisk", 10, json!("reset-after")),
            ],
        }));
        let mut complain = |what: &str| wrong.entry(what.to_owned()).or_default().push(seed);
        let term = |n: u64| Duration::from_millis(1300 + (seed * 7919 + n * 104_729) % 5000);
        let mut turn = 0_u64;
        let next = |turn: u64| match change {
            Change::None => Arc::clone(&setup.disks),
            Change::Restart => setup.restarted(),
            Change::Standby => Arc::clone(&replicas[usize::try_from(turn % 64).unwrap()]),
        };
        for n in 0..6 {
            let name = format!("pvc-{n}");
            let of_name = || {
                setup
                    .rows()
                    .into_iter()
                    .filter(|row| row["name"] == name.as_str())
                    .count()
            };
            let new = new_disk(&name);
            let made = loop {
                turn += 1;
                let leader = next(turn);
                match tokio::time::timeout(term(turn), leader.provisioner.create(seconds(30), &new))
                    .await
                {
                    Ok(Ok(disk)) => break disk.id,
                    Ok(Err(error)) if is_final(&error) && of_name() > 0 => {
                        complain("final code while the disk exists");
                    }
                    _ => {}
                }
                if of_name() > 1 {
                    complain("two disks of one name");
                }
            };
            if of_name() > 1 {
                complain("two disks of one name");
            }
            for round in 0..3_u64 {
                // Mostly the same node again, as a StatefulSet does.
                let node: InstanceId = format!("i-{}", (seed + round / 2) % 4).parse().unwrap();
                loop {
                    turn += 1;
                    let leader = next(turn);
                    let outcome = tokio::time::timeout(
                        term(turn),
                        leader.attacher.attach(seconds(60), &made, &node),
                    )
                    .await;
                    if matches!(outcome, Ok(Ok(_))) {
                        break;
                    }
                }
                if !setup
                    .attachments(&made)
                    .iter()
                    .any(|(holder, _)| *holder == node.as_str())
                {
                    complain("attached, though to no node");
                }
                loop {
                    turn += 1;
                    let leader = next(turn);
                    let outcome = tokio::time::timeout(
                        term(turn),
                        leader.attacher.detach(seconds(60), &made, &node),
                    )
                    .await;
                    if matches!(outcome, Ok(Ok(()))) {
                        break;
                    }
                }
                if setup
                    .attachments(&made)
                    .iter()
                    .any(|(holder, _)| *holder == node.as_str())
                {
                    complain("detached, though still held");
                }
            }
            loop {
                turn += 1;
                let leader = next(turn);
                let outcome =
                    tokio::time::timeout(term(turn), leader.provisioner.delete(seconds(60), &made))
                        .await;
                if matches!(outcome, Ok(Ok(()))) {
                    break;
                }
            }
            if of_name() > 0 {
                complain("deleted, though there");
            }
        }
    }
    assert!(wrong.is_empty(), "seeds: {wrong:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_process_whose_calls_are_cut_off_tells_nothing_wrong() {
    lives(Change::None).await;
}

#[tokio::test(start_paused = true)]
async fn processes_that_are_killed_and_started_again_tell_nothing_wrong() {
    lives(Change::Restart).await;
}

#[tokio::test(start_paused = true)]
async fn leaders_that_take_turns_tell_nothing_wrong() {
    lives(Change::Standby).await;
}

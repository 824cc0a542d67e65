//! Random sequences against a model: whatever goes wrong on the way, the retries end where a clean
//! run would have ended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::{JoinSet, LocalSet};

use diskplugin::disk::{DiskServices, Error, FailureKind};
use diskplugin::model::{DiskId, Failure, InstanceId};

use crate::kit::{Setup, available, minutes, new_disk, node_one, node_two, text};
use crate::rng::Rng;

/// Runs of so many volumes, each of so many steps.
const RUNS: u64 = 50;
const VOLUMES: u64 = 5;
const STEPS: u64 = 10;

/// What one volume must be in the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Volume {
    disk: Option<DiskId>,
    node: Option<InstanceId>,
}

/// Faults at random calls of the four writes and of the reads.
fn faults(rng: &mut Rng) -> Value {
    let kinds = [
        json!("internal-error"),
        json!("internal-error-after"),
        json!("reset-before"),
        json!("reset-after"),
        json!("truncated"),
        json!("html"),
        json!("service-unavailable"),
        json!({"delay-before": "3s"}),
        json!({"delay-after": "3s"}),
        json!({"code": {"status": 400, "code": "Throttling"}}),
    ];
    let actions = [
        "CreateDisk",
        "AttachDisk",
        "DetachDisk",
        "DeleteDisk",
        "DescribeDisks",
    ];
    let fault = |_| {
        let action = rng.choose(&actions);
        let kind = rng.choose(&kinds);
        json!({"action": action, "from": 1 + rng.below(20), "times": 1 + rng.below(3), "kind": kind})
    };
    let mut faults: Vec<Value> = (0..25).map(fault).collect();
    // An attachment that is accepted and falls back, and a disk that is lost while it is made.
    for action in ["AttachDisk", "CreateDisk"] {
        faults.push(json!({"action": action, "from": 1 + rng.below(10), "kind": "fails-later"}));
    }
    faults.into()
}

fn setup(seed: u64, rng: &mut Rng) -> Setup {
    let stale = rng.choose(&["--stale=0s", "--stale=1s", "--stale=2s", "--stale=0s..2s"]);
    let mut flags = vec![
        stale,
        "--create-delay=0s..3s",
        "--attach-delay=100ms..4s",
        "--detach-delay=1s..5s",
    ];
    flags.push(rng.choose(&[
        "--missing-is-error",
        "--parallel-attach",
        "--delete-delay=1s",
    ]));
    let jumping = stale.contains("..");
    flags.extend(jumping.then_some("--stale-jumping"));
    let seed = format!("--seed={seed}");
    flags.push(&seed);
    let setup = Setup::new(&flags).with_system_disk();
    setup.configure(
        &json!({"faults": faults(rng), "rules": {"token_burn_percent": rng.below(101)}}),
    );
    setup
}

/// Repeats a verb as a sidecar does, until it succeeds or the answer is for good.
async fn retried<T>(
    rng: &mut Rng,
    mut verb: impl AsyncFnMut(diskplugin::base::Deadline) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut last = String::new();
    for attempt in 0..100 {
        let patience = Duration::from_secs(3 + rng.below(40));
        let outcome = verb(diskplugin::base::Deadline::after(patience)).await;
        match outcome {
            Err(error) if passes(&error) => {
                last = text(&error);
                // The pauses grow: what may have been created is known for certain only after a minute.
                let pause = rng.below(1500 + 50 * attempt);
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
            outcome => return outcome,
        }
    }
    panic!("a hundred attempts in vain: {last}");
}

fn passes(error: &Error) -> bool {
    match error.failure_kind() {
        FailureKind::Unavailable
        | FailureKind::Aborted
        | FailureKind::DeadlineExceeded
        | FailureKind::Internal => true,
        // Stock comes back.
        FailureKind::ResourceExhausted => true,
        FailureKind::NotFound
        | FailureKind::AlreadyExists
        | FailureKind::FailedPrecondition
        | FailureKind::OutOfRange
        | FailureKind::PermissionDenied
        | FailureKind::Unauthenticated
        | FailureKind::InvalidArgument => false,
    }
}

/// One volume's life: steps that the orchestrator would ask for in this order, each retried to its
/// end. Returns what it must be.
async fn live(processes: Vec<Arc<DiskServices>>, number: u64, mut rng: Rng) -> Volume {
    let mut volume = Volume::default();
    let (mut generation, mut process) = (0, 0);
    for _ in 0..STEPS {
        if rng.below(3) == 0 {
            // The driver is restarted, which takes longer than reads lag.
            process = (process + 1) % processes.len();
            tokio::time::sleep(Duration::from_secs(3)).await;
        }
        let disks = &processes[process];
        let Some(disk) = volume.disk.clone() else {
            generation += 1;
            let name = format!("pvc-{number}-{generation}");
            let new = if rng.below(2) == 0 {
                new_disk(&name)
            } else {
                available(&name)
            };
            let made = retried(&mut rng, async |soon| {
                disks.provisioner.create(soon, &new).await
            })
            .await;
            volume.disk = Some(
                made.unwrap_or_else(|error| panic!("{name}: {}", text(&error)))
                    .id,
            );
            continue;
        };
        let target = rng.choose(&[node_one(), node_two()]);
        match (rng.below(4), &volume.node) {
            (0, Some(_)) => {
                let rejected = async |soon| match disks.provisioner.delete(soon, &disk).await {
                    // There was time for a look of before it was attached only, and for the cloud's own
                    // rejection: the orchestrator asks again.
                    Err(error) if text(&error).contains("DiskStillAttached") => Ok(false),
                    outcome => outcome.map(|()| true),
                };
                let mut kept = Ok(false);
                for _ in 0..10 {
                    kept = retried(&mut rng, rejected).await;
                    if !matches!(kept, Ok(false)) {
                        break;
                    }
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                assert!(
                    matches!(&kept, Err(error) if error.failure() == Failure::DiskStillAttached),
                    "delete of {volume:?}: {kept:?}"
                );
            }
            (0, None) => {
                let gone = async |soon| match disks.provisioner.delete(soon, &disk).await {
                    // A read of before it was detached, and perhaps of before it was deleted: the
                    // orchestrator asks again.
                    Err(error) if error.failure() == Failure::DiskStillAttached => Ok(false),
                    outcome => outcome.map(|()| true),
                };
                for _ in 0..10 {
                    if retried(&mut rng, gone).await.unwrap() {
                        volume = Volume::default();
                        break;
                    }
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                assert_eq!(volume.disk, None, "{disk} could not be deleted");
            }
            (1 | 2, None) => {
                let attach = async |soon| match disks.attacher.attach(soon, &disk, &target).await {
                    // A read of before it was detached there: the orchestrator asks again.
                    Err(Error::InUseElsewhere { .. }) => Ok(false),
                    outcome => outcome.map(|_| true),
                };
                for _ in 0..10 {
                    match retried(&mut rng, attach).await {
                        Ok(true) => volume.node = Some(target.clone()),
                        Ok(false) => {
                            tokio::time::sleep(Duration::from_secs(1)).await;
                            continue;
                        }
                        // A category that these nodes do not take.
                        Err(error) if error.failure_kind() == FailureKind::FailedPrecondition => {}
                        Err(error) => panic!("attach of {volume:?}: {}", text(&error)),
                    }
                    break;
                }
            }
            (1 | 2, Some(node)) => {
                let made = retried(&mut rng, async |soon| {
                    disks.attacher.attach(soon, &disk, &target).await
                })
                .await;
                match made {
                    Ok(_) => assert_eq!(*node, target, "taken from a node"),
                    Err(Error::InUseElsewhere { .. }) => assert_ne!(*node, target),
                    Err(error) => panic!("attach of {volume:?}: {}", text(&error)),
                }
            }
            (_, node) => {
                let node = node.clone().unwrap_or(target);
                let off = retried(&mut rng, async |soon| {
                    disks.attacher.detach(soon, &disk, &node).await
                })
                .await;
                off.unwrap_or_else(|error| panic!("detach of {volume:?}: {}", text(&error)));
                volume.node = None;
            }
        }
    }
    volume
}

/// The disks as the cloud has them, and who holds each.
fn found(setup: &Setup) -> BTreeMap<String, Vec<String>> {
    let rows = setup.rows();
    let rows = rows.iter().filter(|row| row["status"] != "Deleting");
    rows.map(|row| {
        let id = row["id"].as_str().unwrap().to_owned();
        let disk: DiskId = id.parse().unwrap();
        (
            id,
            setup
                .attachments(&disk)
                .into_iter()
                .map(|(node, _)| node)
                .collect(),
        )
    })
    .collect()
}

#[expect(
    clippy::future_not_send,
    reason = "the lives of one run share the test's thread"
)]
async fn run(seed: u64) {
    let mut rng = Rng(seed);
    let setup = setup(seed, &mut rng);
    let processes = vec![
        Arc::clone(&setup.disks),
        setup.restarted(),
        setup.restarted(),
    ];
    let (local, mut lives) = (LocalSet::new(), JoinSet::new());
    for number in 0..VOLUMES {
        let rng = Rng(rng.below(u64::MAX));
        lives.spawn_local_on(live(processes.clone(), number, rng), &local);
    }
    let stock = async {
        // What is sold out changes all the time.
        loop {
            let sold = rng.choose(&[
                json!([]),
                json!(["*/cloud_essd"]),
                json!(["*/cloud_efficiency"]),
            ]);
            setup.configure(&json!({"out_of_stock": sold}));
            tokio::time::sleep(Duration::from_millis(500 + rng.below(4000))).await;
        }
    };
    let all = local.run_until(lives.join_all());
    let volumes = tokio::select! {
        biased;
        volumes = all => volumes,
        () = stock => unreachable!(),
    };
    // What is still on its way arrives.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let expected: BTreeMap<String, Vec<String>> = volumes
        .into_iter()
        .filter_map(|volume| {
            let node = volume.node.map(|node| node.to_string());
            Some((volume.disk?.to_string(), node.into_iter().collect()))
        })
        .collect();
    assert_eq!(found(&setup), expected, "seed {seed}");
    // Nothing is left that could not be taken down.
    for disk in expected.keys() {
        let disk: DiskId = disk.parse().unwrap();
        setup.configure(&json!({"faults": [], "stale": {"lag": "0s"}}));
        setup
            .disks
            .attacher
            .detach_everywhere(minutes(1), &disk)
            .await
            .unwrap();
        setup.delete(&disk).await;
    }
    assert!(found(&setup).is_empty(), "seed {seed}");
}

#[tokio::test(start_paused = true)]
async fn whatever_goes_wrong_on_the_way_retries_end_where_a_clean_run_would() {
    for seed in 0..RUNS {
        run(seed).await;
    }
}

//! Random operations under faults and restarts: with retries, they end in the same state as without faults.

use tokio::task::LocalSet;

use crate::verbs::crash::is_retryable_or_out_of_stock;
use crate::verbs::kit::*;

// Number of seeds, volumes per seed and operations per volume.
const RUNS: u64 = 50;
const VOLUMES: u64 = 5;
const STEPS: u64 = 10;
const ATTEMPTS: u64 = 200;

/// The expected state of a volume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Volume {
    disk: Option<DiskId>,
    node: Option<InstanceId>,
}

/// Faults at random calls.
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
        error_code(400, "Throttling"),
    ];
    let actions = ["CreateDisk", "AttachDisk", "DetachDisk", "DeleteDisk", "DescribeDisks"];
    let fault = |_| {
        let action = rng.choose(&actions);
        let kind = rng.choose(&kinds);
        // The client's retries pass a few errors, but not thirty. As many throttling errors would close the API for
        // half an hour.
        let times = match kind["code"].is_null() {
            true => rng.choose(&[1, 2, 3, 30]),
            false => 1 + rng.below(3),
        };
        json!({"action": action, "from": 1 + rng.below(20), "times": times, "kind": kind})
    };
    let mut faults: Vec<Value> = (0..25).map(fault).collect();
    // An attachment and a disk that are accepted and fail later.
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
    flags.push(rng.choose(&["--missing-is-error", "--parallel-attach", "--delete-delay=1s"]));
    let jumping = stale.contains("..");
    flags.extend(jumping.then_some("--stale-jumping"));
    let seed = format!("--seed={seed}");
    flags.push(&seed);
    let setup = Setup::new(&flags);
    setup.configure(&json!({"faults": faults(rng), "rules": {"token_burn_percent": rng.below(101)}}));
    setup
}

/// Repeats a call as a sidecar does, until it succeeds or the error is final.
async fn retry<T>(rng: &mut Rng, mut call: impl AsyncFnMut(Deadline) -> Result<T, Error>) -> Result<T, Error> {
    let mut last = String::new();
    for attempt in 0..ATTEMPTS {
        let timeout = Duration::from_secs(3 + rng.below(40));
        match call(Deadline::after(timeout)).await {
            Err(error) if is_retryable_or_out_of_stock(&error) => {
                last = text(&error);
                // The pauses grow: an ambiguous creation is resolved only after a minute, a lost disk after ten.
                let pause = rng.below(2000 + 100 * attempt.min(100));
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
            outcome => return outcome,
        }
    }
    panic!("{ATTEMPTS} attempts failed: {last}");
}

/// Executes a random sequence of operations on a volume, each with retries. Returns the expected state.
async fn run_volume(processes: Vec<Arc<DiskServices>>, number: u64, mut rng: Rng) -> Volume {
    let mut volume = Volume::default();
    let (mut generation, mut process) = (0, 0);
    for _ in 0..STEPS {
        if rng.below(3) == 0 {
            // A restart of the driver takes longer than the staleness of reads.
            process = (process + 1) % processes.len();
            sleep(3).await;
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
            let created = retry(&mut rng, async |deadline| {
                disks.provisioner.create(deadline, &new).await
            })
            .await;
            volume.disk = Some(created.unwrap_or_else(|error| panic!("{name}: {}", text(&error))).id);
            continue;
        };
        let target = rng.choose(&[node_one(), node_two()]);
        match (rng.below(4), &volume.node) {
            (0, Some(_)) => {
                let delete_attached = async |deadline| match disks.provisioner.delete(deadline, &disk).await {
                    // Only a stale read and the rejection by the cloud fit into the deadline: the
                    // orchestrator retries.
                    Err(error) if text(&error).contains("DiskStillAttached") => Ok(false),
                    outcome => outcome.map(|()| true),
                };
                let mut rejected = Ok(false);
                for _ in 0..10 {
                    rejected = retry(&mut rng, delete_attached).await;
                    if !matches!(rejected, Ok(false)) {
                        break;
                    }
                    sleep(1).await;
                }
                assert!(
                    matches!(&rejected, Err(error) if error.failure() == Failure::DiskStillAttached),
                    "delete of {volume:?}: {rejected:?}"
                );
            }
            (0, None) => {
                let delete_detached = async |deadline| match disks.provisioner.delete(deadline, &disk).await {
                    // A stale read shows the attachment, possibly of a deleted disk: the orchestrator
                    // retries.
                    Err(error) if error.failure() == Failure::DiskStillAttached => Ok(false),
                    outcome => outcome.map(|()| true),
                };
                for _ in 0..10 {
                    if retry(&mut rng, delete_detached).await.unwrap() {
                        volume = Volume::default();
                        break;
                    }
                    sleep(1).await;
                }
                assert_eq!(volume.disk, None, "{disk} could not be deleted");
            }
            (1 | 2, None) => {
                let attach = async |deadline| match disks.attacher.attach(deadline, &disk, &target).await {
                    // A stale read shows the previous attachment: the orchestrator retries.
                    Err(Error::InUseElsewhere { .. }) => Ok(false),
                    outcome => outcome.map(|_| true),
                };
                for _ in 0..10 {
                    match retry(&mut rng, attach).await {
                        Ok(true) => volume.node = Some(target.clone()),
                        Ok(false) => {
                            sleep(1).await;
                            continue;
                        }
                        // The instance type does not support the category.
                        Err(error) if error.failure_kind() == FailureKind::FailedPrecondition => {}
                        Err(error) => panic!("attach of {volume:?}: {}", text(&error)),
                    }
                    break;
                }
            }
            (1 | 2, Some(node)) => {
                let attached = retry(&mut rng, async |deadline| {
                    disks.attacher.attach(deadline, &disk, &target).await
                })
                .await;
                match attached {
                    Ok(_) => assert_eq!(*node, target, "moved between nodes"),
                    Err(Error::InUseElsewhere { .. }) => assert_ne!(*node, target),
                    Err(error) => panic!("attach of {volume:?}: {}", text(&error)),
                }
            }
            (_, node) => {
                let node = node.clone().unwrap_or(target);
                let detached = retry(&mut rng, async |deadline| {
                    disks.detacher.detach(deadline, &disk, &node).await
                })
                .await;
                detached.unwrap_or_else(|error| panic!("detach of {volume:?}: {}", text(&error)));
                volume.node = None;
            }
        }
    }
    volume
}

/// The disks in the cloud with the instances of their attachments.
fn attached_instances(setup: &Setup) -> BTreeMap<String, Vec<String>> {
    let rows = setup.rows();
    let rows = rows.iter().filter(|row| row["status"] != "Deleting");
    rows.map(|row| {
        let id = row["id"].as_str().unwrap().to_owned();
        let disk: DiskId = id.parse().unwrap();
        (id, setup.attachments(&disk).into_iter().map(|(node, _)| node).collect())
    })
    .collect()
}

#[expect(
    clippy::future_not_send,
    reason = "the volumes of a run share the thread of the test"
)]
async fn run(seed: u64) {
    let mut rng = Rng(seed);
    let setup = setup(seed, &mut rng);
    let processes = vec![
        Arc::clone(&setup.disks),
        setup.restarted().disks,
        setup.restarted().disks,
    ];
    let (local, mut volumes) = (LocalSet::new(), JoinSet::new());
    for number in 0..VOLUMES {
        let rng = Rng(rng.below(u64::MAX));
        volumes.spawn_local_on(run_volume(processes.clone(), number, rng), &local);
    }
    let stock = async {
        // The stock changes continuously.
        loop {
            let out_of_stock = rng.choose(&[json!([]), json!(["*/cloud_essd"]), json!(["*/cloud_efficiency"])]);
            setup.configure(&json!({"out_of_stock": out_of_stock}));
            tokio::time::sleep(Duration::from_millis(500 + rng.below(4000))).await;
        }
    };
    let all = local.run_until(volumes.join_all());
    let volumes = tokio::select! {
        biased;
        volumes = all => volumes,
        () = stock => unreachable!(),
    };
    // Operations in progress complete.
    sleep(10).await;
    let expected: BTreeMap<String, Vec<String>> = volumes
        .into_iter()
        .filter_map(|volume| {
            let node = volume.node.map(|node| node.to_string());
            Some((volume.disk?.to_string(), node.into_iter().collect()))
        })
        .collect();
    assert_eq!(attached_instances(&setup), expected);
    setup.configure(&json!({"faults": [], "stale": {"lag": "0s"}}));
    // A throttled API is probed at the latest when the next minute begins.
    sleep(65).await;
    // Every disk can be detached and deleted.
    for disk in expected.keys() {
        let disk: DiskId = disk.parse().unwrap();
        setup.detach_everywhere(&disk).await;
        expect("delete", setup.try_delete(minutes(1), &disk).await);
    }
    assert!(attached_instances(&setup).is_empty());
    // The delay of deletions passes.
    sleep(2).await;
    assert_eq!(setup.rows(), Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn operations_converge_under_faults_and_restarts() {
    for seed in 0..RUNS {
        run(seed).await;
    }
}

//! Random creations in several zones, categories and performance levels by processes that terminate at random instants,
//! while the stock changes: each name results in one disk that matches the request.

use crate::verbs::crash::is_retryable_or_out_of_stock;
use crate::verbs::kit::*;

const RUNS: u64 = 60;
const NAMES: u64 = 4;

fn random_disk(name: &str, rng: &mut Rng) -> NewDisk {
    let both_zones = vec![zone("b").into(), zone("a").into()];
    match rng.below(4) {
        0 => new_disk(name),
        1 => NewDisk {
            zones: both_zones,
            ..available(name)
        },
        2 => NewDisk {
            size: gib(500),
            levels: vec![PerformanceLevel::Pl2, PerformanceLevel::Pl1],
            zones: both_zones,
            ..new_disk(name)
        },
        _ => NewDisk {
            categories: vec![Category::CloudRegionalDiskAuto, Category::CloudSsd],
            ..new_disk(name)
        },
    }
}

fn inject_fault(setup: &Setup, rng: &mut Rng) {
    let out_of_stock = rng.choose(&[
        json!([]),
        json!(["*/cloud_essd", "region/*"]),
        json!(["*/cloud_efficiency", "cn-beijing-b/PL2"]),
        json!(["cn-beijing-b/*"]),
        json!(["*/*"]),
    ]);
    setup.configure(&json!({"out_of_stock": out_of_stock}));
    let kind = rng.choose(&[
        json!("reset-after"),
        json!("internal-error-after"),
        json!("reset-before"),
        json!("truncated"),
        json!({"delay-before": "2s"}),
        json!({"delay-after": "2s"}),
        json!("fails-later"),
    ]);
    let action = rng.choose(&["CreateDisk", "CreateDisk", "DescribeDisks"]);
    // The client's retries pass one or two, but not thirty.
    let times = rng.choose(&[1, 2, 30]);
    setup.faults(action, times, &kind);
}

/// One call. Returns `None` if the process terminates during the call.
async fn attempt(disks: &DiskServices, new: &NewDisk, rng: &mut Rng, attempts: usize) -> Option<Result<String, Error>> {
    let call_timeout = Duration::from_millis(1 + rng.below(20_000));
    // After a minute of activity a process can be certain of the effects of earlier ones, after ten of the loss of an
    // accepted disk: later processes run long enough.
    let lifetime = match attempts {
        0..50 => Duration::from_millis(rng.below(15_000)),
        _ => Duration::from_secs(3600),
    };
    let call = disks.provisioner.create(Deadline::after(call_timeout), new);
    let outcome = timeout(lifetime, call).await.ok()?;
    Some(outcome.map(|disk| disk.id.to_string()))
}

async fn run(seed: u64) {
    let mut rng = Rng(seed);
    let stale = rng.choose(&["--stale=0s", "--stale=2s", "--stale=0s..2s"]);
    let seed_flag = format!("--seed={seed}");
    let setup = Setup::new(&[stale, "--create-delay=0s..3s", &seed_flag]);
    let memory = rng.choose(&["10m", "24h"]);
    setup.configure(&json!({"rules": {
        "token_burn_percent": rng.below(101), "token_memory": memory,
        "stock_lag": rng.choose(&["0s", "30s"])
    }}));
    let mut names = BTreeSet::new();
    for number in 0..NAMES {
        let new = random_disk(&format!("pvc-{number}"), &mut rng);
        let mut disks = Arc::clone(&setup.disks);
        let mut attempts = 0;
        let id = loop {
            attempts += 1;
            assert!(attempts < 200, "seed {seed}: {new:?}");
            if attempts < 30 {
                inject_fault(&setup, &mut rng);
            } else {
                setup.configure(&json!({"faults": [], "out_of_stock": []}));
            }
            match attempt(&disks, &new, &mut rng, attempts).await {
                // The process terminates. A restart takes longer than the staleness of reads.
                None => {
                    disks = setup.restarted().disks;
                    sleep(3).await;
                }
                Some(Ok(id)) => break id,
                Some(Err(error)) if is_retryable_or_out_of_stock(&error) => {
                    tokio::time::sleep(Duration::from_millis(rng.below(10_000))).await;
                }
                Some(Err(error)) => panic!("seed {seed}: {}", text(&error)),
            }
        };
        assert!(names.insert(id.clone()));
        // The response is lost, and the cloud may have discarded the token before the repeat.
        sleep(rng.choose(&[10, 1200, 90_000])).await;
        setup.configure(&json!({"faults": [], "stale": {"lag": "0s"}}));
        let restarted = setup.restarted();
        let again = retry(900, async || restarted.try_create(seconds(20), &new).await);
        let again = expect(&format!("seed {seed}"), again.await);
        assert_eq!(again.id.to_string(), id, "seed {seed}: {new:?}");
    }
    sleep(10).await;
    let rows = setup.rows();
    let found: BTreeSet<_> = rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(found, names);
}

#[tokio::test(start_paused = true)]
async fn crashes_and_stockouts_result_in_one_disk_per_name() {
    for seed in 0..RUNS {
        run(seed).await;
    }
}

#[tokio::test(start_paused = true)]
async fn two_processes_creating_the_same_name_create_one_disk() {
    for seed in 0..RUNS {
        let mut rng = Rng(1000 + seed);
        let stale = rng.choose(&["--stale=0s", "--stale=2s"]);
        let seed_flag = format!("--seed={seed}");
        let setup = Setup::new(&[stale, "--create-delay=0s..3s", "--latency=0s..1s", &seed_flag]);
        let new = random_disk("pvc-1", &mut rng);
        // Only the first process remembers the stockout.
        let out_of_stock = rng.choose(&[json!([]), json!(["*/cloud_efficiency", "region/*"])]);
        setup.configure(&json!({"out_of_stock": out_of_stock}));
        let other = NewDisk {
            name: "other".to_owned(),
            ..new.clone()
        };
        let _ = setup.try_create(minutes(1), &other).await;
        setup.configure(&json!({"out_of_stock": []}));
        let second = setup.restarted().disks;
        let delay = Duration::from_millis(rng.below(2500));
        let create = async |disks: &DiskServices| {
            let call = async || disks.provisioner.create(seconds(20), &new).await;
            retry(200, call).await
        };
        let (one, two) = tokio::join!(create(&setup.disks), async {
            tokio::time::sleep(delay).await;
            create(&second).await
        });
        let [one, two] = [one, two].map(|outcome| expect(&format!("seed {seed}"), outcome).id);
        assert_eq!(one, two);
        assert_eq!(setup.rows().len(), 2);
    }
}

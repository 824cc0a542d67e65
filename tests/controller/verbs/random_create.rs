//! Random creations in several zones, categories and performance levels by processes that terminate at random instants,
//! while the stock changes: each name results in one disk that matches the request.

use crate::verbs::crash::attempts;
use crate::verbs::kit::*;

const RUNS: u64 = 60;
const NAMES: u64 = 4;
const CREATE_CALLS: [&str; 3] = ["CreateDisk", "CreateDisk", "DescribeDisks"];

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

async fn run(seed: u64) {
    println!("seed {seed}");
    let mut rng = Rng(seed);
    let stale = rng.choose(&["--stale=0s", "--stale=2s", "--stale=0s..2s"]);
    let seed_flag = format!("--seed={seed}");
    let setup = Setup::new(&[stale, "--create-delay=0s..3s", &seed_flag]);
    let memory = rng.choose(&["10m", "24h"]);
    setup.configure(&json!({"rules": {
        "token_burn_percent": rng.below(101), "token_memory": memory,
        "stock_lag": rng.choose(&["0s", "30s"])
    }}));
    let stock = [
        json!([]),
        json!(["*/cloud_essd", "region/*"]),
        json!(["*/cloud_efficiency", "cn-beijing-b/PL2"]),
        json!(["cn-beijing-b/*"]),
        json!(["*/*"]),
    ];
    let mut names = BTreeSet::new();
    for number in 0..NAMES {
        let new = random_disk(&format!("pvc-{number}"), &mut rng);
        let first = Arc::clone(&setup.disks);
        let create = async |disks: Arc<DiskServices>, deadline| disks.provisioner.create(deadline, &new).await;
        let created = attempts(&setup, &mut rng, first, (&CREATE_CALLS, &stock), 200, create).await;
        let id = created.unwrap_or_else(|| panic!("seed {seed}: {new:?}")).id.to_string();
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

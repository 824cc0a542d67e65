//! Clones, made by processes that die at any instant: one of its source for each name in the end, and no snapshot left.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use diskplugin::disk::DiskServices;

use crate::crash::{CSI_NAME, RUNS, attempts, calm, ids, rows, setup, to_the_end, used};
use crate::kit::{Setup, available, new_disk};
use crate::rng::Rng;

const CLONE_CALLS: [&str; 6] = [
    "CreateSnapshot",
    "CreateDisk",
    "DeleteSnapshot",
    "DeleteSnapshot",
    "DescribeDisks",
    "DescribeSnapshots",
];

/// Of which disk each snapshot was taken that ever was there.
fn taken(setup: &Setup) -> BTreeMap<String, String> {
    let calls = setup.cloud.calls().into_iter();
    calls
        .filter(|call| call.action == "CreateSnapshot")
        .filter_map(|call| Some((call.created?, call.params.get("DiskId")?.clone())))
        .collect()
}

async fn clones(seed: u64) {
    let mut rng = Rng(4000 + seed);
    let setup = setup(seed, &mut rng);
    let sources = used(&setup, 2).await;
    let mut told = BTreeMap::new();
    for number in 0..3 {
        let name = format!("clone-{number}");
        let source = rng.choose(&sources);
        let new = if rng.below(2) == 0 {
            new_disk(&name)
        } else {
            available(&name)
        };
        let clone = async |disks: Arc<DiskServices>, soon| {
            disks.provisioner.create_clone(soon, &new, &source).await
        };
        if rng.below(4) == 0 {
            // Nobody comes back for this one, unless it was told.
            let few = 1 + usize::try_from(rng.below(4)).unwrap();
            if attempts(&setup, &mut rng, &CLONE_CALLS, few, clone)
                .await
                .is_none()
            {
                continue;
            }
        }
        let made = to_the_end(&setup, &mut rng, &CLONE_CALLS, clone).await;
        tokio::time::sleep(Duration::from_secs(rng.choose(&[10, 1200, 90_000]))).await;
        let again = to_the_end(&setup, &mut rng, &CLONE_CALLS, clone).await;
        assert_eq!(again.id, made.id, "seed {seed}: {name}");
        let image = made
            .source_snapshot
            .expect("a clone is made from a snapshot");
        let of = taken(&setup);
        assert_eq!(
            of.get(image.as_str()),
            Some(&source.to_string()),
            "seed {seed}"
        );
        // Done is done: nothing is left of it, whoever asked last.
        tokio::time::sleep(Duration::from_secs(5)).await;
        for row in rows(&setup, "snapshots") {
            let owner = &row["tags"]["diskplugin.csi.example/clone-for"];
            assert_ne!(*owner, name.as_str(), "seed {seed}: {row:#}");
        }
        told.insert(made.id, name);
    }
    // One disk for each name, also for those that nobody came back for.
    let names: Vec<_> = setup
        .rows()
        .iter()
        .map(|row| row["tags"][CSI_NAME].to_string())
        .collect();
    let once: BTreeSet<_> = names.iter().collect();
    assert_eq!(once.len(), names.len(), "seed {seed}: {names:?}");
    let disks = [
        "DeleteDisk",
        "DeleteSnapshot",
        "DescribeDisks",
        "DescribeSnapshots",
    ];
    for id in told.keys() {
        to_the_end(&setup, &mut rng, &disks, async |disks, soon| {
            disks.provisioner.delete(soon, id).await
        })
        .await;
    }
    // What was given up goes by itself within a day, or a while after.
    calm(&setup, 90_000).await;
    assert!(rows(&setup, "snapshots").is_empty(), "seed {seed}");
    let left = ids(&setup.rows());
    assert!(
        told.keys().all(|id| !left.contains(id.as_str())),
        "seed {seed}"
    );
}

#[tokio::test(start_paused = true)]
async fn whatever_dies_each_name_has_one_clone_of_its_source_and_leaves_no_snapshot() {
    for seed in 0..RUNS {
        clones(seed).await;
    }
}

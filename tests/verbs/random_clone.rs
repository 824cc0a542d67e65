//! Clones, made by processes that die at any instant: one of its source for each name in the end, and no snapshot left.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use diskplugin::disk::DiskServices;

use crate::dice::Dice;
use crate::kit::{Stage, available, wanted};
use crate::mortal::{CSI_NAME, RUNS, attempts, calm, ids, rows, stage, to_the_end, used};

const CLONE_CALLS: [&str; 6] = [
    "CreateSnapshot",
    "CreateDisk",
    "DeleteSnapshot",
    "DeleteSnapshot",
    "DescribeDisks",
    "DescribeSnapshots",
];

/// Of which disk each snapshot was taken that ever was there.
fn taken(stage: &Stage) -> BTreeMap<String, String> {
    let calls = stage.cloud.calls().into_iter();
    calls
        .filter(|call| call.action == "CreateSnapshot")
        .filter_map(|call| Some((call.created?, call.params.get("DiskId")?.clone())))
        .collect()
}

async fn clones(seed: u64) {
    let mut dice = Dice(4000 + seed);
    let stage = stage(seed, &mut dice);
    let sources = used(&stage, 2).await;
    let mut told = BTreeMap::new();
    for number in 0..3 {
        let name = format!("clone-{number}");
        let source = dice.of(&sources);
        let new = if dice.below(2) == 0 {
            wanted(&name)
        } else {
            available(&name)
        };
        let clone = async |disks: Arc<DiskServices>, soon| {
            disks.provisioner.create_clone(soon, &new, &source).await
        };
        if dice.below(4) == 0 {
            // Nobody comes back for this one, unless it was told.
            let few = 1 + usize::try_from(dice.below(4)).unwrap();
            if attempts(&stage, &mut dice, &CLONE_CALLS, few, clone)
                .await
                .is_none()
            {
                continue;
            }
        }
        let made = to_the_end(&stage, &mut dice, &CLONE_CALLS, clone).await;
        tokio::time::sleep(Duration::from_secs(dice.of(&[10, 1200, 90_000]))).await;
        let again = to_the_end(&stage, &mut dice, &CLONE_CALLS, clone).await;
        assert_eq!(again.id, made.id, "seed {seed}: {name}");
        let image = made
            .source_snapshot
            .expect("a clone is made from a snapshot");
        let of = taken(&stage);
        assert_eq!(
            of.get(image.as_str()),
            Some(&source.to_string()),
            "seed {seed}"
        );
        // Done is done: nothing is left of it, whoever asked last.
        tokio::time::sleep(Duration::from_secs(5)).await;
        for row in rows(&stage, "snapshots") {
            let owner = &row["tags"]["diskplugin.csi.example/clone-for"];
            assert_ne!(*owner, name.as_str(), "seed {seed}: {row:#}");
        }
        told.insert(made.id, name);
    }
    // One disk for each name, also for those that nobody came back for.
    let names: Vec<_> = stage
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
        to_the_end(&stage, &mut dice, &disks, async |disks, soon| {
            disks.provisioner.delete(soon, id).await
        })
        .await;
    }
    // What was given up goes by itself within a day, or a while after.
    calm(&stage, 90_000).await;
    assert!(rows(&stage, "snapshots").is_empty(), "seed {seed}");
    let left = ids(&stage.rows());
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

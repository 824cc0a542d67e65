//! Clones created by processes that terminate at random instants: each name results in one clone of its source, and no
//! intermediate snapshot is left.

use crate::verbs::crash::{CSI_NAME, RUNS, attached_disks, clear_faults, ids, retry, retry_at_most, rows, setup};
use crate::verbs::kit::*;

const CLONE_CALLS: [&str; 6] = [
    "CreateSnapshot",
    "CreateDisk",
    "DeleteSnapshot",
    "DeleteSnapshot",
    "DescribeDisks",
    "DescribeSnapshots",
];

/// The source disk of every snapshot ever created.
fn snapshot_sources(setup: &Setup) -> BTreeMap<String, String> {
    let calls = setup.cloud.calls().into_iter();
    calls
        .filter(|call| call.action == "CreateSnapshot")
        .filter_map(|call| Some((call.created?, call.params.get("DiskId")?.clone())))
        .collect()
}

async fn run(seed: u64) {
    let mut rng = Rng(4000 + seed);
    let setup = setup(seed, &mut rng);
    let sources = attached_disks(&setup, 2).await;
    let mut clones = BTreeMap::new();
    for number in 0..3 {
        let name = format!("clone-{number}");
        let source = rng.choose(&sources);
        let new = if rng.below(2) == 0 {
            new_disk(&name)
        } else {
            available(&name)
        };
        let clone =
            async |disks: Arc<DiskServices>, deadline| disks.provisioner.create_clone(deadline, &new, &source).await;
        if rng.below(4) == 0 {
            // A clone that is not complete after these attempts is abandoned.
            let max_attempts = 1 + usize::try_from(rng.below(4)).unwrap();
            if retry_at_most(&setup, &mut rng, &CLONE_CALLS, max_attempts, clone)
                .await
                .is_none()
            {
                continue;
            }
        }
        let created = retry(&setup, &mut rng, &CLONE_CALLS, clone).await;
        sleep(rng.choose(&[10, 1200, 90_000])).await;
        let again = retry(&setup, &mut rng, &CLONE_CALLS, clone).await;
        assert_eq!(again.id, created.id, "seed {seed}: {name}");
        let snapshot = created.source_snapshot.expect("a clone is created from a snapshot");
        let snapshot_sources = snapshot_sources(&setup);
        assert_eq!(snapshot_sources.get(snapshot.as_str()), Some(&source.to_string()));
        // The intermediate snapshot of the clone is deleted.
        sleep(5).await;
        for row in rows(&setup, "snapshots") {
            let owner = &row["tags"]["diskplugin.csi.example/clone-for"];
            assert_ne!(*owner, name.as_str(), "seed {seed}: {row:#}");
        }
        clones.insert(created.id, name);
    }
    // One disk for each name, including the abandoned clones.
    let names: Vec<_> = setup
        .rows()
        .iter()
        .map(|row| row["tags"][CSI_NAME].to_string())
        .collect();
    let unique: BTreeSet<_> = names.iter().collect();
    assert_eq!(unique.len(), names.len(), "seed {seed}: {names:?}");
    let delete_calls = ["DeleteDisk", "DeleteSnapshot", "DescribeDisks", "DescribeSnapshots"];
    for id in clones.keys() {
        retry(&setup, &mut rng, &delete_calls, async |disks, deadline| {
            disks.provisioner.delete(deadline, id).await
        })
        .await;
    }
    // The snapshots of abandoned clones are deleted after a day.
    clear_faults(&setup, 90_000).await;
    assert!(rows(&setup, "snapshots").is_empty());
    let left = ids(&setup.rows());
    assert!(clones.keys().all(|id| !left.contains(id.as_str())));
}

#[tokio::test(start_paused = true)]
async fn crashes_result_in_one_clone_per_name_and_no_leftover_snapshot() {
    for seed in 0..RUNS {
        run(seed).await;
    }
}

//! Snapshots created and deleted by processes that terminate at random instants: each name results in one snapshot, and
//! deletion is complete.

use crate::verbs::crash::{RUNS, attached_disks, clear_faults, retry, rows, setup};
use crate::verbs::kit::*;

async fn run(seed: u64) {
    let mut rng = Rng(seed);
    let setup = setup(seed, &mut rng);
    let sources = attached_disks(&setup, 2).await;
    let mut snapshots = BTreeMap::new();
    for number in 0..3 {
        let new = new_snapshot(&format!("snap-{number}"), &rng.choose(&sources));
        let create_calls = ["CreateSnapshot", "CreateSnapshot", "DescribeSnapshots"];
        let create = async |disks: Arc<DiskServices>, deadline| disks.snapshotter.create(deadline, &new).await;
        let created = retry(&setup, &mut rng, &create_calls, create).await;
        assert!(created.created.is_some(), "seed {seed}: {created:?}");
        // The cloud may have discarded the token before the repeat, but not the tags.
        sleep(rng.choose(&[10, 1200, 90_000])).await;
        let again = retry(&setup, &mut rng, &create_calls, create).await;
        assert_eq!(again.id, created.id, "seed {seed}: {new:?}");
        snapshots.insert(created.id, new.source);
    }
    let found: BTreeMap<_, _> = rows(&setup, "snapshots")
        .iter()
        .map(|row| {
            let text = |field: &str| row[field].as_str().unwrap().to_owned();
            (text("id"), text("disk"))
        })
        .collect();
    let expected = snapshots.iter().map(|(id, disk)| (id.to_string(), disk.to_string()));
    assert_eq!(found, expected.collect());
    let delete_calls = ["DeleteSnapshot", "DeleteSnapshot", "DescribeSnapshots"];
    for id in snapshots.keys() {
        retry(&setup, &mut rng, &delete_calls, async |disks, deadline| {
            disks.snapshotter.delete(deadline, id).await
        })
        .await;
    }
    clear_faults(&setup, 5).await;
    assert!(rows(&setup, "snapshots").is_empty());
}

#[tokio::test(start_paused = true)]
async fn crashes_result_in_one_snapshot_per_name_and_none_after_deletion() {
    for seed in 0..RUNS {
        run(seed).await;
    }
}

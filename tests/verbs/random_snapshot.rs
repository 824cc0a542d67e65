//! Snapshots, taken and deleted by processes that die at any instant: one for each name in the end, and nothing left of
//! what is deleted.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::crash::{RUNS, calm, rows, setup, to_the_end, used};
use crate::kit::new_snapshot;
use crate::rng::Rng;

async fn snapshots(seed: u64) {
    let mut rng = Rng(seed);
    let setup = setup(seed, &mut rng);
    let sources = used(&setup, 2).await;
    let mut told = BTreeMap::new();
    for number in 0..3 {
        let new = new_snapshot(&format!("snap-{number}"), &rng.choose(&sources));
        let take = ["CreateSnapshot", "CreateSnapshot", "DescribeSnapshots"];
        let made = to_the_end(&setup, &mut rng, &take, async |disks, soon| {
            disks.snapshotter.create(soon, &new).await
        });
        let made = made.await;
        assert!(made.created.is_some(), "seed {seed}: {made:?}");
        // Much later somebody asks again: its token is forgotten, its tags are not.
        tokio::time::sleep(Duration::from_secs(rng.choose(&[10, 1200, 90_000]))).await;
        let again = to_the_end(&setup, &mut rng, &take, async |disks, soon| {
            disks.snapshotter.create(soon, &new).await
        });
        assert_eq!(again.await.id, made.id, "seed {seed}: {new:?}");
        told.insert(made.id, new.source);
    }
    let found: BTreeMap<_, _> = rows(&setup, "snapshots")
        .iter()
        .map(|row| {
            let text = |field: &str| row[field].as_str().unwrap().to_owned();
            (text("id"), text("disk"))
        })
        .collect();
    let expected = told
        .iter()
        .map(|(id, disk)| (id.to_string(), disk.to_string()));
    assert_eq!(found, expected.collect(), "seed {seed}");
    let take = ["DeleteSnapshot", "DeleteSnapshot", "DescribeSnapshots"];
    for id in told.keys() {
        to_the_end(&setup, &mut rng, &take, async |disks, soon| {
            disks.snapshotter.delete(soon, id).await
        })
        .await;
    }
    calm(&setup, 5).await;
    assert!(rows(&setup, "snapshots").is_empty(), "seed {seed}");
}

#[tokio::test(start_paused = true)]
async fn whatever_dies_each_name_has_one_snapshot_and_none_when_it_is_deleted() {
    for seed in 0..RUNS {
        snapshots(seed).await;
    }
}

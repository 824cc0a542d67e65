//! Groups of snapshots, taken and deleted by processes that die at any instant: one for each name in the end, of the right
//! disks, and nothing left of what is deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::json;

use diskplugin::disk::NewGroupSnapshot;
use diskplugin::model::{Snapshot, SnapshotGroupId, Tags};

use crate::crash::{RUNS, calm, ids, parsed, rows, setup, to_the_end, used};
use crate::kit::{Setup, minutes, text};
use crate::rng::Rng;

const GROUP_CALLS: [&str; 5] = [
    "CreateSnapshotGroup",
    "CreateSnapshotGroup",
    "DescribeSnapshotGroups",
    "DescribeSnapshots",
    "TagResources",
];

async fn delete_group(
    setup: &Setup,
    rng: &mut Rng,
    id: &SnapshotGroupId,
    members: &BTreeSet<String>,
) {
    let actions = [
        "DeleteSnapshotGroup",
        "DeleteSnapshotGroup",
        "DescribeSnapshotGroups",
    ];
    to_the_end(setup, rng, &actions, async |disks, soon| {
        disks
            .snapshotter
            .delete_group(soon, id, &parsed(members))
            .await
    })
    .await;
}

async fn groups(seed: u64) {
    let mut rng = Rng(2000 + seed);
    let setup = setup(seed, &mut rng);
    let sources = used(&setup, 3).await;
    let mut told = Vec::new();
    for number in 0..2 {
        let most = 2 + usize::try_from(rng.below(2)).unwrap();
        let new = NewGroupSnapshot {
            name: format!("group-{number}"),
            sources: sources.iter().take(most).cloned().collect(),
            resource_group: None,
            tags: Tags::new(),
        };
        let made = to_the_end(&setup, &mut rng, &GROUP_CALLS, async |disks, soon| {
            disks.snapshotter.create_group(soon, &new).await
        });
        let made = made.await;
        tokio::time::sleep(Duration::from_secs(rng.choose(&[10, 1200, 90_000]))).await;
        let again = to_the_end(&setup, &mut rng, &GROUP_CALLS, async |disks, soon| {
            disks.snapshotter.create_group(soon, &new).await
        });
        assert_eq!(again.await.id, made.id, "seed {seed}: {new:?}");
        let of: BTreeSet<_> = made
            .snapshots
            .iter()
            .filter_map(|row| row.source_disk.clone())
            .collect();
        assert_eq!(of, new.sources, "seed {seed}");
        told.push(made);
    }
    let members = |index: usize| -> BTreeSet<String> {
        told[index]
            .snapshots
            .iter()
            .map(|row| row.id.to_string())
            .collect()
    };
    let all: BTreeSet<_> = members(0).union(&members(1)).cloned().collect();
    let known: BTreeSet<_> = told.iter().map(|group| group.id.to_string()).collect();
    assert_eq!(ids(&rows(&setup, "groups")), known, "seed {seed}");
    assert_eq!(ids(&rows(&setup, "snapshots")), all, "seed {seed}");
    // Whoever tagged them, a new process lists them as ours, each with its group.
    tokio::time::sleep(Duration::from_secs(3)).await;
    setup.configure(&json!({"faults": []}));
    let listed = setup.restarted();
    let listed = listed
        .inventory
        .list_snapshots(minutes(1), None, None, Snapshot::clone)
        .await;
    let listed = listed.unwrap();
    let listed: BTreeMap<_, _> = listed
        .into_iter()
        .map(|row| (row.id.to_string(), row.group))
        .collect();
    for (index, group) in told.iter().enumerate() {
        for id in members(index) {
            assert_eq!(
                listed.get(&id),
                Some(&Some(group.id.clone())),
                "seed {seed}: {id}"
            );
        }
    }
    for (index, group) in told.iter().enumerate() {
        delete_group(&setup, &mut rng, &group.id, &members(index)).await;
    }
    calm(&setup, 5).await;
    let left = (rows(&setup, "groups"), rows(&setup, "snapshots"));
    assert_eq!(left, (vec![], vec![]), "seed {seed}");
}

#[tokio::test(start_paused = true)]
async fn whatever_dies_each_name_has_one_group_that_is_listed_and_goes_as_a_whole() {
    for seed in 0..RUNS {
        groups(seed).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_whose_members_were_never_tagged_is_shown_and_deleted_whole() {
    for seed in 0..RUNS {
        let mut rng = Rng(3000 + seed);
        let setup = setup(seed, &mut rng);
        let sources = used(&setup, 2).await;
        let new = NewGroupSnapshot {
            name: "group".to_owned(),
            sources: sources.iter().cloned().collect(),
            resource_group: None,
            tags: Tags::new(),
        };
        // Nobody may tag, and then the driver dies for good.
        let denied = json!({"code": {"status": 500, "code": "InternalError"}});
        setup.faults("TagResources", 1000, &denied);
        let never = setup.disks.snapshotter.create_group(minutes(1), &new).await;
        assert!(never.is_err(), "seed {seed}");
        tokio::time::sleep(Duration::from_secs(30)).await;
        setup.configure(&json!({"faults": []}));
        let members = ids(&rows(&setup, "snapshots"));
        assert_eq!(members.len(), 2, "seed {seed}");
        let id = rows(&setup, "groups")[0]["id"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        let shown = setup
            .restarted()
            .snapshotter
            .get_group(minutes(1), &id, &parsed(&members))
            .await;
        let shown = shown.unwrap_or_else(|error| panic!("seed {seed}: {}", text(&error)));
        assert_eq!((shown.snapshots.len(), shown.is_ready()), (2, true));
        delete_group(&setup, &mut rng, &id, &members).await;
        calm(&setup, 5).await;
        let left = (rows(&setup, "groups"), rows(&setup, "snapshots"));
        assert_eq!(left, (vec![], vec![]), "seed {seed}");
    }
}

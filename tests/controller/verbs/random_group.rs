//! Snapshot groups created and deleted by processes that terminate at random instants: each name results in one group
//! of the requested disks, and deletion is complete.

use crate::verbs::crash::{RUNS, attached_disks, clear_faults, ids, parse_ids, retry, rows, setup};
use crate::verbs::kit::*;

const GROUP_CALLS: [&str; 5] = [
    "CreateSnapshotGroup",
    "CreateSnapshotGroup",
    "DescribeSnapshotGroups",
    "DescribeSnapshots",
    "TagResources",
];

async fn delete_group(setup: &Setup, rng: &mut Rng, id: &SnapshotGroupId, members: &BTreeSet<String>) {
    let actions = ["DeleteSnapshotGroup", "DeleteSnapshotGroup", "DescribeSnapshotGroups"];
    retry(setup, rng, &actions, async |disks, deadline| {
        disks.snapshotter.delete_group(deadline, id, &parse_ids(members)).await
    })
    .await;
}

async fn run(seed: u64) {
    let mut rng = Rng(2000 + seed);
    let setup = setup(seed, &mut rng);
    let sources = attached_disks(&setup, 3).await;
    let mut groups = Vec::new();
    for number in 0..2 {
        let count = 2 + usize::try_from(rng.below(2)).unwrap();
        let new = new_group(
            &format!("group-{number}"),
            &sources.iter().take(count).collect::<Vec<_>>(),
        );
        let create = async |disks: Arc<DiskServices>, deadline| disks.snapshotter.create_group(deadline, &new).await;
        let created = retry(&setup, &mut rng, &GROUP_CALLS, create).await;
        sleep(rng.choose(&[10, 1200, 90_000])).await;
        let again = retry(&setup, &mut rng, &GROUP_CALLS, create).await;
        assert_eq!(again.id, created.id, "seed {seed}: {new:?}");
        let sources_of_group: BTreeSet<_> = created
            .snapshots
            .iter()
            .filter_map(|row| row.source_disk.clone())
            .collect();
        assert_eq!(sources_of_group, new.sources);
        groups.push(created);
    }
    let members =
        |index: usize| -> BTreeSet<String> { groups[index].snapshots.iter().map(|row| row.id.to_string()).collect() };
    let all: BTreeSet<_> = members(0).union(&members(1)).cloned().collect();
    let group_ids: BTreeSet<_> = groups.iter().map(|group| group.id.to_string()).collect();
    assert_eq!(ids(&rows(&setup, "groups")), group_ids);
    assert_eq!(ids(&rows(&setup, "snapshots")), all);
    // A new process lists the snapshots as owned, each with its group.
    sleep(3).await;
    setup.clear_faults();
    let listed = setup.restarted().list_snapshots(None, None).await.unwrap();
    let listed: BTreeMap<_, _> = listed.into_iter().map(|row| (row.id.to_string(), row.group)).collect();
    for (index, group) in groups.iter().enumerate() {
        for id in members(index) {
            assert_eq!(listed.get(&id), Some(&Some(group.id.clone())), "seed {seed}: {id}");
        }
    }
    for (index, group) in groups.iter().enumerate() {
        delete_group(&setup, &mut rng, &group.id, &members(index)).await;
    }
    clear_faults(&setup, 5).await;
    let left = (rows(&setup, "groups"), rows(&setup, "snapshots"));
    assert_eq!(left, (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn crashes_result_in_one_group_per_name_that_is_listed_and_deleted_as_a_whole() {
    for seed in 0..RUNS {
        run(seed).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_with_untagged_members_is_returned_and_deleted_as_a_whole() {
    for seed in 0..RUNS {
        let mut rng = Rng(3000 + seed);
        let setup = setup(seed, &mut rng);
        let sources = attached_disks(&setup, 2).await;
        let new = new_group("group", &sources.iter().collect::<Vec<_>>());
        // Tagging fails until the driver terminates.
        setup.faults("TagResources", 1000, &error_code(500, "InternalError"));
        let untagged = setup.try_group(minutes(1), &new).await;
        assert!(untagged.is_err());
        sleep(30).await;
        setup.clear_faults();
        let members = ids(&rows(&setup, "snapshots"));
        assert_eq!(members.len(), 2);
        let id = rows(&setup, "groups")[0]["id"].as_str().unwrap().parse().unwrap();
        let read = setup.restarted().get_group(&id, &parse_ids(&members)).await.unwrap();
        assert_eq!((read.snapshots.len(), read.is_ready()), (2, true));
        delete_group(&setup, &mut rng, &id, &members).await;
        clear_faults(&setup, 5).await;
        let left = (rows(&setup, "groups"), rows(&setup, "snapshots"));
        assert_eq!(left, (vec![], vec![]));
    }
}

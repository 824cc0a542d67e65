//! Snapshots, groups of them and clones, taken and deleted by processes that die at any instant: one
//! of each in the end, of the right disks, and nothing left of what is deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use diskplugin::base::Deadline;
use diskplugin::disk::{Disks, Error, Meaning, NewGroup};
use diskplugin::model::{DiskId, SnapshotGroupId, SnapshotId, Tags};

use crate::dice::Dice;
use crate::kit::{Stage, available, minutes, new_snapshot, one, text, wanted};

/// The tag with the name that was asked for.
const CSI_NAME: &str = diskplugin::model::tag::CSI_NAME;
/// Seeds of each test.
const RUNS: u64 = 50;

fn rows(stage: &Stage, what: &str) -> Vec<Value> {
    stage.cloud.state()[what].as_array().unwrap().clone()
}

/// The ids of all rows.
fn parsed(ids: &BTreeSet<String>) -> BTreeSet<SnapshotId> {
    ids.iter().map(|id| id.parse().unwrap()).collect()
}

fn ids(rows: &[Value]) -> BTreeSet<String> {
    rows.iter()
        .map(|row| row["id"].as_str().unwrap().to_owned())
        .collect()
}

fn stage(seed: u64, dice: &mut Dice) -> Stage {
    let stale = dice.of(&["--stale=0s", "--stale=2s", "--stale=0s..2s"]);
    let missing = dice.of(&["--missing-is-error", "--never-attached"]);
    let seed = format!("--seed={seed}");
    let slow = [
        "--create-delay=0s..3s",
        "--cut-delay=0s..4s",
        "--snapshot-delay=0s..20s",
        "--answer-delay=0s..1s",
    ];
    let mut flags = vec![stale, missing, &seed];
    flags.extend(slow);
    if stale.contains("..") && dice.below(2) == 0 {
        flags.push("--stale-jumping");
    }
    let stage = Stage::new(&flags);
    let memory = dice.of(&["10m", "24h"]);
    let rules = json!({"token_burn_percent": dice.below(101), "token_memory": memory});
    stage.configure(&json!({"rules": rules}));
    stage
}

/// Disks that were attached once, as all that are worth keeping.
async fn used(stage: &Stage, count: usize) -> Vec<DiskId> {
    let mut disks = Vec::new();
    for number in 0..count {
        let disk = stage.disk(&format!("source-{number}")).await;
        stage.disks.attach(minutes(1), &disk, &one()).await.unwrap();
        disks.push(disk);
    }
    disks
}

/// What goes wrong next.
fn disturb(stage: &Stage, dice: &mut Dice, actions: &[&str]) {
    let kinds = [
        json!("reset-after"),
        json!("internal-error-after"),
        json!("internal-error"),
        json!("reset-before"),
        json!("truncated"),
        json!({"delay-before": "2s"}),
        json!({"delay-after": "2s"}),
        json!("fails-later"),
        json!({"code": {"status": 400, "code": "Throttling.User"}}),
    ];
    let (action, kind) = (dice.of(actions), dice.of(&kinds));
    stage.faults(action, 1 + dice.below(2), &kind);
}

fn passes(error: &Error) -> bool {
    matches!(
        error.meaning(),
        Meaning::Unclear | Meaning::Busy | Meaning::Deadline | Meaning::Failed
    )
}

/// Repeats the call, as a sidecar does, through processes that die in the middle of it. None when it
/// was given up after so many attempts.
async fn attempts<T>(
    stage: &Stage,
    dice: &mut Dice,
    actions: &[&str],
    most: usize,
    verb: impl AsyncFn(Arc<Disks>, Deadline) -> Result<T, Error>,
) -> Option<T> {
    let mut disks = stage.restarted();
    for attempt in 0..most {
        if attempt < 25 {
            disturb(stage, dice, actions);
        } else {
            stage.configure(&json!({"faults": []}));
        }
        // What an old token still answers with, and nothing shows, is believed to be gone after ten
        // seconds without a break: in the end a process lives longer than that.
        let longest = dice.of(&[500, 5_000, if attempt < 50 { 25_000 } else { 90_000 }]);
        let patience = Duration::from_millis(1 + dice.below(longest.max(25_000)));
        let life = Duration::from_millis(dice.below(longest));
        match timeout(life, verb(Arc::clone(&disks), Deadline::after(patience))).await {
            Ok(Ok(made)) => return Some(made),
            Ok(Err(error)) if passes(&error) => {
                tokio::time::sleep(Duration::from_millis(dice.below(3000))).await;
            }
            Ok(Err(error)) => panic!("{}", text(&error)),
            // Killed: another process takes over, which takes longer than reads lag.
            Err(_) => {
                disks = stage.restarted();
                tokio::time::sleep(Duration::from_secs(3)).await;
            }
        }
    }
    None
}

async fn to_the_end<T>(
    stage: &Stage,
    dice: &mut Dice,
    actions: &[&str],
    verb: impl AsyncFn(Arc<Disks>, Deadline) -> Result<T, Error>,
) -> T {
    let done = attempts(stage, dice, actions, 200, verb).await;
    done.expect("two hundred attempts suffice")
}

/// Faults end, and reads show what is.
async fn calm(stage: &Stage, after: u64) {
    stage.configure(&json!({"faults": [], "stale": {"lag": "0s"}}));
    tokio::time::sleep(Duration::from_secs(after)).await;
}

async fn snapshots(seed: u64) {
    let mut dice = Dice(seed);
    let stage = stage(seed, &mut dice);
    let sources = used(&stage, 2).await;
    let mut told = BTreeMap::new();
    for number in 0..3 {
        let new = new_snapshot(&format!("snap-{number}"), &dice.of(&sources));
        let take = ["CreateSnapshot", "CreateSnapshot", "DescribeSnapshots"];
        let made = to_the_end(&stage, &mut dice, &take, async |disks, soon| {
            disks.create_snapshot(soon, &new).await
        });
        let made = made.await;
        assert!(made.created.is_some(), "seed {seed}: {made:?}");
        // Much later somebody asks again: its token is forgotten, its tags are not.
        tokio::time::sleep(Duration::from_secs(dice.of(&[10, 1200, 90_000]))).await;
        let again = to_the_end(&stage, &mut dice, &take, async |disks, soon| {
            disks.create_snapshot(soon, &new).await
        });
        assert_eq!(again.await.id, made.id, "seed {seed}: {new:?}");
        told.insert(made.id, new.source);
    }
    let found: BTreeMap<_, _> = rows(&stage, "snapshots")
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
        to_the_end(&stage, &mut dice, &take, async |disks, soon| {
            disks.delete_snapshot(soon, id).await
        })
        .await;
    }
    calm(&stage, 5).await;
    assert!(rows(&stage, "snapshots").is_empty(), "seed {seed}");
}

#[tokio::test(start_paused = true)]
async fn whatever_dies_each_name_has_one_snapshot_and_none_when_it_is_deleted() {
    for seed in 0..RUNS {
        snapshots(seed).await;
    }
}

const GROUP_CALLS: [&str; 5] = [
    "CreateSnapshotGroup",
    "CreateSnapshotGroup",
    "DescribeSnapshotGroups",
    "DescribeSnapshots",
    "TagResources",
];

async fn delete_group(
    stage: &Stage,
    dice: &mut Dice,
    id: &SnapshotGroupId,
    members: &BTreeSet<String>,
) {
    let actions = [
        "DeleteSnapshotGroup",
        "DeleteSnapshotGroup",
        "DescribeSnapshotGroups",
    ];
    to_the_end(stage, dice, &actions, async |disks, soon| {
        disks.delete_group(soon, id, &parsed(members)).await
    })
    .await;
}

async fn groups(seed: u64) {
    let mut dice = Dice(2000 + seed);
    let stage = stage(seed, &mut dice);
    let sources = used(&stage, 3).await;
    let mut told = Vec::new();
    for number in 0..2 {
        let most = 2 + usize::try_from(dice.below(2)).unwrap();
        let new = NewGroup {
            name: format!("group-{number}"),
            sources: sources.iter().take(most).cloned().collect(),
            resource_group: None,
            tags: Tags::new(),
        };
        let made = to_the_end(&stage, &mut dice, &GROUP_CALLS, async |disks, soon| {
            disks.create_group(soon, &new).await
        });
        let made = made.await;
        tokio::time::sleep(Duration::from_secs(dice.of(&[10, 1200, 90_000]))).await;
        let again = to_the_end(&stage, &mut dice, &GROUP_CALLS, async |disks, soon| {
            disks.create_group(soon, &new).await
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
    assert_eq!(ids(&rows(&stage, "groups")), known, "seed {seed}");
    assert_eq!(ids(&rows(&stage, "snapshots")), all, "seed {seed}");
    // Whoever tagged them, a new process lists them as ours, each with its group.
    tokio::time::sleep(Duration::from_secs(3)).await;
    stage.configure(&json!({"faults": []}));
    let listed = stage.restarted();
    let listed = listed
        .list_snapshots(minutes(1), None, None, (None, None))
        .await;
    let listed = listed.unwrap().items;
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
        delete_group(&stage, &mut dice, &group.id, &members(index)).await;
    }
    calm(&stage, 5).await;
    let left = (rows(&stage, "groups"), rows(&stage, "snapshots"));
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
        let mut dice = Dice(3000 + seed);
        let stage = stage(seed, &mut dice);
        let sources = used(&stage, 2).await;
        let new = NewGroup {
            name: "group".to_owned(),
            sources: sources.iter().cloned().collect(),
            resource_group: None,
            tags: Tags::new(),
        };
        // Nobody may tag, and then the driver dies for good.
        let denied = json!({"code": {"status": 500, "code": "InternalError"}});
        stage.faults("TagResources", 1000, &denied);
        let never = stage.disks.create_group(minutes(1), &new).await;
        assert!(never.is_err(), "seed {seed}");
        tokio::time::sleep(Duration::from_secs(30)).await;
        stage.configure(&json!({"faults": []}));
        let members = ids(&rows(&stage, "snapshots"));
        assert_eq!(members.len(), 2, "seed {seed}");
        let id = rows(&stage, "groups")[0]["id"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        let shown = stage
            .restarted()
            .group(minutes(1), &id, &parsed(&members))
            .await;
        let shown = shown.unwrap_or_else(|error| panic!("seed {seed}: {}", text(&error)));
        assert_eq!((shown.snapshots.len(), shown.is_ready()), (2, true));
        delete_group(&stage, &mut dice, &id, &members).await;
        calm(&stage, 5).await;
        let left = (rows(&stage, "groups"), rows(&stage, "snapshots"));
        assert_eq!(left, (vec![], vec![]), "seed {seed}");
    }
}

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
        .filter_map(|call| Some((call.made?, call.params.get("DiskId")?.clone())))
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
        let clone = async |disks: Arc<Disks>, soon| disks.create_clone(soon, &new, &source).await;
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
            disks.delete(soon, id).await
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

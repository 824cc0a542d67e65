//! Reproductions of a hostile review: each test states what should hold and fails where it does not.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;

use diskplugin::base::Deadline;
use diskplugin::cloud::{
    AttachDisk, CreateDisk, CreateSnapshot, CreateSnapshotGroup, DescribeDisks, DescribeInstances,
    DescribeSnapshotGroups, DescribeSnapshots, DescribeStock, DescribeTasks, DetachDisk, Ecs,
    Error as CloudError, KeptMember, ListTagResources, ModifyDiskAttribute, ModifyDiskSpec, Page,
    ResizeDisk, Result, TagResources, UntagResources,
};
use diskplugin::disk::Error;
use diskplugin::model::{
    Disk, DiskHealth, DiskId, Instance, InstanceType, Snapshot, SnapshotGroup, SnapshotGroupId,
    SnapshotId, Tags, Task, TaskId, ZoneStock, tag,
};
use diskplugin::sim::SimEcs;

use crate::kit::{Stage, minutes, new_snapshot, one, process, seconds, text, two, wanted};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Twist {
    /// The account may describe some disks (another resource group), but none of this cluster's.
    HidesOurs,
    /// Filters by tags are ignored.
    IgnoresTags,
    /// Filters by ids are ignored: other rows are returned.
    ReturnsOthers,
    /// A page of ids ends early, with a token for the rest.
    ShortPages,
    /// Ids that begin so are malformed.
    Malformed(&'static str),
}

#[derive(Debug)]
struct Twisted {
    ecs: SimEcs,
    twist: Twist,
}

fn is_ours(tags: &Tags) -> bool {
    tags.contains_key(tag::CLUSTER)
}

macro_rules! same {
    ($($method:ident($request:ty) -> $answer:ty;)*) => {
        #[async_trait]
        impl Ecs for Twisted {
            async fn describe_disks(&self, deadline: Deadline, query: &DescribeDisks) -> Result<Page<Disk>> {
                let mut query = query.clone();
                match self.twist {
                    Twist::IgnoresTags => query.tags = Tags::new(),
                    Twist::ReturnsOthers if query.ids.is_some() => {
                        let asked = query.ids.take().unwrap();
                        let mut page = self.ecs.describe_disks(deadline, &query).await?;
                        page.rows.retain(|row| !asked.contains(&row.id));
                        return Ok(page);
                    }
                    Twist::Malformed(start) => {
                        let ids = query.ids.iter().flatten();
                        if ids.clone().any(|id| id.as_str().ends_with(start)) {
                            return Err(CloudError::answered("DescribeDisks", 400, "InvalidParameter.DiskIds"));
                        }
                    }
                    _ => {}
                }
                let mut page = self.ecs.describe_disks(deadline, &query).await?;
                if self.twist == Twist::HidesOurs {
                    page.rows.retain(|row| !is_ours(&row.tags));
                }
                if self.twist == Twist::ShortPages && query.ids.is_some() && page.rows.len() > 1 {
                    page.rows.sort_by(|a, b| b.created.cmp(&a.created).reverse());
                    page.rows.truncate(1);
                    page.next = Some("more".to_owned());
                }
                Ok(page)
            }

            async fn describe_snapshots(&self, deadline: Deadline, query: &DescribeSnapshots) -> Result<Page<Snapshot>> {
                let mut query = query.clone();
                if self.twist == Twist::IgnoresTags {
                    query.tags = Tags::new();
                }
                self.ecs.describe_snapshots(deadline, &query).await
            }

            $(async fn $method(&self, deadline: Deadline, request: &$request) -> Result<$answer> {
                self.ecs.$method(deadline, request).await
            })*
        }
    };
}

same! {
    create_disk(CreateDisk) -> DiskId;
    delete_disk(DiskId) -> ();
    attach_disk(AttachDisk) -> ();
    detach_disk(DetachDisk) -> ();
    resize_disk(ResizeDisk) -> ();
    modify_disk_spec(ModifyDiskSpec) -> Option<TaskId>;
    modify_disk_attribute(ModifyDiskAttribute) -> ();
    describe_tasks(DescribeTasks) -> Page<Task>;
    describe_disk_health([DiskId]) -> Page<DiskHealth>;
    create_snapshot(CreateSnapshot) -> SnapshotId;
    delete_snapshot(SnapshotId) -> ();
    create_snapshot_group(CreateSnapshotGroup) -> SnapshotGroupId;
    describe_snapshot_groups(DescribeSnapshotGroups) -> Page<SnapshotGroup>;
    delete_snapshot_group(SnapshotGroupId) -> Vec<KeptMember>;
    tag_resources(TagResources) -> ();
    untag_resources(UntagResources) -> ();
    list_tag_resources(ListTagResources) -> Page<String>;
    describe_instances(DescribeInstances) -> Page<Instance>;
    describe_instance_types([String]) -> Vec<InstanceType>;
    describe_available_resource(DescribeStock) -> Vec<ZoneStock>;
}

/// The same cloud, by a process that sees it through the twist.
fn twisted(stage: &Stage, twist: Twist) -> Arc<diskplugin::disk::DiskServices> {
    let ecs = stage.cloud.ecs();
    process(Arc::new(Twisted { ecs, twist }), "test")
}

fn is_final(error: &Error) -> bool {
    error.meaning().is_final()
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn code(status: u16, code: &str) -> serde_json::Value {
    json!({"code": {"status": status, "code": code}})
}

// ---- creating -----------------------------------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn a_creation_cut_off_in_a_late_attempt_is_unresolved_from_that_attempt_on() {
    let stage = Stage::patient(&["--stale=8s"]);
    stage.disk("other").await;
    pass(30).await;
    stage.configure(&json!({"faults": [
        {"action": "CreateDisk", "for": "70s", "kind": "internal-error"},
        {"action": "CreateDisk", "times": 1000, "kind": {"delay-after": "5s"}},
    ]}));
    let new = wanted("pvc-1");
    {
        let call = stage.disks.provisioner.create(minutes(5), &new);
        let made = async {
            while stage.rows().len() < 2 {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::select! {
            _ = call => panic!("ended"),
            () = made => {}
        }
    }
    // The caller has given up. The disk exists, and reads lag.
    let refused = code(403, "OperationDenied.NoStock");
    stage.faults("CreateDisk", 1000, &refused);
    let outcome = stage.disks.provisioner.create(seconds(5), &new).await;
    if let Err(error) = outcome {
        assert!(!is_final(&error), "{}", text(&error));
    }
}

#[tokio::test(start_paused = true)]
async fn a_standby_that_takes_over_withholds_refusals_while_the_old_leaders_disk_may_exist() {
    let stage = Stage::new(&["--stale=2s"]);
    stage.disk("other").await;
    pass(5).await;
    let standby = stage.restarted();
    standby.provisioner.list_owned();
    pass(3600).await;
    standby
        .provisioner
        .create(minutes(1), &wanted("warm"))
        .await
        .unwrap();
    pass(60).await;
    let new = wanted("pvc-1");
    for refusal in [
        "OperationDenied.NoStock",
        "InvalidAccountStatus.NotEnoughBalance",
        "Forbidden.RAM",
    ] {
        let lost = json!({"action": "CreateDisk", "kind": "reset-after"});
        let refused =
            json!({"action": "CreateDisk", "from": 2, "times": 100, "kind": code(403, refusal)});
        stage.configure(&json!({"faults": []}));
        stage.configure(&json!({"faults": [lost, refused]}));
        let old = stage
            .disks
            .provisioner
            .create(Deadline::after(Duration::from_millis(100)), &new)
            .await;
        old.unwrap_err();
        let outcome = standby.provisioner.create(seconds(1), &new).await;
        assert_eq!(stage.rows().len(), 3);
        if let Err(error) = outcome {
            assert!(!is_final(&error), "{refusal}: {}", text(&error));
        }
        break;
    }
}

async fn restart_then(refusal: &str, others: usize) {
    let stage = Stage::new(&["--stale=2s"]);
    for n in 0..others {
        stage.disk(&format!("other-{n}")).await;
    }
    pass(5).await;
    let lost = json!({"action": "CreateDisk", "kind": "reset-after"});
    let refused =
        json!({"action": "CreateDisk", "from": 2, "times": 100, "kind": code(403, refusal)});
    stage.configure(&json!({"faults": [lost, refused]}));
    let new = wanted("pvc-1");
    let old = stage
        .disks
        .provisioner
        .create(Deadline::after(Duration::from_millis(100)), &new)
        .await;
    old.unwrap_err();
    let restarted = stage.restarted();
    restarted.provisioner.list_owned();
    let outcome = restarted.provisioner.create(seconds(1), &new).await;
    assert_eq!(stage.rows().len(), others + 1);
    if let Err(error) = outcome {
        assert!(!is_final(&error), "{refusal}: {}", text(&error));
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_no_stock_is_not_final_for_the_first_disk_of_a_cluster() {
    restart_then("OperationDenied.NoStock", 0).await;
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_no_stock_is_not_final() {
    restart_then("OperationDenied.NoStock", 1).await;
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_a_denied_creation_is_not_final() {
    restart_then("Forbidden.RAM", 1).await;
}

#[tokio::test(start_paused = true)]
async fn an_account_that_sees_only_disks_of_others_creates_no_second_disk() {
    let stage = Stage::new(&[]).with_system_disk();
    let blind = twisted(&stage, Twist::HidesOurs);
    for _ in 0..2 {
        let outcome = blind
            .provisioner
            .create(seconds(45), &wanted("pvc-1"))
            .await;
        let _ = outcome.map_err(|error| eprintln!("{}", text(&error)));
    }
    assert_eq!(stage.rows().len(), 1, "{:#?}", stage.rows());
}

#[tokio::test(start_paused = true)]
async fn an_account_that_sees_only_disks_of_others_deletes_with_proof_only() {
    let stage = Stage::new(&[]).with_system_disk();
    let disk = stage.disk("pvc-1").await;
    let blind = twisted(&stage, Twist::HidesOurs);
    let outcome = blind.provisioner.delete(seconds(45), &disk).await;
    assert!(
        outcome.is_err() || stage.rows().is_empty(),
        "OK, and the disk is there"
    );
}

#[tokio::test(start_paused = true)]
async fn rows_that_were_not_asked_for_prove_no_absence() {
    let stage = Stage::new(&[]);
    let disk = stage.disk("pvc-1").await;
    stage.disk("other").await;
    pass(5).await;
    let odd = twisted(&stage, Twist::ReturnsOthers);
    let outcome = odd.provisioner.delete(seconds(45), &disk).await;
    assert!(
        outcome.is_err() || stage.rows().len() == 1,
        "OK, and the disk is there"
    );
}

#[tokio::test(start_paused = true)]
async fn a_page_that_ends_early_proves_no_absence() {
    let stage = Stage::new(&[]);
    let other = stage.disk("other").await;
    pass(5).await;
    let disk = stage.disk("pvc-1").await;
    pass(5).await;
    let odd = twisted(&stage, Twist::ShortPages);
    odd.inventory.disk(seconds(9), &other).await.unwrap();
    let outcome = odd.provisioner.delete(seconds(45), &disk).await;
    assert!(
        outcome.is_err() || stage.rows().len() == 1,
        "OK, and the disk is there"
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_that_ignores_tags_gives_no_name_another_disk() {
    let stage = Stage::new(&[]);
    let other = stage.disk("other").await;
    pass(5).await;
    let odd = twisted(&stage, Twist::IgnoresTags);
    stage.faults("CreateDisk", 1, &code(403, "OperationDenied.NoStock"));
    for _ in 0..2 {
        if let Ok(disk) = odd.provisioner.create(seconds(30), &wanted("pvc-1")).await {
            assert_ne!(disk.id, other, "pvc-1 was given the disk of \"other\"");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_ignores_tags_has_no_foreign_snapshot_deleted() {
    let stage = Stage::new(&[]);
    let source = stage.disk("source").await;
    let attacher = &stage.disks.attacher;
    attacher.attach(minutes(1), &source, &one()).await.unwrap();
    let kept = stage.snapshot("kept", &source).await;
    pass(60).await;
    let clone = diskplugin::disk::NewDisk {
        clone_of: Some(source.clone()),
        ..wanted("clone")
    };
    let made = stage
        .disks
        .provisioner
        .create_clone(minutes(5), &clone, &source)
        .await
        .unwrap();
    pass(60).await;
    let odd = twisted(&stage, Twist::IgnoresTags);
    let _ = odd.provisioner.delete(seconds(45), &made.id).await;
    let left = stage.cloud.state()["snapshots"].as_array().unwrap().clone();
    assert!(
        left.iter().any(|row| row["id"] == kept.as_str()),
        "the user's snapshot is deleted: {left:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn reads_that_lag_for_long_create_no_second_disk() {
    for lag in ["9s", "12s", "20s"] {
        let stage = Stage::new(&[]).with_system_disk();
        stage.disk("other").await;
        pass(60).await;
        stage.configure(&json!({"stale": {"lag": lag}}));
        let outcome = stage
            .disks
            .provisioner
            .create(seconds(45), &wanted("pvc-1"))
            .await;
        let _ = outcome.map_err(|error| eprintln!("{}", text(&error)));
        assert_eq!(stage.rows().len(), 2, "{lag}");
    }
}

// ---- attaching ----------------------------------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn after_a_restart_a_stale_row_is_no_attachment() {
    let stage = Stage::new(&["--attach-delay=1s", "--detach-delay=500ms"]);
    let disk = stage.disk("pvc-1").await;
    stage
        .disks
        .attacher
        .attach(minutes(1), &disk, &one())
        .await
        .unwrap();
    pass(60).await;
    stage
        .disks
        .attacher
        .detach(minutes(1), &disk, &one())
        .await
        .unwrap();
    stage.configure(&json!({"stale": {"lag": "2s"}}));
    // Published to the same node again, by another process; the node is busy with somebody else's operation.
    let restarted = stage.restarted();
    stage.faults("AttachDisk", 1, &code(403, "InvalidOperation.Conflict"));
    let row = restarted.attacher.attach(seconds(60), &disk, &one()).await;
    assert!(
        row.is_err() || stage.holders(&disk).iter().any(|(node, _)| node == "i-one"),
        "OK, and the disk is attached to {:?}",
        stage.holders(&disk)
    );
}

#[tokio::test(start_paused = true)]
async fn a_standby_that_takes_over_reports_no_detachment_from_a_row_of_before_the_attachment() {
    let stage = Stage::new(&[
        "--attach-delay=500ms",
        "--detach-delay=20s",
        "--stale=2500ms",
    ]);
    let disk = stage.disk("pvc-1").await;
    pass(10).await;
    let standby = stage.restarted();
    pass(3600).await;
    let node = one();
    let attach = stage.disks.attacher.attach(seconds(60), &disk, &node);
    // The old leader dies in the middle.
    assert!(
        tokio::time::timeout(Duration::from_millis(700), attach)
            .await
            .is_err()
    );
    standby
        .attacher
        .detach(seconds(60), &disk, &one())
        .await
        .unwrap();
    assert_eq!(stage.holders(&disk), [], "OK, and the disk is still held");
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_no_detachment_is_reported_from_a_row_of_before_the_attachment() {
    let stage = Stage::new(&[
        "--attach-delay=500ms",
        "--detach-delay=20s",
        "--stale=2500ms",
    ]);
    let disk = stage.disk("pvc-1").await;
    pass(10).await;
    let node = one();
    let attach = stage.disks.attacher.attach(seconds(60), &disk, &node);
    assert!(
        tokio::time::timeout(Duration::from_millis(700), attach)
            .await
            .is_err()
    );
    let restarted = stage.restarted();
    restarted
        .attacher
        .detach(seconds(60), &disk, &one())
        .await
        .unwrap();
    assert_eq!(stage.holders(&disk), [], "OK, and the disk is still held");
}

/// An order whose request is slow on its way: it takes effect late, though its caller has given up.
#[tokio::test(start_paused = true)]
async fn an_attachment_that_takes_effect_late_is_not_left_behind_by_unpublish() {
    let stage = Stage::new(&["--attach-delay=500ms", "--detach-delay=500ms"]);
    let disk = stage.disk("pvc-1").await;
    pass(10).await;
    stage.fault("AttachDisk", &json!({"delay-before": "3s"}));
    let request = AttachDisk {
        disk: disk.clone(),
        instance: one(),
        force: false,
        delete_with_instance: false,
    };
    // What the cloud does with the request of the call below, which hangs up.
    let (ecs, late) = (stage.cloud.ecs(), request.clone());
    let effect = tokio::spawn(async move { ecs.attach_disk(minutes(1), &late).await });
    tokio::task::yield_now().await;
    stage.configure(&json!({"faults": []}));
    stage.fault("AttachDisk", &json!("reset-before"));
    let lost = stage
        .disks
        .attacher
        .attach(Deadline::after(Duration::from_millis(400)), &disk, &one())
        .await;
    lost.unwrap_err();
    stage
        .disks
        .attacher
        .detach(seconds(60), &disk, &one())
        .await
        .unwrap();
    effect.await.unwrap().unwrap();
    pass(5).await;
    let elsewhere = stage
        .disks
        .attacher
        .attach(seconds(60), &disk, &two())
        .await;
    assert!(elsewhere.is_ok(), "{}", text(&elsewhere.unwrap_err()));
}

// ---- reading ------------------------------------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn a_fresh_process_reports_no_empty_list_from_an_empty_response() {
    let stage = Stage::new(&[]);
    let disk = stage.disk("pvc-1").await;
    stage
        .disks
        .attacher
        .attach(minutes(1), &disk, &one())
        .await
        .unwrap();
    let restarted = stage.restarted();
    restarted.inventory.disk(seconds(9), &disk).await.unwrap();
    restarted
        .attacher
        .attach(minutes(1), &disk, &one())
        .await
        .unwrap();
    pass(60).await;
    stage.configure(
        &json!({"faults": [{"action": "DescribeDisks", "for": "100s", "kind": "no-rows"}]}),
    );
    let listed = restarted
        .inventory
        .list(seconds(45), |row| row.id.clone())
        .await;
    assert!(
        listed.is_err(),
        "OK with {listed:?}, though this process has attached {disk}"
    );
}

#[tokio::test(start_paused = true)]
async fn several_malformed_ids_fail_nobody_else() {
    for bad in [1, 2, 3, 4, 6] {
        let stage = Stage::new(&[]);
        let mut good = Vec::new();
        for n in 0..60 {
            good.push(stage.disk(&format!("pvc-{n}")).await);
        }
        good.sort();
        pass(5).await;
        let odd = twisted(&stage, Twist::Malformed("malformed"));
        let mut looks = tokio::task::JoinSet::new();
        // Spread among the others in the order of ids.
        for n in 0..bad {
            let id: DiskId = format!("{}malformed", good[n * 60 / bad + 3])
                .parse()
                .unwrap();
            let odd = Arc::clone(&odd);
            looks.spawn(async move {
                let _ = odd.inventory.disk(seconds(30), &id).await;
                Ok(())
            });
        }
        for id in good {
            let odd = Arc::clone(&odd);
            looks.spawn(async move { odd.inventory.disk(seconds(30), &id).await.map(|_| ()) });
        }
        let failed: Vec<_> = looks
            .join_all()
            .await
            .into_iter()
            .filter_map(|look| look.err())
            .collect();
        let first = failed.first().map(text);
        assert!(
            failed.is_empty(),
            "{bad} malformed: {} others failed: {first:?}",
            failed.len()
        );
    }
}

/// The old process had several calls refused, which used their tokens up, and was killed when a later one had created
/// the disk. The new one counts the refused calls from zero, so that its further token is another one.
#[tokio::test(start_paused = true)]
async fn a_restart_after_several_refused_calls_uses_no_further_token_before_reads_have_caught_up() {
    for (refused_before, seed) in (0..45).map(|n| (1 + n % 3, n / 3)) {
        for standby in [false, true] {
            let flag = format!("--seed={seed}");
            let stage = Stage::new(&[&flag]);
            stage.disk("other").await;
            pass(60).await;
            let waiting = stage.restarted();
            waiting
                .provisioner
                .create(seconds(20), &wanted("warm"))
                .await
                .unwrap();
            pass(3600).await;
            stage.configure(&json!({
                "rules": {"token_burn_percent": 50}, "sold_out": ["*/cloud_essd"], "stale": {"lag": "2900ms"},
            }));
            let new = wanted("pvc-1");
            for _ in 0..refused_before {
                stage
                    .disks
                    .provisioner
                    .create(seconds(20), &new)
                    .await
                    .unwrap_err();
                pass(20).await;
            }
            stage.configure(&json!({"sold_out": []}));
            // Killed as soon as the disk is there.
            let made = async {
                while stage.rows().len() < 3 {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::select! {
                biased;
                () = made => {}
                _ = stage.disks.provisioner.create(seconds(20), &new) => panic!("ended"),
            }
            let next = if standby { waiting } else { stage.restarted() };
            for _ in 0..8 {
                match next.provisioner.create(seconds(20), &new).await {
                    Ok(_) => break,
                    Err(error) => eprintln!("{}", text(&error)),
                }
                pass(1).await;
            }
            pass(30).await;
            assert_eq!(
                stage.rows().len(),
                3,
                "after {refused_before} refused calls, standby: {standby}, seed {seed}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_young_disk_is_not_reported_deleted_while_reads_lag() {
    for lag in ["2s", "5s", "9s"] {
        let stage = Stage::new(&[]);
        stage.disk("other").await;
        pass(60).await;
        stage.configure(&json!({"stale": {"lag": lag}}));
        let new = wanted("pvc-1");
        let call = stage.disks.provisioner.create(seconds(45), &new);
        let made = async {
            while stage.rows().len() < 2 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            biased;
            () = made => {}
            _ = call => panic!("ended"),
        }
        let rows = stage.rows();
        let row = rows.iter().find(|row| row["name"] == "pvc-1").unwrap();
        let id: DiskId = row["id"].as_str().unwrap().parse().unwrap();
        let restarted = stage.restarted();
        let outcome = restarted.provisioner.delete(seconds(30), &id).await;
        assert!(
            outcome.is_err() || stage.rows().len() == 1,
            "lag {lag}: OK, and the disk is there"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn reads_that_lag_for_long_take_no_second_snapshot() {
    for lag in ["9s", "12s"] {
        let stage = Stage::new(&[]);
        let source = stage.disk("source").await;
        stage
            .disks
            .attacher
            .attach(minutes(1), &source, &one())
            .await
            .unwrap();
        stage.snapshot("other", &source).await;
        pass(60).await;
        stage.configure(&json!({"stale": {"lag": lag}}));
        let outcome = stage
            .disks
            .snapshotter
            .create(seconds(45), &new_snapshot("one", &source))
            .await;
        let _ = outcome.map_err(|error| eprintln!("{}", text(&error)));
        let count = stage.cloud.state()["snapshots"].as_array().unwrap().len();
        assert_eq!(count, 2, "{lag}");
    }
}

/// Reads are not monotonic: a new value is followed by an old one.
#[tokio::test(start_paused = true)]
async fn reads_that_jump_create_no_second_disk_and_lose_none() {
    for seed in 0..20 {
        for lag in ["0s..2s", "0s..3s"] {
            let seed = format!("--seed={seed}");
            let stage = Stage::new(&[
                &seed,
                "--create-delay=2s",
                "--attach-delay=1s",
                "--detach-delay=1s",
            ]);
            stage.disk("other").await;
            pass(60).await;
            stage.configure(&json!({"stale": {"lag": lag, "jumping": true}}));
            let outcome = stage
                .disks
                .provisioner
                .create(minutes(2), &wanted("pvc-1"))
                .await;
            let made = outcome.unwrap_or_else(|error| panic!("{lag} {seed}: {}", text(&error)));
            assert_eq!(stage.rows().len(), 2, "{lag} {seed}");
            for node in [one(), two(), one()] {
                let attached = stage
                    .disks
                    .attacher
                    .attach(minutes(2), &made.id, &node)
                    .await;
                if let Err(error) = attached {
                    panic!("{lag} {seed}: {}", text(&error));
                }
                assert_eq!(stage.holders(&made.id).len(), 1, "{lag} {seed}");
                stage
                    .disks
                    .attacher
                    .detach(minutes(2), &made.id, &node)
                    .await
                    .unwrap();
                assert_eq!(stage.holders(&made.id), [], "{lag} {seed}");
            }
            stage
                .disks
                .provisioner
                .delete(minutes(2), &made.id)
                .await
                .unwrap();
            assert_eq!(stage.rows().len(), 1, "{lag} {seed}");
        }
    }
}

/// The same node again, by another process, while reads jump and the node is busy.
#[tokio::test(start_paused = true)]
async fn another_process_takes_no_jumping_row_for_an_attachment() {
    let mut wrong = Vec::new();
    for seed in 0..30 {
        let flag = format!("--seed={seed}");
        let stage = Stage::new(&[&flag, "--attach-delay=1s", "--detach-delay=300ms"]);
        let disk = stage.disk("pvc-1").await;
        pass(60).await;
        stage.configure(&json!({"stale": {"lag": "0s..2s", "jumping": true}}));
        stage
            .disks
            .attacher
            .attach(minutes(1), &disk, &one())
            .await
            .unwrap();
        pass(60).await;
        stage
            .disks
            .attacher
            .detach(minutes(1), &disk, &one())
            .await
            .unwrap();
        let restarted = stage.restarted();
        stage.faults("AttachDisk", 1, &code(403, "InvalidOperation.Conflict"));
        let row = restarted.attacher.attach(seconds(60), &disk, &one()).await;
        if row.is_ok() && stage.holders(&disk).is_empty() {
            wrong.push(seed);
        }
    }
    assert!(
        wrong.is_empty(),
        "OK, and the disk is attached to no node: seeds {wrong:?}"
    );
}

// ---- third round --------------------------------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn one_refused_order_leaves_a_parallel_node_parallel() {
    let stage = Stage::crowd(1, &["--attach-delay=2s"]);
    let node = "i-0".parse().unwrap();
    assert!(
        stage
            .cloud
            .tag_instance(&node, "supportConcurrencyAttach", "true")
    );
    let mut disks = Vec::new();
    for n in 0..15 {
        disks.push(stage.disk(&format!("pvc-{n}")).await);
    }
    // Somebody else's operation keeps the instance busy for a moment.
    let busy = json!({"action": "AttachDisk", "from": 10, "times": 1, "kind": code(403, "InvalidOperation.Conflict")});
    stage.configure(&json!({"faults": [busy]}));
    let last = disks.split_off(10);
    let later = disks.split_off(5);
    let mut took = Vec::new();
    for disks in [disks, later, last] {
        let start = tokio::time::Instant::now();
        let mut calls = tokio::task::JoinSet::new();
        for disk in disks {
            let (services, node) = (Arc::clone(&stage.disks), node.clone());
            calls.spawn(async move {
                services
                    .attacher
                    .attach(minutes(9), &disk, &node)
                    .await
                    .map(|_| ())
            });
        }
        assert!(
            calls
                .join_all()
                .await
                .iter()
                .all(std::result::Result::is_ok)
        );
        took.push(start.elapsed());
        pass(60).await;
    }
    println!("{took:?} {:?}", stage.cloud.counts()["AttachDisk"]);
    assert!(
        took[2] <= Duration::from_secs(4),
        "5 disks, 32 at a time of 2 s: {took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_code_about_another_resource_is_no_proof_of_a_deletion() {
    for about in [
        "InvalidInstanceId.NotFound",
        "InvalidSnapshotId.NotFound",
        "InvalidSnapshotGroupId.NotFound",
        "InvalidDisk.AlreadyDetached",
    ] {
        let stage = Stage::new(&[]);
        let disk = stage.disk("pvc-1").await;
        stage.faults("DeleteDisk", 1000, &code(404, about));
        let outcome = stage.disks.provisioner.delete(seconds(20), &disk).await;
        assert!(
            outcome.is_err() || stage.rows().is_empty(),
            "{about}: OK, and the disk is there"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn two_processes_that_create_and_delete_at_once_leave_nothing() {
    for seed in 0..40 {
        let flag = format!("--seed={seed}");
        let stage = Stage::new(&[&flag, "--create-delay=1s"]);
        stage.disk("other").await;
        pass(60).await;
        stage.configure(&json!({"stale": {"lag": "0s..2s", "jumping": true, "tags": "2s"}}));
        let standby = stage.restarted();
        let new = wanted("pvc-1");
        let (one, two) = tokio::join!(stage.disks.provisioner.create(minutes(1), &new), async {
            tokio::time::sleep(Duration::from_millis(seed * 37)).await;
            standby.provisioner.create(minutes(1), &new).await
        },);
        let (one, two) = (one.unwrap(), two.unwrap());
        assert_eq!(one.id, two.id, "{seed}");
        let (_, _) = tokio::join!(
            stage.disks.provisioner.delete(minutes(1), &one.id),
            standby.provisioner.delete(minutes(1), &one.id),
        );
        pass(10).await;
        assert_eq!(stage.rows().len(), 1, "{seed}");
    }
}

/// One process. Whatever is lost, cut off, hidden or refused: no final code while a disk of the name exists, and one disk in the end.
#[tokio::test(start_paused = true)]
async fn no_final_code_while_the_disk_exists_whatever_happens_to_calls() {
    let mut wrong = Vec::new();
    for seed in 0..150_u64 {
        for patient in [false, true] {
            let flag = format!("--seed={seed}");
            let flags = [flag.as_str(), "--create-delay=1s"];
            let stage = if patient {
                Stage::patient(&flags)
            } else {
                Stage::new(&flags)
            };
            if seed % 3 != 0 {
                stage.disk("other").await;
            }
            let others = stage.rows().len();
            pass(20).await;
            let percent = |action: &str, percent: u8, kind: serde_json::Value| json!({"action": action, "percent": percent, "kind": kind});
            stage.configure(&json!({
                "stale": {"lag": "0s..2s", "jumping": true, "tags": "2s"},
                "rules": {"token_burn_percent": 40},
                "faults": [
                    percent("CreateDisk", 15, json!("reset-after")),
                    percent("CreateDisk", 10, json!("reset-before")),
                    percent("CreateDisk", 15, code(403, "OperationDenied.NoStock")),
                    percent("CreateDisk", 10, code(403, "Forbidden.RAM")),
                    percent("CreateDisk", 10, json!({"delay-after": "3s"})),
                    percent("DescribeDisks", 15, json!("no-rows")),
                    percent("DescribeDisks", 10, json!("internal-error")),
                ],
            }));
            let new = if seed % 2 == 0 {
                wanted("pvc-1")
            } else {
                diskplugin::disk::NewDisk {
                    places: vec![crate::kit::zone("a").into(), crate::kit::zone("b").into()],
                    ..wanted("pvc-1")
                }
            };
            for round in 0..12_u64 {
                let cut = Duration::from_millis(((seed * 7919 + round * 104_729) % 60) * 100 + 50);
                let call = stage.disks.provisioner.create(seconds(10), &new);
                let outcome = tokio::time::timeout(cut, call).await;
                let exists = stage.rows().len() > others;
                if let Ok(Err(error)) = &outcome
                    && exists
                    && is_final(error)
                {
                    wrong.push(format!(
                        "seed {seed}, patient {patient}, round {round}: {}",
                        text(error).chars().take(160).collect::<String>()
                    ));
                }
                tokio::time::sleep(Duration::from_millis((seed * 31 + round * 17) % 30 * 100))
                    .await;
            }
            stage.configure(&json!({"faults": [], "rules": {"token_burn_percent": 0}}));
            pass(120).await;
            let mut made = None;
            for _ in 0..6 {
                match stage.disks.provisioner.create(seconds(60), &new).await {
                    Ok(disk) => {
                        made = Some(disk);
                        break;
                    }
                    Err(_) => pass(30).await,
                }
            }
            if made.is_none() || stage.rows().len() != others + 1 {
                wrong.push(format!(
                    "seed {seed}, patient {patient}: {} disks, found {made:?}",
                    stage.rows().len() - others
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(12)]
    );
}

#[tokio::test(start_paused = true)]
async fn hung_and_failed_reads_delay_few() {
    for (percent, kind) in [
        (0, json!("hang")),
        (10, json!("hang")),
        (30, json!("hang")),
        (30, json!("internal-error")),
        (10, json!({"delay-after": "30s"})),
    ] {
        let stage = Stage::patient_crowd(
            60,
            &[
                "--create-delay=500ms",
                "--attach-delay=2s",
                "--detach-delay=2s",
            ],
        );
        stage.configure(&json!({"rules": {"disk_quantity": 100_000}}));
        stage.configure(
            &json!({"faults": [{"action": "DescribeDisks", "percent": percent, "kind": kind}]}),
        );
        let start = tokio::time::Instant::now();
        let mut lives = tokio::task::JoinSet::new();
        for n in 0..300 {
            let disks = Arc::clone(&stage.disks);
            lives.spawn(async move {
                let start = tokio::time::Instant::now();
                let made = disks
                    .provisioner
                    .create(minutes(5), &wanted(&format!("pvc-{n}")))
                    .await
                    .unwrap();
                let created = start.elapsed();
                let node = format!("i-{}", n % 60).parse().unwrap();
                disks
                    .attacher
                    .attach(minutes(5), &made.id, &node)
                    .await
                    .unwrap();
                (created, start.elapsed())
            });
        }
        let mut took = lives.join_all().await;
        took.sort_by_key(|(_, all)| *all);
        let (median, last) = (took[150].1, took[299].1);
        let slow = took.iter().map(|(created, _)| *created).max().unwrap();
        println!(
            "{percent} % {kind}: median {median:?}, last {last:?}, slowest creation {slow:?}, all {:?}, describes {}",
            start.elapsed(),
            stage.calls("DescribeDisks")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_claim_out_of_stock_costs() {
    for burn in [0, 100] {
        for (name, categories, places) in [
            ("one pair", 1, vec!["a"]),
            ("two zones, four categories", 4, vec!["a", "b"]),
        ] {
            let stage = Stage::new(&["--sold-out=*/*"]);
            stage.configure(&json!({"rules": {"token_burn_percent": burn}}));
            pass(30).await;
            let new = diskplugin::disk::NewDisk {
                categories: diskplugin::model::Category::CREATABLE
                    .iter()
                    .take(categories)
                    .cloned()
                    .collect(),
                places: places
                    .iter()
                    .map(|letter| crate::kit::zone(letter).into())
                    .collect(),
                ..wanted("pvc-1")
            };
            stage.cloud.clear_calls();
            for _ in 0..10 {
                let _ = stage.disks.provisioner.create(seconds(10), &new).await;
                pass(60).await;
            }
            println!(
                "{name}, burn {burn}: ten calls of CreateVolume cost {:?}",
                stage.cloud.counts()
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_takes_far_longer_than_ever_is_not_noticed_late() {
    for (learned, then) in [
        ("1s", 20),
        ("1s", 45),
        ("1s", 200),
        ("30s", 1),
        ("30s", 2),
        ("200ms", 10),
        ("60s", 3),
    ] {
        let stage = Stage::new(&[&format!("--attach-delay={learned}"), "--detach-delay=1s"]);
        let disk = stage.disk("pvc-1").await;
        for _ in 0..40 {
            stage
                .disks
                .attacher
                .attach(minutes(5), &disk, &one())
                .await
                .unwrap();
            stage
                .disks
                .attacher
                .detach(minutes(5), &disk, &one())
                .await
                .unwrap();
        }
        stage.configure(&json!({"delays": {"attach": format!("{then}s")}}));
        let mut late = Vec::new();
        for _ in 0..5 {
            let (start, before) = (tokio::time::Instant::now(), stage.calls("DescribeDisks"));
            stage
                .disks
                .attacher
                .attach(minutes(9), &disk, &one())
                .await
                .unwrap();
            late.push((
                start.elapsed() - Duration::from_secs(then),
                stage.calls("DescribeDisks") - before,
            ));
            stage
                .disks
                .attacher
                .detach(minutes(5), &disk, &one())
                .await
                .unwrap();
        }
        println!("learned {learned}, then {then} s: late, describes {late:?}");
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// One process, whose calls are cut off.
    None,
    /// A process is killed, and a fresh one goes on.
    Restart,
    /// Another process that has run for long takes over, as with several replicas of the chart.
    Standby,
}

/// Lives of volumes with calls that are cut off, faults, and reads that lag by at most two seconds.
async fn lives(change: Change) {
    let mut wrong = std::collections::BTreeMap::<String, Vec<u64>>::new();
    for seed in 0..60_u64 {
        let flag = format!("--seed={seed}");
        let stage = Stage::crowd(
            4,
            &[
                &flag,
                "--create-delay=1s",
                "--attach-delay=1s",
                "--detach-delay=1s",
            ],
        );
        stage.disk("other").await;
        // A replica that loses its lease does not get it back within a minute.
        let replicas: Vec<_> = (0..64).map(|_| stage.restarted()).collect();
        pass(3600).await;
        stage
            .disks
            .provisioner
            .create(minutes(1), &wanted("warm"))
            .await
            .unwrap();
        pass(60).await;
        let percent = |action: &str, percent: u8, kind: serde_json::Value| json!({"action": action, "percent": percent, "kind": kind});
        stage.configure(&json!({
            "stale": {"lag": "0s..2s", "jumping": true, "tags": "1s"},
            "rules": {"token_burn_percent": 20},
            "faults": [
                percent("CreateDisk", 10, json!("reset-after")),
                percent("CreateDisk", 15, code(403, "OperationDenied.NoStock")),
                percent("AttachDisk", 10, json!("reset-after")),
                percent("AttachDisk", 15, code(403, "InvalidOperation.Conflict")),
                percent("DetachDisk", 10, json!("reset-after")),
                percent("DescribeDisks", 5, json!("no-rows")),
                percent("DeleteDisk", 10, json!("reset-after")),
            ],
        }));
        let mut complain = |what: &str| wrong.entry(what.to_owned()).or_default().push(seed);
        let term = |n: u64| Duration::from_millis(1300 + (seed * 7919 + n * 104_729) % 5000);
        let mut turn = 0_u64;
        let next = |turn: u64| match change {
            Change::None => Arc::clone(&stage.disks),
            Change::Restart => stage.restarted(),
            Change::Standby => Arc::clone(&replicas[usize::try_from(turn % 64).unwrap()]),
        };
        for n in 0..6 {
            let name = format!("pvc-{n}");
            let of_name = || {
                stage
                    .rows()
                    .into_iter()
                    .filter(|row| row["name"] == name.as_str())
                    .count()
            };
            let new = wanted(&name);
            let made = loop {
                turn += 1;
                let leader = next(turn);
                match tokio::time::timeout(term(turn), leader.provisioner.create(seconds(30), &new))
                    .await
                {
                    Ok(Ok(disk)) => break disk.id,
                    Ok(Err(error)) if is_final(&error) && of_name() > 0 => {
                        if std::env::var_os("REVIEW_LOG").is_some() {
                            println!("seed {seed} {name}: {}", text(&error));
                            for call in stage.cloud.calls().iter().rev().take(8) {
                                println!("    {call:?}");
                            }
                        }
                        complain("final code while the disk exists");
                    }
                    _ => {}
                }
                if of_name() > 1 {
                    complain("two disks of one name");
                }
            };
            if of_name() > 1 {
                complain("two disks of one name");
            }
            for round in 0..3_u64 {
                // Mostly the same node again, as a StatefulSet does.
                let node: diskplugin::model::InstanceId =
                    format!("i-{}", (seed + round / 2) % 4).parse().unwrap();
                loop {
                    turn += 1;
                    let leader = next(turn);
                    let outcome = tokio::time::timeout(
                        term(turn),
                        leader.attacher.attach(seconds(60), &made, &node),
                    )
                    .await;
                    if matches!(outcome, Ok(Ok(_))) {
                        break;
                    }
                }
                if !stage
                    .holders(&made)
                    .iter()
                    .any(|(holder, _)| *holder == node.as_str())
                {
                    complain("attached, though to no node");
                }
                loop {
                    turn += 1;
                    let leader = next(turn);
                    let outcome = tokio::time::timeout(
                        term(turn),
                        leader.attacher.detach(seconds(60), &made, &node),
                    )
                    .await;
                    if matches!(outcome, Ok(Ok(()))) {
                        break;
                    }
                }
                if stage
                    .holders(&made)
                    .iter()
                    .any(|(holder, _)| *holder == node.as_str())
                {
                    complain("detached, though still held");
                }
            }
            loop {
                turn += 1;
                let leader = next(turn);
                let outcome =
                    tokio::time::timeout(term(turn), leader.provisioner.delete(seconds(60), &made))
                        .await;
                if matches!(outcome, Ok(Ok(()))) {
                    break;
                }
            }
            if of_name() > 0 {
                complain("deleted, though there");
            }
        }
    }
    assert!(wrong.is_empty(), "seeds: {wrong:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_process_whose_calls_are_cut_off_tells_nothing_wrong() {
    lives(Change::None).await;
}

#[tokio::test(start_paused = true)]
async fn processes_that_are_killed_and_started_again_tell_nothing_wrong() {
    lives(Change::Restart).await;
}

#[tokio::test(start_paused = true)]
async fn leaders_that_take_turns_tell_nothing_wrong() {
    lives(Change::Standby).await;
}

/// One empty response to the listing of a fresh process: it proves nothing, least of all that the cluster has no disk.
#[tokio::test(start_paused = true)]
async fn an_empty_first_listing_makes_no_refusal_final() {
    let stage = Stage::new(&["--stale=2s"]);
    for n in 0..3 {
        stage.disk(&format!("other-{n}")).await;
    }
    pass(60).await;
    stage.configure(&json!({"faults": [
        {"action": "CreateDisk", "kind": "reset-after"},
        {"action": "CreateDisk", "from": 2, "times": 100, "kind": code(403, "OperationDenied.NoStock")},
    ]}));
    let new = wanted("pvc-1");
    let old = stage
        .disks
        .provisioner
        .create(Deadline::after(Duration::from_millis(100)), &new)
        .await;
    old.unwrap_err();
    stage.configure(&json!({"faults": [
        {"action": "CreateDisk", "times": 100, "kind": code(403, "OperationDenied.NoStock")},
        {"action": "DescribeDisks", "times": 2, "kind": "no-rows"},
    ]}));
    let restarted = stage.restarted();
    restarted.provisioner.list_owned();
    stage.cloud.clear_calls();
    let outcome = restarted.provisioner.create(seconds(1), &new).await;
    for call in stage.cloud.calls() {
        println!("{} {:?} {:?}", call.action, call.code, call.params);
    }
    println!("{:?}", outcome.as_ref().map_err(text));
    assert_eq!(stage.rows().len(), 4);
    if let Err(error) = outcome {
        assert!(!is_final(&error), "{}", text(&error));
    }
}

#[tokio::test(start_paused = true)]
async fn reads_that_lag_for_long_take_no_second_group_and_lose_none() {
    for lag in ["2s", "5s", "9s", "12s"] {
        let stage = Stage::new(&["--cut-delay=1s"]);
        let mut sources = Vec::new();
        for name in ["one", "two"] {
            let disk = stage.disk(name).await;
            stage
                .disks
                .attacher
                .attach(minutes(1), &disk, &one())
                .await
                .unwrap();
            sources.push(disk);
        }
        let of: Vec<_> = sources.iter().collect();
        let groups = &stage.disks.snapshotter;
        groups
            .create_group(minutes(1), &crate::group::new_group("other", &of))
            .await
            .unwrap();
        pass(60).await;
        stage.configure(&json!({"stale": {"lag": lag}}));
        let new = crate::group::new_group("group", &of);
        let mut final_code = None;
        for _ in 0..3 {
            match groups.create_group(seconds(45), &new).await {
                Ok(_) => break,
                Err(error) if is_final(&error) => final_code = Some(text(&error)),
                Err(_) => {}
            }
        }
        let count = stage.cloud.state()["groups"].as_array().map_or(0, Vec::len);
        assert_eq!((count, final_code), (2, None), "{lag}");
    }
}

//! All implementations agree: the same random calls at the same times return identical responses, including the IDs of
//! resources and requests.

use diskplugin::cloud::{
    DescribeDisks, DescribeInstances, DescribeSnapshots, DescribeStock, DescribeTasks,
    DiskAttribute, EcsApi, ModifyDiskAttribute, ModifyDiskSpec, ResizeDisk, ResizeMode, Result,
    TagResources, TagTarget, UntagResources,
};
use diskplugin::model::{Category, ClientToken, DiskId, Gib, PerformanceLevel, SnapshotId};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

use crate::world::{
    FAR_ZONE, Implementation, World, ZONE, attach_to, deadline, detach_from, essd, node,
    snapshot_of, tags, zone,
};

/// One random call. Numbers select an existing resource, by remainder.
#[derive(Debug, Clone)]
enum Step {
    Pass(u64),
    Create {
        name: u8,
        what: u8,
        size: u32,
        from: Option<u8>,
    },
    Delete(u8),
    Attach(u8, u8),
    Detach(u8, u8),
    Resize {
        disk: u8,
        size: u32,
        online: bool,
    },
    Cut {
        disk: u8,
        name: u8,
    },
    DeleteSnapshot(u8),
    Tag {
        disk: u8,
        snapshot: bool,
        value: u8,
    },
    Untag(u8, u8),
    Modify {
        disk: u8,
        what: u8,
        dry_run: bool,
    },
    Burst(u8, bool),
    Tasks(u8),
    Health(u8),
    Disks {
        filter: u8,
        page_size: u32,
    },
    Snapshots {
        filter: u8,
    },
    Instances,
    Types(u8),
    Stock(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let n = any::<u8>;
    let name = || 0..8_u8;
    prop_oneof![
        3 => (1..5_u64).prop_map(Step::Pass),
        5 => (name(), n(), 18..42_u32, proptest::option::weighted(0.3, n()))
            .prop_map(|(name, what, size, from)| Step::Create { name, what, size, from }),
        1 => n().prop_map(Step::Delete),
        4 => (n(), n()).prop_map(|(disk, node)| Step::Attach(disk, node)),
        3 => (n(), n()).prop_map(|(disk, node)| Step::Detach(disk, node)),
        2 => (n(), 10..60_u32, any::<bool>())
            .prop_map(|(disk, size, online)| Step::Resize { disk, size, online }),
        3 => (n(), name()).prop_map(|(disk, name)| Step::Cut { disk, name }),
        1 => n().prop_map(Step::DeleteSnapshot),
        2 => (n(), any::<bool>(), n())
            .prop_map(|(disk, snapshot, value)| Step::Tag { disk, snapshot, value }),
        1 => (n(), n()).prop_map(|(disk, key)| Step::Untag(disk, key)),
        3 => (n(), n(), any::<bool>())
            .prop_map(|(disk, what, dry_run)| Step::Modify { disk, what, dry_run }),
        1 => (n(), any::<bool>()).prop_map(|(disk, on)| Step::Burst(disk, on)),
        1 => n().prop_map(Step::Tasks),
        1 => n().prop_map(Step::Health),
        4 => (n(), 1..600_u32)
            .prop_map(|(filter, page_size)| Step::Disks { filter, page_size }),
        2 => n().prop_map(|filter| Step::Snapshots { filter }),
        1 => Just(Step::Instances),
        1 => n().prop_map(Step::Types),
        1 => n().prop_map(Step::Stock),
    ]
}

/// One implementation, with the IDs returned so far.
#[derive(Debug)]
struct Replay {
    world: World,
    disks: Vec<DiskId>,
    snapshots: Vec<SnapshotId>,
    page: Option<String>,
}

const NODES: [&str; 4] = ["i-one", "i-two", "i-far", "i-unknown"];

impl Replay {
    async fn open(implementation: Implementation) -> Self {
        let world = World::open(implementation).await;
        // A resize is immediate: only the HTTP client would retry a second one meanwhile.
        world.configure(json!({
            "delays": {"create": "2s", "attach": "3s", "detach": "3s", "cut": "1s",
                       "snapshot": "4s", "load": "5s", "modify": "3s", "delete": "2s"},
            "rules": {"missing_is_error": true, "never_attached": true, "disk_quantity": 4},
            "stale": {"lag": "1s", "torn": true},
            "out_of_stock": ["cn-beijing-b/cloud_auto"],
        }));
        Self {
            world,
            disks: vec!["d-unknown".parse().unwrap()],
            snapshots: vec!["s-unknown".parse().unwrap()],
            page: None,
        }
    }

    fn disk(&self, number: u8) -> DiskId {
        self.disks[usize::from(number) % self.disks.len()].clone()
    }

    fn snapshot(&self, number: u8) -> SnapshotId {
        self.snapshots[usize::from(number) % self.snapshots.len()].clone()
    }

    /// Runs a step and formats its outcome.
    async fn run_step(&mut self, step: &Step) -> String {
        let ecs = std::sync::Arc::clone(&self.world.ecs);
        match *step {
            Step::Pass(seconds) => {
                self.world.pass(seconds);
                String::new()
            }
            Step::Create {
                name,
                what,
                size,
                from,
            } => self.create(&*ecs, name, what, size, from).await,
            Step::Delete(disk) => outcome_text(ecs.delete_disk(deadline(), &self.disk(disk)).await),
            Step::Attach(disk, to) => {
                let request = attach_to(&self.disk(disk), NODES[usize::from(to) % 4]);
                outcome_text(ecs.attach_disk(deadline(), &request).await)
            }
            Step::Detach(disk, from) => {
                let request = detach_from(&self.disk(disk), NODES[usize::from(from) % 4]);
                outcome_text(ecs.detach_disk(deadline(), &request).await)
            }
            Step::Resize { disk, size, online } => {
                let mode = if online {
                    ResizeMode::Online
                } else {
                    ResizeMode::Offline
                };
                let disk = self.disk(disk);
                let token = ClientToken::derive("ResizeDisk", [disk.as_str()]);
                let request = ResizeDisk {
                    disk,
                    size: Gib(size),
                    mode,
                    token,
                };
                outcome_text(ecs.resize_disk(deadline(), &request).await)
            }
            Step::Cut { disk, name } => {
                let mut request = snapshot_of(&self.disk(disk), &format!("cut-{name}"));
                request.retention_days = (name > 5).then_some(u32::from(name));
                request.tags = tags(&[("k", "cut")]);
                let outcome = ecs.create_snapshot(deadline(), &request).await;
                self.snapshots.extend(outcome.as_ref().ok().cloned());
                outcome_text(outcome)
            }
            Step::DeleteSnapshot(snapshot) => outcome_text(
                ecs.delete_snapshot(deadline(), &self.snapshot(snapshot))
                    .await,
            ),
            Step::Tag {
                disk,
                snapshot,
                value,
            } => {
                let targets = if snapshot {
                    TagTarget::Snapshots(vec![self.snapshot(disk)])
                } else {
                    TagTarget::Disks(vec![self.disk(disk), self.disk(0)])
                };
                let tags = tags(&[(&format!("k{}", value % 30), "v")]);
                let request = TagResources { targets, tags };
                outcome_text(ecs.tag_resources(deadline(), &request).await)
            }
            Step::Untag(disk, key) => {
                let request = UntagResources {
                    targets: TagTarget::Disks(vec![self.disk(disk)]),
                    keys: vec![format!("k{}", key % 30)],
                };
                outcome_text(ecs.untag_resources(deadline(), &request).await)
            }
            Step::Modify {
                disk,
                what,
                dry_run,
            } => self.modify(&*ecs, disk, what, dry_run).await,
            Step::Burst(disk, bursting) => {
                let disk = self.disk(disk);
                let attribute = DiskAttribute::Bursting(bursting);
                let request = ModifyDiskAttribute { disk, attribute };
                outcome_text(ecs.modify_disk_attribute(deadline(), &request).await)
            }
            Step::Tasks(disk) => {
                let query = DescribeTasks::Disk(self.disk(disk));
                outcome_text(ecs.describe_tasks(deadline(), &query).await)
            }
            Step::Health(disk) => {
                let both = [self.disk(disk), self.disk(0)];
                outcome_text(ecs.describe_disk_health(deadline(), &both).await)
            }
            Step::Disks { filter, page_size } => self.disks(&*ecs, filter, page_size).await,
            Step::Snapshots { filter } => self.snapshots(&*ecs, filter).await,
            Step::Instances => {
                let query = DescribeInstances::default();
                outcome_text(ecs.describe_instances(deadline(), &query).await)
            }
            Step::Types(count) => {
                let names = (0..count % 12).map(|n| format!("ecs.g{n}.large"));
                let names: Vec<String> = names.collect();
                outcome_text(ecs.describe_instance_types(deadline(), &names).await)
            }
            Step::Stock(filter) => {
                let query = DescribeStock {
                    zone: (filter.is_multiple_of(2)).then(|| zone(FAR_ZONE)),
                    category: (filter.is_multiple_of(3)).then_some(Category::CloudAuto),
                    regional: filter.is_multiple_of(5),
                    instance_type: (filter.is_multiple_of(7)).then(|| "ecs.g6.large".to_owned()),
                };
                outcome_text(ecs.describe_available_resource(deadline(), &query).await)
            }
        }
    }

    async fn create(
        &mut self,
        ecs: &dyn EcsApi,
        name: u8,
        what: u8,
        size: u32,
        from: Option<u8>,
    ) -> String {
        let mut request = essd(&format!("disk-{name}"));
        request.size = Gib(size);
        request.category = match what % 8 {
            index @ 0..6 => Category::CREATABLE[usize::from(index)].clone(),
            6 => Category::Other("cloud_unheard_of".to_owned()),
            _ => Category::CloudEssd,
        };
        request.performance_level = (what.is_multiple_of(5)).then_some(PerformanceLevel::Pl2);
        request.zone = Some(zone(if what.is_multiple_of(7) {
            FAR_ZONE
        } else {
            ZONE
        }));
        request.encrypted = what.is_multiple_of(3);
        request.kms_key = (what.is_multiple_of(4)).then(|| "key".to_owned());
        request.snapshot = from.map(|number| self.snapshot(number));
        request.tags = tags(&[("name", "ö /&=+%~*"), ("none", "")]);
        let outcome = ecs.create_disk(deadline(), &request).await;
        self.disks.extend(outcome.as_ref().ok().cloned());
        outcome_text(outcome)
    }

    async fn modify(&self, ecs: &dyn EcsApi, disk: u8, what: u8, dry_run: bool) -> String {
        let request = ModifyDiskSpec {
            disk: self.disk(disk),
            category: match what % 4 {
                0 => Some(Category::CloudAuto),
                1 => Some(Category::CloudSsd),
                2 => Some(Category::CloudEssd),
                _ => None,
            },
            performance_level: (what.is_multiple_of(5)).then_some(PerformanceLevel::Pl1),
            provisioned_iops: (what.is_multiple_of(3)).then_some(u32::from(what) * 200),
            dry_run,
        };
        outcome_text(ecs.modify_disk_spec(deadline(), &request).await)
    }

    async fn disks(&mut self, ecs: &dyn EcsApi, filter: u8, page_size: u32) -> String {
        let ids = (0..filter % 7).map(|n| self.disk(n));
        let query = DescribeDisks {
            ids: (filter.is_multiple_of(3)).then(|| ids.collect()),
            tags: tags(if filter.is_multiple_of(5) {
                &[("none", "")]
            } else {
                &[]
            }),
            instance: (filter.is_multiple_of(7)).then(|| node("i-one")),
            page_size: (filter.is_multiple_of(2)).then_some(page_size),
            next: self.page.take(),
            dry_run: filter.is_multiple_of(13),
        };
        let outcome = ecs.describe_disks(deadline(), &query).await;
        self.page = outcome.as_ref().ok().and_then(|page| page.next.clone());
        outcome_text(outcome)
    }

    async fn snapshots(&mut self, ecs: &dyn EcsApi, filter: u8) -> String {
        let ids = (0..filter % 7).map(|n| self.snapshot(n));
        let query = DescribeSnapshots {
            ids: (filter.is_multiple_of(3)).then(|| ids.collect()),
            disk: (filter.is_multiple_of(5)).then(|| self.disk(filter)),
            tags: tags(if filter.is_multiple_of(7) {
                &[("k", "cut")]
            } else {
                &[]
            }),
            page_size: (filter.is_multiple_of(2)).then_some(u32::from(filter)),
            next: None,
        };
        outcome_text(ecs.describe_snapshots(deadline(), &query).await)
    }
}

/// A response or an error as text, without durations.
fn outcome_text<T: std::fmt::Debug>(outcome: Result<T>) -> String {
    match outcome {
        Ok(answer) => format!("{answer:?}"),
        Err(error) => format!("{:?}: {error}", error.kind()),
    }
}

#[test]
fn the_same_calls_return_the_same_responses_on_every_implementation() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut runner = TestRunner::new(Config {
        cases: 24,
        max_shrink_iters: 200,
        failure_persistence: None,
        ..Config::default()
    });
    let outcome = runner.run(&vec(step(), 1..80), |steps| {
        runtime.block_on(async {
            let mut memory = Replay::open(Implementation::Memory).await;
            let mut v1 = Replay::open(Implementation::HTTP_V1).await;
            let mut v3 = Replay::open(Implementation::HTTP_V3).await;
            for step in &steps {
                let told = memory.run_step(step).await;
                prop_assert_eq!(
                    &told,
                    &v1.run_step(step).await,
                    "in memory and V1: {:?}",
                    step
                );
                prop_assert_eq!(
                    &told,
                    &v3.run_step(step).await,
                    "in memory and V3: {:?}",
                    step
                );
            }
            Ok(())
        })
    });
    outcome.unwrap();
}

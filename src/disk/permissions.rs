//! Finds out which actions of the cloud are allowed, without changing anything: reads, and writes on resources that
//! cannot exist. No write names a resource that exists, not even as a dry run.

use std::sync::Arc;

use ecs::{
    self, AttachDisk, Client, Condition, CreateSnapshot, CreateSnapshotGroup, DescribeDisks, DescribeInstances,
    DescribeSnapshotGroups, DescribeSnapshots, DescribeStock, DescribeTasks, DetachDisk, DiskAttribute, Kind,
    ModifyDiskAttribute, ModifyDiskSpec, Page, ResizeDisk, ResizeMode, TagResources, TagTarget, UntagResources,
};

use super::Result;
use super::error::cloud;
use super::provision::NewDisk;
use super::provision::candidates::Candidate;
use crate::base::{Deadline, error_chain};
use crate::model::{
    Category, ClientToken, Disk, DiskId, Gib, InstanceId, InvalidId, SnapshotGroupId, SnapshotId, Tags, ZoneStock, tag,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    Allowed,
    Denied(String),
    ProbablyDenied(&'static str),
    /// It is not denied, but the response does not prove that it is allowed.
    Unknown(&'static str),
    Failed(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionAccess {
    pub action: &'static str,
    pub access: Access,
}

/// A tag that no resource has: removing it changes nothing.
const NO_TAG: &str = "diskplugin.csi.example/none";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permissions {
    pub actions: Vec<ActionAccess>,
    pub stock: Vec<ZoneStock>,
}

#[derive(Debug)]
pub struct PermissionProbe {
    pub ecs: Arc<Client>,
}

impl PermissionProbe {
    /// The first call: whether the cloud accepts requests at all. Returns whether it lists any disk.
    pub async fn reach(&self, deadline: Deadline) -> Result<bool> {
        let page = self.ecs.describe_disks(deadline, &DescribeDisks::default()).await;
        let page = page.map_err(cloud("list the disks"))?;
        Ok(!page.rows.is_empty() || !page.unreadable.is_empty())
    }

    /// Calls all actions that the driver uses.
    ///
    /// # Errors
    /// If an ID that does not exist is invalid, which is a defect of this file.
    pub async fn run(&self, deadline: Deadline) -> std::result::Result<Permissions, InvalidId> {
        let (mut actions, stock) = self.reads(deadline).await;
        actions.extend(self.writes(deadline).await?);
        Ok(Permissions { actions, stock })
    }

    /// The attached disks of any cluster that are deleted with their instance, although they can be moved. `None` if
    /// the cloud lists no disk at all, as it does without the permission.
    pub async fn deleted_with_instance(&self, deadline: Deadline) -> Result<Option<Vec<DiskId>>> {
        let (mut query, mut found) = (DescribeDisks::default(), Vec::new());
        let mut is_empty = true;
        loop {
            let page = self.ecs.describe_disks(deadline, &query).await;
            let page = page.map_err(cloud("list the disks"))?;
            is_empty &= page.rows.is_empty();
            let is_lost = |row: &Disk| {
                let is_volume = row.tags.contains_key(tag::CLUSTER);
                is_volume && !row.attachments.is_empty() && row.is_lost_with_instance()
            };
            let lost = page.rows.into_iter().filter(is_lost);
            found.extend(lost.map(|row| row.id));
            match page.next {
                Some(next) => query.next = Some(next),
                None => return Ok((!is_empty).then_some(found)),
            }
        }
    }

    async fn reads(&self, deadline: Deadline) -> (Vec<ActionAccess>, Vec<ZoneStock>) {
        let ecs = &self.ecs;
        let disks = ecs.describe_disks(deadline, &DescribeDisks::default()).await;
        let disk = disks.as_ref().ok().and_then(|page| page.rows.first());
        let disk = disk.cloned();
        let instances = ecs.describe_instances(deadline, &DescribeInstances::default()).await;
        let instance = instances.as_ref().ok().and_then(|page| page.rows.first());
        let names: Vec<_> = instance.iter().map(|row| row.instance_type.clone()).collect();
        let query = DescribeStock::default();
        let stock = ecs.describe_available_resource(deadline, &query).await;
        let snapshots = DescribeSnapshots::default();
        let snapshots = ecs.describe_snapshots(deadline, &snapshots).await;
        let groups = DescribeSnapshotGroups::default();
        let groups = ecs.describe_snapshot_groups(deadline, &groups).await;
        let expected = match instance {
            Some(_) => Expected::SystemDisks,
            None => Expected::Perhaps,
        };
        let mut listed = read("DescribeDisks", rows(&disks), expected);
        // If the list is empty, a dry run decides, unless the cloud ignores the parameter.
        if disks.as_ref().is_ok_and(|page| page.rows.is_empty()) {
            let query = DescribeDisks {
                dry_run: true,
                ..DescribeDisks::default()
            };
            if let Err(error) = ecs.describe_disks(deadline, &query).await {
                listed = write("DescribeDisks", Err(error));
            }
        }
        let mut actions = vec![
            listed,
            read("DescribeInstances", rows(&instances), Expected::Always),
            read("DescribeAvailableResource", stock.as_deref(), Expected::Always),
            read("DescribeSnapshots", rows(&snapshots), Expected::Perhaps),
            read("DescribeSnapshotGroups", rows(&groups), Expected::Perhaps),
        ];
        actions.push(match names.is_empty() {
            true => unknown(
                "DescribeInstanceTypes",
                "no instance is listed whose type could be described",
            ),
            false => {
                let types = ecs.describe_instance_types(deadline, &names).await;
                read("DescribeInstanceTypes", types.as_deref(), Expected::Always)
            }
        });
        match &disk {
            Some(Disk { id, .. }) => {
                let health = ecs.describe_disk_health(deadline, std::slice::from_ref(id)).await;
                let tasks = ecs.describe_tasks(deadline, &DescribeTasks::Disk(id.clone())).await;
                actions.push(read("DescribeDisksFullStatus", rows(&health), Expected::Always));
                actions.push(read("DescribeTasks", rows(&tasks), Expected::Perhaps));
            }
            None => {
                let why = "no disk is listed that could be described";
                actions.extend(["DescribeDisksFullStatus", "DescribeTasks"].map(|action| unknown(action, why)));
            }
        }
        (actions, stock.unwrap_or_default())
    }

    /// Writes on IDs that the cloud never assigns. The first two would change nothing even if the disk existed: a dry
    /// run, and the removal of a tag that no disk has.
    async fn writes(&self, deadline: Deadline) -> std::result::Result<Vec<ActionAccess>, InvalidId> {
        let ecs = &self.ecs;
        let disk: DiskId = "d-diskplugin0doctor0000".parse()?;
        let instance: InstanceId = "i-diskplugin0doctor0000".parse()?;
        let snapshot: SnapshotId = "s-diskplugin0doctor0000".parse()?;
        let group: SnapshotGroupId = "ssg-diskplugin0doctor00".parse()?;
        let (name, targets) = ("diskplugin-doctor", TagTarget::Disks(vec![disk.clone()]));
        let token = |action| ClientToken::derive(action, [name]);
        let spec = ModifyDiskSpec {
            disk: disk.clone(),
            category: Some(Category::CloudEssd),
            performance_level: None,
            provisioned_iops: None,
            dry_run: true,
        };
        let untag = UntagResources {
            targets: targets.clone(),
            keys: vec![NO_TAG.to_owned()],
        };
        // Neither the zone nor the snapshot exists, so that nothing can be created.
        let new_disk = NewDisk {
            name: name.to_owned(),
            snapshot: Some(snapshot.clone()),
            ..NewDisk::default()
        };
        let candidate = Candidate {
            zone: Some("diskplugin-doctor-none".parse()?),
            category: Category::CloudEssd,
            level: None,
            size: Gib(20),
        };
        let new_disk = new_disk.request(&candidate, Tags::new(), token("CreateDisk"));
        let attach = AttachDisk {
            disk: disk.clone(),
            instance: instance.clone(),
            force: false,
            delete_with_instance: false,
        };
        let detach = DetachDisk {
            disk: disk.clone(),
            instance,
            delete_with_instance: false,
        };
        let resize = ResizeDisk {
            disk: disk.clone(),
            size: Gib(20),
            mode: ResizeMode::Offline,
            token: token("ResizeDisk"),
        };
        let attribute = ModifyDiskAttribute {
            disk: disk.clone(),
            attribute: DiskAttribute::Bursting(false),
        };
        let tags = Tags::from([(NO_TAG.to_owned(), String::new())]);
        let tag = TagResources { targets, tags };
        let new_snapshot = CreateSnapshot {
            disk: disk.clone(),
            name: name.to_owned(),
            retention_days: None,
            resource_group: None,
            tags: Tags::new(),
            token: token("CreateSnapshot"),
        };
        let new_group = CreateSnapshotGroup {
            disks: vec![disk.clone()],
            name: name.to_owned(),
            resource_group: None,
            tags: Tags::new(),
            token: token("CreateSnapshotGroup"),
        };
        let modified = ecs.modify_disk_spec(deadline, &spec).await.map(drop);
        Ok(vec![
            write("ModifyDiskSpec", modified),
            write("UntagResources", ecs.untag_resources(deadline, &untag).await),
            create("CreateDisk", ecs.create_disk(deadline, &new_disk).await),
            write("AttachDisk", ecs.attach_disk(deadline, &attach).await),
            write("DetachDisk", ecs.detach_disk(deadline, &detach).await),
            write("ResizeDisk", ecs.resize_disk(deadline, &resize).await),
            write(
                "ModifyDiskAttribute",
                ecs.modify_disk_attribute(deadline, &attribute).await,
            ),
            write("TagResources", ecs.tag_resources(deadline, &tag).await),
            write("DeleteDisk", ecs.delete_disk(deadline, &disk).await),
            create("CreateSnapshot", ecs.create_snapshot(deadline, &new_snapshot).await),
            write("DeleteSnapshot", ecs.delete_snapshot(deadline, &snapshot).await),
            create(
                "CreateSnapshotGroup",
                ecs.create_snapshot_group(deadline, &new_group).await,
            ),
            write(
                "DeleteSnapshotGroup",
                ecs.delete_snapshot_group(deadline, &group).await.map(drop),
            ),
        ])
    }
}

fn rows<T>(page: &ecs::Result<Page<T>>) -> std::result::Result<&[T], &ecs::Error> {
    page.as_ref().map(|page| &*page.rows)
}

fn unknown(action: &'static str, why: &'static str) -> ActionAccess {
    ActionAccess {
        action,
        access: Access::Unknown(why),
    }
}

/// Whether a list has rows for a caller with permission.
#[derive(Debug, Clone, Copy)]
enum Expected {
    Always,
    /// The system disks of instances, which other implementations of the API may not list.
    SystemDisks,
    Perhaps,
}

/// Judges a read. The cloud responds to callers without permission with no rows.
fn read<T>(action: &'static str, outcome: std::result::Result<&[T], &ecs::Error>, expected: Expected) -> ActionAccess {
    let access = match (outcome, expected) {
        (Err(error), _) => of_error(error),
        (Ok(rows), _) if !rows.is_empty() => Access::Allowed,
        (Ok(_), Expected::Always) => {
            Access::Denied("the list is empty, as the cloud responds to callers without permission".to_owned())
        }
        (Ok(_), Expected::SystemDisks) => Access::ProbablyDenied(
            "the list is empty, although each instance has a system disk; callers without permission get empty lists",
        ),
        (Ok(_), Expected::Perhaps) => {
            Access::Unknown("the list is empty: no such resource exists, or the action is denied")
        }
    };
    ActionAccess { action, access }
}

fn write(action: &'static str, outcome: ecs::Result<()>) -> ActionAccess {
    let access = match outcome {
        Ok(()) => Access::Allowed,
        Err(error) if error.condition() == Condition::DryRunAccepted => Access::Allowed,
        Err(error) => of_error(&error),
    };
    ActionAccess { action, access }
}

fn create<T: std::fmt::Display>(action: &'static str, outcome: ecs::Result<T>) -> ActionAccess {
    let access = match outcome {
        Ok(created) => Access::Failed(format!(
            "the cloud created {created} although its zone and its source do not exist; delete it"
        )),
        Err(error) => of_error(&error),
    };
    ActionAccess { action, access }
}

fn of_error(error: &ecs::Error) -> Access {
    match error.kind() {
        Kind::Denied => Access::Denied(error_chain(error)),
        Kind::Unreachable
        | Kind::Ambiguous
        | Kind::Throttled
        | Kind::Expired
        | Kind::Deadline
        | Kind::Credentials
        | Kind::NonceUsed
        | Kind::Bug => Access::Failed(error_chain(error)),
        Kind::Conflict
        | Kind::OperationPending
        | Kind::TokenMismatch
        | Kind::NotFound
        | Kind::OutOfStock
        | Kind::Quota
        | Kind::Precondition
        | Kind::OutOfRange
        | Kind::Invalid => Access::Unknown("not denied; cannot be verified without side effects"),
    }
}

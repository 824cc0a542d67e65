//! Finds out which actions of the cloud are allowed, without changing anything: reads, and writes on resources that
//! cannot exist. No write names a resource that exists, not even as a dry run.

use std::sync::Arc;

use ecs::{
    self, AttachDisk, Client, CreateSnapshot, CreateSnapshotGroup, DescribeDisks, DescribeInstances,
    DescribeSnapshotGroups, DescribeSnapshots, DescribeStock, DescribeTasks, DetachDisk, DiskAttribute,
    ModifyDiskAttribute, ModifyDiskSpec, Page, ResizeDisk, ResizeMode, TagResources, TagTarget, UntagResources,
};

use super::Result;
use super::error::cloud;
use super::provision::candidates::Candidate;
use super::provision::{NewDisk, create_request};
use crate::base::Deadline;
use crate::model::{
    Category, ClientToken, Disk, DiskId, Gib, InstanceId, InvalidId, SnapshotGroupId, SnapshotId, Tags, ZoneId,
    ZoneStock, tag,
};

mod access;

pub use access::{Access, ActionAccess};
use access::{Expected, create, read, unknown, write};

/// A tag that no resource has: removing it changes nothing.
const NO_TAG: &str = "diskplugin.csi.example/none";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permissions {
    pub actions: Vec<ActionAccess>,
    /// What each zone offers.
    pub stock: Vec<ZoneStock>,
}

/// IDs that the cloud never assigns.
struct NoSuch {
    disk: DiskId,
    instance: InstanceId,
    snapshot: SnapshotId,
    group: SnapshotGroupId,
    zone: ZoneId,
}

impl NoSuch {
    fn new() -> std::result::Result<Self, InvalidId> {
        Ok(Self {
            disk: "d-diskplugin0doctor0000".parse()?,
            instance: "i-diskplugin0doctor0000".parse()?,
            snapshot: "s-diskplugin0doctor0000".parse()?,
            group: "ssg-diskplugin0doctor00".parse()?,
            zone: "diskplugin-doctor-none".parse()?,
        })
    }
}

/// Calls each action once.
#[derive(Debug)]
pub struct PermissionProbe {
    ecs: Arc<Client>,
}

impl PermissionProbe {
    #[must_use]
    pub fn new(ecs: Arc<Client>) -> Self {
        Self { ecs }
    }

    /// The first call: whether the cloud accepts requests at all. Returns whether it lists any disk.
    ///
    /// # Errors
    /// If the cloud is not reachable, or rejects the credentials, the region or the clock.
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
        let none = NoSuch::new()?;
        let (mut actions, stock) = self.reads(deadline).await;
        actions.extend(self.harmless_writes(deadline, &none).await);
        actions.extend(self.disk_writes(deadline, &none).await);
        actions.extend(self.snapshot_writes(deadline, &none).await);
        Ok(Permissions { actions, stock })
    }

    /// The attached disks of any cluster that are deleted with their instance, although they can be moved. `None` if
    /// the cloud lists no disk at all, as it does without the permission.
    ///
    /// # Errors
    /// If the disks cannot be listed.
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
        let mut actions = vec![
            self.disks(deadline, &disks, instance.is_some()).await,
            read("DescribeInstances", &instances, Expected::Always),
            read("DescribeAvailableResource", &stock, Expected::Always),
            read("DescribeSnapshots", &snapshots, Expected::Perhaps),
            read("DescribeSnapshotGroups", &groups, Expected::Perhaps),
        ];
        actions.push(match names.is_empty() {
            true => unknown(
                "DescribeInstanceTypes",
                "no instance is listed whose type could be described",
            ),
            false => {
                let types = ecs.describe_instance_types(deadline, &names).await;
                read("DescribeInstanceTypes", &types, Expected::Always)
            }
        });
        match &disk {
            Some(Disk { id, .. }) => {
                let health = ecs.describe_disk_health(deadline, std::slice::from_ref(id)).await;
                let tasks = ecs.describe_tasks(deadline, &DescribeTasks::Disk(id.clone())).await;
                actions.push(read("DescribeDisksFullStatus", &health, Expected::Always));
                actions.push(read("DescribeTasks", &tasks, Expected::Perhaps));
            }
            None => {
                let why = "no disk is listed that could be described";
                actions.extend(["DescribeDisksFullStatus", "DescribeTasks"].map(|action| unknown(action, why)));
            }
        }
        (actions, stock.unwrap_or_default())
    }

    /// Judges the list of disks. If it is empty, a dry run decides, unless the cloud ignores the parameter.
    async fn disks(&self, deadline: Deadline, listed: &ecs::Result<Page<Disk>>, has_instances: bool) -> ActionAccess {
        const ACTION: &str = "DescribeDisks";
        let expected = match has_instances {
            true => Expected::SystemDisks,
            false => Expected::Perhaps,
        };
        let judged = read(ACTION, listed, expected);
        if !listed.as_ref().is_ok_and(|page| page.rows.is_empty()) {
            return judged;
        }
        let query = DescribeDisks {
            dry_run: true,
            ..DescribeDisks::default()
        };
        match self.ecs.describe_disks(deadline, &query).await {
            Ok(_) => judged,
            Err(error) => write(ACTION, Err(error)),
        }
    }

    /// Writes that would change nothing even if the disk existed: a dry run, and the removal of a tag that no disk has.
    async fn harmless_writes(&self, deadline: Deadline, none: &NoSuch) -> Vec<ActionAccess> {
        let disk = none.disk.clone();
        let spec = ModifyDiskSpec {
            disk: disk.clone(),
            category: Some(Category::CloudEssd),
            performance_level: None,
            provisioned_iops: None,
            dry_run: true,
        };
        let modified = self.ecs.modify_disk_spec(deadline, &spec).await;
        let untag = UntagResources {
            targets: TagTarget::Disks(vec![disk]),
            keys: vec![NO_TAG.to_owned()],
        };
        let untagged = self.ecs.untag_resources(deadline, &untag).await;
        vec![
            write("ModifyDiskSpec", modified.map(drop)),
            write("UntagResources", untagged),
        ]
    }

    async fn disk_writes(&self, deadline: Deadline, none: &NoSuch) -> Vec<ActionAccess> {
        let ecs = &self.ecs;
        let (disk, instance) = (none.disk.clone(), none.instance.clone());
        // Neither the zone nor the snapshot exists, so that nothing can be created.
        let new_disk = NewDisk {
            name: "diskplugin-doctor".to_owned(),
            snapshot: Some(none.snapshot.clone()),
            ..NewDisk::default()
        };
        let candidate = Candidate {
            zone: Some(none.zone.clone()),
            category: Category::CloudEssd,
            level: None,
            size: Gib(20),
        };
        let new_disk = create_request(&new_disk, &candidate, Tags::new(), token("CreateDisk"));
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
        let tag = TagResources {
            targets: TagTarget::Disks(vec![disk.clone()]),
            tags: Tags::from([(NO_TAG.to_owned(), String::new())]),
        };
        vec![
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
        ]
    }

    async fn snapshot_writes(&self, deadline: Deadline, none: &NoSuch) -> Vec<ActionAccess> {
        let ecs = &self.ecs;
        let new_snapshot = CreateSnapshot {
            disk: none.disk.clone(),
            name: "diskplugin-doctor".to_owned(),
            retention_days: None,
            resource_group: None,
            tags: Tags::new(),
            token: token("CreateSnapshot"),
        };
        let new_group = CreateSnapshotGroup {
            disks: vec![none.disk.clone()],
            name: "diskplugin-doctor".to_owned(),
            resource_group: None,
            tags: Tags::new(),
            token: token("CreateSnapshotGroup"),
        };
        let group = ecs.create_snapshot_group(deadline, &new_group).await;
        let deleted = ecs.delete_snapshot_group(deadline, &none.group).await;
        vec![
            create("CreateSnapshot", ecs.create_snapshot(deadline, &new_snapshot).await),
            write("DeleteSnapshot", ecs.delete_snapshot(deadline, &none.snapshot).await),
            create("CreateSnapshotGroup", group),
            write("DeleteSnapshotGroup", deleted.map(drop)),
        ]
    }
}

fn token(action: &str) -> ClientToken {
    ClientToken::derive(action, ["diskplugin-doctor"])
}

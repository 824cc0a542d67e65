//! The client of the real API: parameters, attempts, answers.

use std::time::Duration;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::action::{
    AttachDisk, CreateDisk, CreateSnapshot, CreateSnapshotGroup, DescribeDisks, DescribeInstances,
    DescribeSnapshotGroups, DescribeSnapshots, DescribeStock, DescribeTasks, DetachDisk,
    KeptMember, ModifyDiskAttribute, ModifyDiskSpec, Page, ResizeDisk, TagResources,
    UntagResources,
};
use super::error::{Error, Kind};
use super::rate_limit::{Class, RateLimiter};
use super::retry;
use super::standing::Standing;
use super::transport::Transport;
use super::wire::instance::{self, TypeRow};
use super::wire::params::Params;
use super::wire::snapshot_group::{self, Deleted};
use super::wire::{Created, Described, Row, disk, health, snapshot, spec, stock, tag};
use super::{Ecs, Result};
use crate::base::Deadline;
use crate::model::{
    Disk, DiskHealth, DiskId, Instance, InstanceType, Snapshot, SnapshotGroup, SnapshotGroupId,
    SnapshotId, Task, TaskId, ZoneStock,
};

/// [`Ecs`] over HTTP.
#[derive(Debug)]
pub struct Client {
    transport: Transport,
    limiter: RateLimiter,
}

impl Client {
    pub fn new(transport: Transport) -> Self {
        let limiter = RateLimiter::new(transport.clock());
        Self { transport, limiter }
    }

    /// How the cloud has answered this client lately.
    pub fn standing(&self) -> Standing {
        self.transport.standing()
    }

    async fn call<T: DeserializeOwned>(
        &self,
        class: Class,
        deadline: Deadline,
        action: &'static str,
        params: Params,
    ) -> Result<T> {
        let attempt = || {
            let once = || self.transport.attempt(action, &params);
            self.limiter.run(action, class, deadline, once)
        };
        let outcome = retry::run(action, deadline, attempt).await;
        let error = outcome.as_ref().err();
        tracing::debug!(
            cloud.action = action,
            cloud.code = error.and_then(Error::code),
            cloud.request_id = error.and_then(Error::request_id),
            is_ok = error.is_none(),
            "cloud call ended"
        );
        outcome
    }
}

/// An answer of which only the success matters. One that is empty or has a code is none.
fn done(action: &'static str, mut answer: Map<String, Value>) -> Result<()> {
    let is_empty = answer.is_empty();
    let mut text = |name| match answer.remove(name) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    let error = match text("Code").as_str() {
        "" if is_empty => Error::new(Kind::Ambiguous, action).with_status(200),
        "" => return Ok(()),
        code => Error::answered(action, 200, code),
    };
    Err(error.with_request_id(text("RequestId")))
}

fn created<Id>(_: &'static str, created: Created<Id>) -> Result<Id> {
    Ok(created.id)
}

/// A list, whose rows that make no sense are reported with it.
fn list<R: Row>(_: &'static str, Described(page): Described<R>) -> Result<Page<R::Model>> {
    Ok(page)
}

/// A list of which every row must make sense.
fn whole<R: Row>(action: &'static str, answer: Described<R>) -> Result<Page<R::Model>> {
    let Described(mut page) = answer;
    match page.unreadable.pop() {
        Some(row) => Err(Error::new(Kind::Ambiguous, action)
            .with_message("the answer makes no sense")
            .with_source(row)),
        None => Ok(page),
    }
}

/// Each row: the method, its request and what it returns; the action, its parameters, and what is
/// taken from the answer. A description by ids that calls in progress wait for is a poll.
macro_rules! actions {
    ($($method:ident($request:ty $(, poll by $ids:ident)?) -> $answer:ty:
        $action:literal $params:expr, $read:expr;)*) => {
        #[async_trait]
        impl Ecs for Client {
            async fn ready(&self, deadline: Deadline, action: &'static str) -> Option<Duration> {
                self.limiter.ready(action, Class::Poll, deadline).await
            }

            $(async fn $method(&self, deadline: Deadline, request: &$request) -> Result<$answer> {
                let class = Class::of($action)$(.min(Class::of_ids(request.$ids.as_ref())))?;
                let answer = self.call(class, deadline, $action, $params(request)).await?;
                let read = $read;
                read($action, answer)
            })*
        }
    };
}

actions! {
    create_disk(CreateDisk) -> DiskId: "CreateDisk" disk::create, created;
    delete_disk(DiskId) -> (): "DeleteDisk" disk::delete, done;
    attach_disk(AttachDisk) -> (): "AttachDisk" disk::attach, done;
    detach_disk(DetachDisk) -> (): "DetachDisk" disk::detach, done;
    describe_disks(DescribeDisks, poll by ids) -> Page<Disk>:
        "DescribeDisks" disk::describe, list::<disk::Row>;
    resize_disk(ResizeDisk) -> (): "ResizeDisk" disk::resize, done;
    // There is no token. What was done already is refused, so that a repeat does no harm.
    modify_disk_spec(ModifyDiskSpec) -> Option<TaskId>:
        "ModifyDiskSpec" spec::modify, |_, modified: spec::Modified| Ok(modified.task_id);
    modify_disk_attribute(ModifyDiskAttribute) -> (): "ModifyDiskAttribute" spec::attribute, done;
    describe_tasks(DescribeTasks) -> Page<Task>: "DescribeTasks" spec::describe, list::<spec::Row>;
    describe_disk_health([DiskId]) -> Page<DiskHealth>:
        "DescribeDisksFullStatus" health::describe, list::<health::Row>;
    create_snapshot(CreateSnapshot) -> SnapshotId: "CreateSnapshot" snapshot::create, created;
    delete_snapshot(SnapshotId) -> (): "DeleteSnapshot" snapshot::delete, done;
    describe_snapshots(DescribeSnapshots, poll by ids) -> Page<Snapshot>:
        "DescribeSnapshots" snapshot::describe, list::<snapshot::Row>;
    create_snapshot_group(CreateSnapshotGroup) -> SnapshotGroupId:
        "CreateSnapshotGroup" snapshot_group::create, created;
    describe_snapshot_groups(DescribeSnapshotGroups) -> Page<SnapshotGroup>:
        "DescribeSnapshotGroups" snapshot_group::describe, list::<snapshot_group::Row>;
    delete_snapshot_group(SnapshotGroupId) -> Vec<KeptMember>:
        "DeleteSnapshotGroup" snapshot_group::delete, |_, deleted: Deleted| Ok(deleted.kept());
    tag_resources(TagResources) -> (): "TagResources" tag::set, done;
    untag_resources(UntagResources) -> (): "UntagResources" tag::remove, done;
    describe_instances(DescribeInstances) -> Page<Instance>:
        "DescribeInstances" instance::describe, whole::<instance::Row>;
    describe_instance_types([String]) -> Vec<InstanceType>: "DescribeInstanceTypes"
        instance::describe_types, |action, rows| Ok(whole::<TypeRow>(action, rows)?.rows);
    describe_available_resource(DescribeStock) -> Vec<ZoneStock>: "DescribeAvailableResource"
        stock::describe, |_, described: stock::Described| Ok(described.zones());
}

//! The client of the real API: parameters, retries, responses.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tracing::Instrument;

use super::action::{
    AttachDisk, CreateDisk, CreateSnapshot, CreateSnapshotGroup, DescribeDisks, DescribeInstances,
    DescribeSnapshotGroups, DescribeSnapshots, DescribeStock, DescribeTasks, DetachDisk,
    ModifyDiskAttribute, ModifyDiskSpec, Page, ResizeDisk, TagResources, UndeletedSnapshot,
    UntagResources,
};
use super::api_health::ApiHealth;
use super::error::{Error, Kind};
use super::rate_limit::{Priority, RateLimiter};
use super::retry;
use super::transport::Transport;
use super::wire::instance::{self, TypeRow};
use super::wire::params::Params;
use super::wire::snapshot_group::{self, Deleted};
use super::wire::{Created, Described, Row, disk, health, snapshot, spec, stock, tag};
use super::{EcsApi, Result, ServerClock};
use crate::base::{Deadline, phase};
use crate::model::{
    Disk, DiskHealth, DiskId, Instance, InstanceType, Snapshot, SnapshotGroup, SnapshotGroupId,
    SnapshotId, Task, TaskId, ZoneStock,
};

#[derive(Debug)]
pub struct Client {
    transport: Transport,
    limiter: Arc<RateLimiter>,
}

impl Client {
    pub fn new(transport: Transport) -> Self {
        let limiter = Arc::new(RateLimiter::new(transport.clock()));
        Self { transport, limiter }
    }

    pub fn api_health(&self) -> ApiHealth {
        self.transport.api_health()
    }

    pub fn rate_limiter(&self) -> Arc<RateLimiter> {
        Arc::clone(&self.limiter)
    }

    pub fn server_clock(&self) -> ServerClock {
        self.transport.server_clock()
    }

    async fn call<T: DeserializeOwned>(
        &self,
        priority: Priority,
        deadline: Deadline,
        action: &'static str,
        params: Params,
    ) -> Result<T> {
        let attempt = || {
            let once = || self.attempt(action, &params);
            self.limiter.run(action, priority, deadline, once)
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

    /// One attempt in a span of its own, with its outcome.
    async fn attempt<T: DeserializeOwned>(
        &self,
        action: &'static str,
        params: &Params,
    ) -> Result<T> {
        let span = phase::cloud_call(action);
        let attempt = self.transport.attempt(action, params);
        let outcome = attempt.instrument(span.clone()).await;
        match &outcome {
            Ok(_) => phase::record_success(&span),
            Err(error) => {
                let code = error.code().unwrap_or_else(|| error.kind().as_str());
                let is_throttled = error.kind() == Kind::Throttled;
                phase::record_failure(&span, code, error.request_id(), is_throttled);
            }
        }
        outcome
    }
}

/// A response without a result. An empty one, or one with an error code, is an error.
fn no_result(action: &'static str, mut response: Map<String, Value>) -> Result<()> {
    let is_empty = response.is_empty();
    let mut text = |name| match response.remove(name) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    let error = match text("Code").as_str() {
        "" if is_empty => Error::new(Kind::Ambiguous, action).with_status(200),
        "" => return Ok(()),
        code => Error::from_response(action, 200, code),
    };
    Err(error.with_request_id(text("RequestId")))
}

fn created<Id>(_: &'static str, created: Created<Id>) -> Result<Id> {
    Ok(created.id)
}

/// A list with its malformed rows reported.
fn list<R: Row>(_: &'static str, Described(page): Described<R>) -> Result<Page<R::Model>> {
    Ok(page)
}

/// A list without malformed rows.
fn complete<R: Row>(action: &'static str, response: Described<R>) -> Result<Page<R::Model>> {
    let Described(mut page) = response;
    match page.unreadable.pop() {
        Some(row) => Err(Error::new(Kind::Ambiguous, action)
            .with_message("the response is malformed")
            .with_source(row)),
        None => Ok(page),
    }
}

/// Each row: the method, its request and result; the action, its parameters, and the conversion of the response. With
/// `poll by`, a request with ids has the priority of a poll.
macro_rules! actions {
    ($($method:ident($request:ty $(, poll by $ids:ident)?) -> $result:ty:
        $action:literal $params:expr, $read:expr;)*) => {
        /// The names of all actions.
        pub const ACTIONS: &[&str] = &[$($action),*];

        #[async_trait]
        impl EcsApi for Client {
            async fn ready(&self, deadline: Deadline, action: &'static str) -> Option<Duration> {
                self.limiter
                    .ready(action, Priority::for_ready(action), deadline)
                    .await
            }

            fn key_generation(&self) -> u64 {
                self.transport.key_generation()
            }

            fn server_time(&self) -> Option<Timestamp> {
                self.transport.server_clock().server_time()
            }

            $(async fn $method(&self, deadline: Deadline, request: &$request) -> Result<$result> {
                let priority = Priority::for_action($action)$(.min(Priority::for_ids(request.$ids.as_ref())))?;
                let response = self.call(priority, deadline, $action, $params(request)).await?;
                let read = $read;
                read($action, response)
            })*
        }
    };
}

actions! {
    create_disk(CreateDisk) -> DiskId: "CreateDisk" disk::create, created;
    delete_disk(DiskId) -> (): "DeleteDisk" disk::delete, no_result;
    attach_disk(AttachDisk) -> (): "AttachDisk" disk::attach, no_result;
    detach_disk(DetachDisk) -> (): "DetachDisk" disk::detach, no_result;
    describe_disks(DescribeDisks, poll by ids) -> Page<Disk>:
        "DescribeDisks" disk::describe, list::<disk::Row>;
    resize_disk(ResizeDisk) -> (): "ResizeDisk" disk::resize, no_result;
    // Without a token. A repetition of a completed change is rejected and has no effect.
    modify_disk_spec(ModifyDiskSpec) -> Option<TaskId>:
        "ModifyDiskSpec" spec::modify, |_, modified: spec::Modified| Ok(modified.task_id);
    modify_disk_attribute(ModifyDiskAttribute) -> (): "ModifyDiskAttribute" spec::attribute, no_result;
    describe_tasks(DescribeTasks) -> Page<Task>: "DescribeTasks" spec::describe, list::<spec::Row>;
    describe_disk_health([DiskId]) -> Page<DiskHealth>:
        "DescribeDisksFullStatus" health::describe, list::<health::Row>;
    create_snapshot(CreateSnapshot) -> SnapshotId: "CreateSnapshot" snapshot::create, created;
    delete_snapshot(SnapshotId) -> (): "DeleteSnapshot" snapshot::delete, no_result;
    describe_snapshots(DescribeSnapshots, poll by ids) -> Page<Snapshot>:
        "DescribeSnapshots" snapshot::describe, list::<snapshot::Row>;
    create_snapshot_group(CreateSnapshotGroup) -> SnapshotGroupId:
        "CreateSnapshotGroup" snapshot_group::create, created;
    describe_snapshot_groups(DescribeSnapshotGroups) -> Page<SnapshotGroup>:
        "DescribeSnapshotGroups" snapshot_group::describe, list::<snapshot_group::Row>;
    delete_snapshot_group(SnapshotGroupId) -> Vec<UndeletedSnapshot>:
        "DeleteSnapshotGroup" snapshot_group::delete, |_, deleted: Deleted| Ok(deleted.remaining());
    tag_resources(TagResources) -> (): "TagResources" tag::set, no_result;
    untag_resources(UntagResources) -> (): "UntagResources" tag::remove, no_result;
    describe_instances(DescribeInstances) -> Page<Instance>:
        "DescribeInstances" instance::describe, complete::<instance::Row>;
    describe_instance_types([String]) -> Vec<InstanceType>: "DescribeInstanceTypes"
        instance::describe_types, |action, rows| Ok(complete::<TypeRow>(action, rows)?.rows);
    describe_available_resource(DescribeStock) -> Vec<ZoneStock>: "DescribeAvailableResource"
        stock::describe, |_, described: stock::Described| Ok(described.zones());
}

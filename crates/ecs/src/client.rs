//! The client: parameters, retries, responses.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tracing::Instrument;

use super::action::{
    AttachDisk, CreateDisk, CreateSnapshot, CreateSnapshotGroup, DescribeDisks, DescribeInstances,
    DescribeSnapshotGroups, DescribeSnapshots, DescribeStock, DescribeTasks, DetachDisk, ModifyDiskAttribute,
    ModifyDiskSpec, Page, ResizeDisk, TagResources, UndeletedSnapshot, UntagResources,
};
use super::api_health::ApiHealth;
use super::caller::{Caller, Settings};
use super::error::{Error, Kind};
use super::http_transport::HttpTransport;
use super::rate_limit::{Priority, RateLimiter};
use super::retry;
use super::server::BuildError;
use super::transport::Transport;
use super::wire::params::{Params, params, with};
use super::wire::{Created, DeletedGroup, DescribedStock, Modified};
use super::{Result, ServerClock};
use crate::base::{Deadline, span};
use crate::model::{
    Disk, DiskHealth, DiskId, Instance, InstanceType, Snapshot, SnapshotGroup, SnapshotGroupId, SnapshotId, Task,
    TaskId, ZoneStock,
};

/// The ECS API, one method per action.
///
/// Every call ends at its deadline. Reads are eventually consistent: a change may be missing
/// from descriptions for seconds.
#[derive(Debug)]
pub struct Client {
    caller: Caller,
    limiter: Arc<RateLimiter>,
}

impl Client {
    /// A client over HTTP.
    ///
    /// # Errors
    /// If the root certificates cannot be read.
    pub fn new(settings: Settings) -> std::result::Result<Self, BuildError> {
        let transport = HttpTransport::new(&settings.server)?;
        Ok(Self::over(Arc::new(transport), settings))
    }

    pub fn over(transport: Arc<dyn Transport>, settings: Settings) -> Self {
        // The minutes of the local clock are the windows of the rate limit.
        let limiter = Arc::new(RateLimiter::new(Arc::clone(&settings.clock.local)));
        let caller = Caller::new(settings, transport);
        Self { caller, limiter }
    }

    pub fn api_health(&self) -> ApiHealth {
        self.caller.health.clone()
    }

    pub fn rate_limiter(&self) -> Arc<RateLimiter> {
        Arc::clone(&self.limiter)
    }

    pub fn server_clock(&self) -> ServerClock {
        self.caller.settings.clock.clone()
    }

    /// Waits until a call of the action (a description by resource ids) would be sent without queueing. A poller
    /// that assembles a batch awaits this first and binds the ids afterwards, so that a batch
    /// delayed by the rate limit carries every id requested meanwhile.
    ///
    /// Nothing is reserved: another call may still go first.
    ///
    /// Returns the time between two calls at the learned rate, zero while no rate is known; none if the call cannot be
    /// sent before the deadline.
    pub async fn ready(&self, deadline: Deadline, action: &'static str) -> Option<Duration> {
        let priority = Priority::for_action(action).min(Priority::Poll);
        self.limiter.ready(action, priority, deadline).await
    }

    /// A number that changes with the access key that signs the calls. Rows that were read with one key prove
    /// nothing for another one, which may belong to another account.
    pub fn key_generation(&self) -> u64 {
        self.caller.signing_key.generation()
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

    /// One attempt in its own span, which records the outcome.
    async fn attempt<T: DeserializeOwned>(&self, action: &'static str, params: &Params) -> Result<T> {
        let span = span::cloud_call(action);
        let attempt = self.caller.attempt(action, params);
        let outcome = attempt.instrument(span.clone()).await;
        let Err(error) = &outcome else {
            span.record(span::CODE_FIELD, span::OK);
            return outcome;
        };
        span.record(span::CODE_FIELD, error.code().unwrap_or(error.kind().as_str()));
        span.record("otel.status_code", "ERROR");
        span.record(span::REQUEST_ID_FIELD, error.request_id());
        if error.kind() == Kind::Throttled {
            span.record(span::THROTTLED_FIELD, true);
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

fn whole<T>(_: &'static str, response: T) -> Result<T> {
    Ok(response)
}

/// A list without malformed rows.
fn complete<R>(action: &'static str, mut page: Page<R>) -> Result<Page<R>> {
    match page.unreadable.pop() {
        Some(row) => Err(Error::new(Kind::Ambiguous, action)
            .with_message("the response is malformed")
            .with_source(row)),
        None => Ok(page),
    }
}

fn own<T: Serialize>(request: &T) -> &T {
    request
}

/// A request for a page with token-based pagination, of 100 rows unless it has another size.
fn paged(request: &impl Serialize) -> Value {
    with(request, json!({"MaxResults": 100}))
}

/// Each row: the method, its request and result; the action, its parameters as JSON, and the conversion of the
/// response. With `poll by`, a request with ids has the priority of a poll.
macro_rules! actions {
    ($($(#[$doc:meta])* $method:ident($request:ty $(, poll by $ids:ident)?) -> $result:ty:
        $action:literal $params:expr, $read:expr;)*) => {
        /// The names of all actions.
        pub const ACTIONS: &[&str] = &[$($action),*];

        impl Client {
            $($(#[$doc])*
            pub async fn $method(&self, deadline: Deadline, request: &$request) -> Result<$result> {
                let priority = Priority::for_action($action);
                $(let priority = if request.$ids.is_some() { Priority::Poll } else { priority };)?
                // Boxed, because callers hold this future in large ones.
                let json = $params;
                let call = self.call(priority, deadline, $action, params(&json(request)));
                let response = Box::pin(call).await?;
                let read = $read;
                read($action, response)
            })*
        }
    };
}

actions! {
    /// Creates a data disk; it becomes `Available` later. Idempotent by its client token.
    create_disk(CreateDisk) -> DiskId: "CreateDisk" own, created;
    /// Deletes a detached disk. A disk that does not exist is [`Kind::NotFound`] or success.
    delete_disk(DiskId) -> (): "DeleteDisk" |disk| json!({"DiskId": disk}), no_result;
    /// Starts attaching a disk; it becomes `In_use` later.
    attach_disk(AttachDisk) -> (): "AttachDisk" own, no_result;
    /// Starts detaching a disk; it becomes `Available` later.
    detach_disk(DetachDisk) -> (): "DetachDisk" own, no_result;
    /// One page of disks. Ids that do not exist are missing from the response.
    describe_disks(DescribeDisks, poll by ids) -> Page<Disk>:
        "DescribeDisks" paged, whole;
    /// Grows a disk. Idempotent by its client token.
    resize_disk(ResizeDisk) -> (): "ResizeDisk" own, no_result;
    /// Changes category, performance level or provisioned IOPS. A change of the category returns a
    /// task; other changes are synchronous. It has no token: a repetition of a completed change is rejected and has no
    /// effect.
    modify_disk_spec(ModifyDiskSpec) -> Option<TaskId>:
        "ModifyDiskSpec" own, |_, modified: Modified| Ok(modified.task_id);
    /// Changes attributes of a disk synchronously.
    modify_disk_attribute(ModifyDiskAttribute) -> (): "ModifyDiskAttribute" own, no_result;
    /// Tasks of spec changes, the newest first. Ids that do not exist are missing.
    describe_tasks(DescribeTasks) -> Page<Task>: "DescribeTasks"
        |query| with(query, json!({"TaskAction": "ModifyDiskSpec", "PageSize": 100, "PageNumber": 1})), whole;
    /// The health of these disks, at most 100. Ids that do not exist are missing.
    describe_disk_health([DiskId]) -> Page<DiskHealth>:
        "DescribeDisksFullStatus" |disks| json!({"DiskId": disks, "PageSize": 100, "PageNumber": 1}), whole;
    /// Starts a snapshot. Idempotent by its client token.
    create_snapshot(CreateSnapshot) -> SnapshotId: "CreateSnapshot" own, created;
    /// Deletes a snapshot. A snapshot that does not exist is [`Kind::NotFound`] or success.
    ///
    /// With `Force`: otherwise a snapshot cannot be deleted before the disks created from it, which need it only for
    /// `ResetDisk`, which is not used here.
    delete_snapshot(SnapshotId) -> (): "DeleteSnapshot"
        |snapshot| json!({"SnapshotId": snapshot, "Force": true}), no_result;
    /// One page of snapshots.
    describe_snapshots(DescribeSnapshots, poll by ids) -> Page<Snapshot>:
        "DescribeSnapshots" paged, whole;
    /// Starts a crash-consistent group of snapshots of several disks. Idempotent by its client token.
    create_snapshot_group(CreateSnapshotGroup) -> SnapshotGroupId:
        "CreateSnapshotGroup" own, created;
    /// One page of snapshot groups.
    describe_snapshot_groups(DescribeSnapshotGroups) -> Page<SnapshotGroup>:
        "DescribeSnapshotGroups" paged, whole;
    /// Deletes a group with its snapshots. Returns the snapshots that remain, although the cloud reports success. A
    /// group that does not exist is [`Kind::NotFound`] or success.
    delete_snapshot_group(SnapshotGroupId) -> Vec<UndeletedSnapshot>:
        "DeleteSnapshotGroup" |group| json!({"SnapshotGroupId": group}),
        |_, deleted: DeletedGroup| Ok(deleted.remaining());
    /// Sets tags on disks or snapshots; existing keys are overwritten.
    tag_resources(TagResources) -> (): "TagResources" own, no_result;
    /// Removes tags from disks or snapshots.
    untag_resources(UntagResources) -> (): "UntagResources" own, no_result;
    /// One page of instances. An account without permission gets an empty page, not an error.
    describe_instances(DescribeInstances) -> Page<Instance>:
        "DescribeInstances" paged, complete;
    /// The named instance types, at most ten. Attributes are returned only with `MaxResults`.
    describe_instance_types([String]) -> Vec<InstanceType>: "DescribeInstanceTypes"
        |names| json!({"InstanceTypes": names, "MaxResults": 100}), |action, page| Ok(complete(action, page)?.rows);
    /// The disk categories available in each zone.
    describe_available_resource(DescribeStock) -> Vec<ZoneStock>: "DescribeAvailableResource"
        |query| with(query, json!({"DestinationResource": "DataDisk", "ResourceType": "disk"})),
        |_, described: DescribedStock| Ok(described.available_zones);
}

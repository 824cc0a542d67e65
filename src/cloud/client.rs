//! The client of the real API: parameters, attempts, answers.

use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::action::{
    AttachDisk, CreateDisk, CreateSnapshot, CreateSnapshotGroup, DescribeDisks, DescribeInstances,
    DescribeSnapshotGroups, DescribeSnapshots, DescribeStock, DescribeTasks, DetachDisk,
    KeptMember, ListTagResources, ModifyDiskAttribute, ModifyDiskSpec, Page, ResizeDisk,
    TagResources, UntagResources,
};
use super::error::{Error, Kind};
use super::rate_limit::{Class, RateLimiter};
use super::retry::{self, Repeat};
use super::standing::Standing;
use super::transport::Transport;
use super::wire::params::Params;
use super::wire::{
    Described, Row, disk, health, instance, snapshot, snapshot_group, spec, stock, tag,
};
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

/// An answer of which only the success matters. One without a request ID, or with a code, is none.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Done {
    request_id: String,
    code: Option<String>,
}

impl Client {
    /// A client on this transport.
    pub fn new(transport: Transport) -> Self {
        let limiter = RateLimiter::new(transport.clock());
        Self { transport, limiter }
    }

    /// How the cloud has answered this client lately.
    pub fn standing(&self) -> Standing {
        self.transport.standing()
    }

    async fn order(&self, deadline: Deadline, action: &'static str, params: Params) -> Result<()> {
        let done: Done = self.call(deadline, action, params).await?;
        done.code.map_or(Ok(()), |code| {
            Err(Error::answered(action, 200, &code).with_request_id(done.request_id))
        })
    }

    async fn call<T: DeserializeOwned>(
        &self,
        deadline: Deadline,
        action: &'static str,
        params: Params,
    ) -> Result<T> {
        self.call_as(Class::of(action), deadline, action, params)
            .await
    }

    async fn call_as<T: DeserializeOwned>(
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
        let outcome = retry::run(action, deadline, Repeat::of(action), attempt).await;
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

    /// A list, whose rows that make no sense are reported with it.
    async fn list<R: Row>(
        &self,
        class: Class,
        deadline: Deadline,
        action: &'static str,
        params: Params,
    ) -> Result<Page<R::Model>> {
        let Described(page) = self
            .call_as::<Described<R>>(class, deadline, action, params)
            .await?;
        Ok(page)
    }

    /// A list of which every row must make sense.
    async fn whole_list<R: Row>(
        &self,
        deadline: Deadline,
        action: &'static str,
        params: Params,
    ) -> Result<Page<R::Model>> {
        let mut page = self
            .list::<R>(Class::of(action), deadline, action, params)
            .await?;
        match page.unreadable.pop() {
            Some(row) => Err(Error::new(Kind::Ambiguous, action)
                .with_message("the answer makes no sense")
                .with_source(row)),
            None => Ok(page),
        }
    }
}

#[async_trait]
impl Ecs for Client {
    async fn ready(&self, deadline: Deadline, action: &'static str) -> Duration {
        self.limiter.ready(action, Class::Poll, deadline).await
    }

    async fn create_disk(&self, deadline: Deadline, request: &CreateDisk) -> Result<DiskId> {
        let created = self.call(deadline, "CreateDisk", disk::create(request));
        created.await.map(|disk: disk::Created| disk.disk_id)
    }

    async fn delete_disk(&self, deadline: Deadline, disk: &DiskId) -> Result<()> {
        let params = Params::default().set("DiskId", disk);
        self.order(deadline, "DeleteDisk", params).await
    }

    async fn attach_disk(&self, deadline: Deadline, request: &AttachDisk) -> Result<()> {
        self.order(deadline, "AttachDisk", disk::attach(request))
            .await
    }

    async fn detach_disk(&self, deadline: Deadline, request: &DetachDisk) -> Result<()> {
        self.order(deadline, "DetachDisk", disk::detach(request))
            .await
    }

    async fn describe_disks(
        &self,
        deadline: Deadline,
        query: &DescribeDisks,
    ) -> Result<Page<Disk>> {
        let (class, params) = (Class::of_ids(query.ids.as_ref()), disk::describe(query));
        self.list::<disk::Row>(class, deadline, "DescribeDisks", params)
            .await
    }

    async fn resize_disk(&self, deadline: Deadline, request: &ResizeDisk) -> Result<()> {
        self.order(deadline, "ResizeDisk", disk::resize(request))
            .await
    }

    async fn modify_disk_spec(
        &self,
        deadline: Deadline,
        request: &ModifyDiskSpec,
    ) -> Result<Option<TaskId>> {
        let params = spec::modify(request);
        // There is no token. What was done already is refused, so that a repeat does no harm.
        let modified: spec::Modified = self.call(deadline, "ModifyDiskSpec", params).await?;
        Ok(modified.task_id)
    }

    async fn modify_disk_attribute(
        &self,
        deadline: Deadline,
        request: &ModifyDiskAttribute,
    ) -> Result<()> {
        self.order(deadline, "ModifyDiskAttribute", spec::attribute(request))
            .await
    }

    async fn describe_tasks(
        &self,
        deadline: Deadline,
        query: &DescribeTasks,
    ) -> Result<Page<Task>> {
        let params = spec::describe(query);
        self.list::<spec::Row>(Class::List, deadline, "DescribeTasks", params)
            .await
    }

    async fn describe_disk_health(
        &self,
        deadline: Deadline,
        disks: &[DiskId],
    ) -> Result<Page<DiskHealth>> {
        let params = health::describe(disks);
        self.list::<health::Row>(Class::List, deadline, "DescribeDisksFullStatus", params)
            .await
    }

    async fn create_snapshot(
        &self,
        deadline: Deadline,
        request: &CreateSnapshot,
    ) -> Result<SnapshotId> {
        let created = self.call(deadline, "CreateSnapshot", snapshot::create(request));
        created
            .await
            .map(|made: snapshot::Created| made.snapshot_id)
    }

    async fn delete_snapshot(&self, deadline: Deadline, snapshot: &SnapshotId) -> Result<()> {
        self.order(deadline, "DeleteSnapshot", snapshot::delete(snapshot))
            .await
    }

    async fn describe_snapshots(
        &self,
        deadline: Deadline,
        query: &DescribeSnapshots,
    ) -> Result<Page<Snapshot>> {
        let (class, params) = (Class::of_ids(query.ids.as_ref()), snapshot::describe(query));
        self.list::<snapshot::Row>(class, deadline, "DescribeSnapshots", params)
            .await
    }

    async fn create_snapshot_group(
        &self,
        deadline: Deadline,
        request: &CreateSnapshotGroup,
    ) -> Result<SnapshotGroupId> {
        let params = snapshot_group::create(request);
        let created = self.call(deadline, "CreateSnapshotGroup", params).await;
        created.map(|group: snapshot_group::Created| group.snapshot_group_id)
    }

    async fn describe_snapshot_groups(
        &self,
        deadline: Deadline,
        query: &DescribeSnapshotGroups,
    ) -> Result<Page<SnapshotGroup>> {
        let params = snapshot_group::describe(query);
        self.list::<snapshot_group::Row>(Class::List, deadline, "DescribeSnapshotGroups", params)
            .await
    }

    async fn delete_snapshot_group(
        &self,
        deadline: Deadline,
        group: &SnapshotGroupId,
    ) -> Result<Vec<KeptMember>> {
        let params = snapshot_group::delete(group);
        let deleted = self.call(deadline, "DeleteSnapshotGroup", params);
        deleted.await.map(snapshot_group::Deleted::kept)
    }

    async fn tag_resources(&self, deadline: Deadline, request: &TagResources) -> Result<()> {
        let params = tag::targets(&request.targets).tags(&request.tags);
        self.order(deadline, "TagResources", params).await
    }

    async fn untag_resources(&self, deadline: Deadline, request: &UntagResources) -> Result<()> {
        let params = tag::targets(&request.targets).list("TagKey", &request.keys);
        self.order(deadline, "UntagResources", params).await
    }

    async fn list_tag_resources(
        &self,
        deadline: Deadline,
        query: &ListTagResources,
    ) -> Result<Page<String>> {
        let params = tag::list(query);
        let page = self.whole_list::<tag::Row>(deadline, "ListTagResources", params);
        let Page { rows, next, .. } = page.await?;
        Ok(Page::new(tag::unique(rows), next))
    }

    async fn describe_instances(
        &self,
        deadline: Deadline,
        query: &DescribeInstances,
    ) -> Result<Page<Instance>> {
        let params = instance::describe(query);
        self.whole_list::<instance::Row>(deadline, "DescribeInstances", params)
            .await
    }

    async fn describe_instance_types(
        &self,
        deadline: Deadline,
        names: &[String],
    ) -> Result<Vec<InstanceType>> {
        let params = instance::describe_types(names);
        let page = self.whole_list::<instance::TypeRow>(deadline, "DescribeInstanceTypes", params);
        Ok(page.await?.rows)
    }

    async fn describe_available_resource(
        &self,
        deadline: Deadline,
        query: &DescribeStock,
    ) -> Result<Vec<ZoneStock>> {
        let params = stock::describe(query);
        let described: stock::Described = self
            .call(deadline, "DescribeAvailableResource", params)
            .await?;
        Ok(described.into())
    }
}

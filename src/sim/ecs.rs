//! The API in memory: implements the trait in tokio's time, which may be paused.
//!
//! Like the cloud it processes each call once: nothing is retried, and errors are returned
//! unchanged.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::base::Deadline;
use crate::cloud::{
    self, AttachDisk, CreateDisk, CreateSnapshot, CreateSnapshotGroup, DescribeDisks,
    DescribeInstances, DescribeSnapshotGroups, DescribeSnapshots, DescribeStock, DescribeTasks,
    DetachDisk, EcsApi, Error, Kind, ModifyDiskAttribute, ModifyDiskSpec, Page, ResizeDisk,
    TagResources, UndeletedSnapshot, UntagResources,
};
use crate::model::{
    Disk, DiskHealth, DiskId, Instance, InstanceType, Snapshot, SnapshotGroup, SnapshotGroupId,
    SnapshotId, Task, TaskId, ZoneStock,
};

use super::action::Action;
use super::convert;
use super::dispatch::{self, ApiCall};
use super::log::Via;
use super::params::Params;
use super::response::{ApiResponse, Listing, ResponseFault};
use super::shared::Shared;
use super::to_params::{self, id_array, page_size};

/// The fake cloud, called without HTTP.
#[derive(Debug, Clone)]
pub struct SimEcs {
    shared: Arc<Shared>,
}

impl SimEcs {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    async fn call(
        &self,
        deadline: Deadline,
        action: Action,
        params: Params,
    ) -> cloud::Result<ApiResponse> {
        let name = action.as_str();
        if deadline.has_passed() {
            return Err(Error::new(Kind::Deadline, name));
        }
        let call = ApiCall {
            action,
            params,
            via: Via::Memory,
            nonce: None,
        };
        let admission = dispatch::admit(&mut self.shared.world(), self.shared.now(), &call);
        pause(deadline, admission.delay, name).await?;
        let served = dispatch::serve(
            &mut self.shared.world(),
            self.shared.now(),
            &call,
            admission,
        );
        self.shared.wake();
        let delay = match served.response_fault {
            Some(ResponseFault::Hang) => Duration::MAX,
            _ => served.delay + served.drip,
        };
        pause(deadline, delay, name).await?;
        match served.response_fault {
            Some(ResponseFault::Reset | ResponseFault::Truncated | ResponseFault::Hang) => {
                Err(Error::new(Kind::Ambiguous, name))
            }
            Some(ResponseFault::Empty) => {
                let status = served.reply.map_or_else(|error| error.status, |_| 200);
                Err(Error::from_response(name, status, ""))
            }
            Some(ResponseFault::Html) => Err(Error::from_response(name, 502, "")),
            None => served
                .reply
                .map_err(|error| convert::error(name, error, served.request_id)),
        }
    }

    fn region(&self) -> Params {
        let region = self.shared.world().region.clone();
        Params::default().with("RegionId", region)
    }
}

async fn pause(deadline: Deadline, delay: Duration, action: &'static str) -> cloud::Result<()> {
    if delay.is_zero() {
        return Ok(());
    }
    let slept = deadline.bound(tokio::time::sleep(delay)).await;
    slept.map_err(|_| Error::new(Kind::Deadline, action))
}

fn page<T, U>(listing: Listing<T>, with: impl FnMut(T) -> U) -> Page<U> {
    Page::new(listing.rows.into_iter().map(with).collect(), listing.next)
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl EcsApi for SimEcs {
    async fn ready(&self, _: Deadline, _: &'static str) -> Option<Duration> {
        Some(Duration::ZERO)
    }

    fn key_generation(&self) -> u64 {
        0
    }

    fn server_time(&self) -> Option<Timestamp> {
        // As precise as the `Date` of a response.
        Timestamp::from_second(self.shared.now().as_second()).ok()
    }

    async fn create_disk(&self, deadline: Deadline, request: &CreateDisk) -> cloud::Result<DiskId> {
        let params = to_params::create_disk(self.region(), request);
        match self.call(deadline, Action::CreateDisk, params).await? {
            ApiResponse::Disk(id) => Ok(convert::disk_id(&id)),
            _ => Err(convert::wrong(Action::CreateDisk)),
        }
    }

    async fn delete_disk(&self, deadline: Deadline, disk: &DiskId) -> cloud::Result<()> {
        let params = Params::default().with("DiskId", disk.as_str());
        self.call(deadline, Action::DeleteDisk, params).await?;
        Ok(())
    }

    async fn attach_disk(&self, deadline: Deadline, request: &AttachDisk) -> cloud::Result<()> {
        let params = to_params::attach_disk(request);
        self.call(deadline, Action::AttachDisk, params).await?;
        Ok(())
    }

    async fn detach_disk(&self, deadline: Deadline, request: &DetachDisk) -> cloud::Result<()> {
        let params = to_params::detach_disk(request);
        self.call(deadline, Action::DetachDisk, params).await?;
        Ok(())
    }

    async fn describe_disks(
        &self,
        deadline: Deadline,
        query: &DescribeDisks,
    ) -> cloud::Result<Page<Disk>> {
        let ids = query.ids.as_ref();
        let ids = ids.map(|ids| id_array(ids.iter().map(DiskId::as_str)));
        let params = self
            .region()
            .with("MaxResults", page_size(query.page_size))
            .with_opt("DiskIds", ids)
            .with_opt("InstanceId", query.instance.as_ref().map(|id| id.as_str()))
            .with_opt("NextToken", query.next.as_deref())
            .with_opt("DryRun", query.dry_run.then_some("true"))
            .with_tags(&query.tags);
        match self.call(deadline, Action::DescribeDisks, params).await? {
            ApiResponse::Disks(listing) => Ok(convert::disks(listing)),
            _ => Err(convert::wrong(Action::DescribeDisks)),
        }
    }

    async fn resize_disk(&self, deadline: Deadline, request: &ResizeDisk) -> cloud::Result<()> {
        let params = to_params::resize_disk(request);
        self.call(deadline, Action::ResizeDisk, params).await?;
        Ok(())
    }

    async fn modify_disk_spec(
        &self,
        deadline: Deadline,
        request: &ModifyDiskSpec,
    ) -> cloud::Result<Option<TaskId>> {
        let action = Action::ModifyDiskSpec;
        match self
            .call(deadline, action, to_params::modify_spec(request))
            .await?
        {
            ApiResponse::Task(task) => Ok(task.map(|id| convert::task_id(&id))),
            _ => Err(convert::wrong(action)),
        }
    }

    async fn modify_disk_attribute(
        &self,
        deadline: Deadline,
        request: &ModifyDiskAttribute,
    ) -> cloud::Result<()> {
        let params = to_params::modify_attribute(self.region(), request);
        self.call(deadline, Action::ModifyDiskAttribute, params)
            .await?;
        Ok(())
    }

    async fn describe_tasks(
        &self,
        deadline: Deadline,
        query: &DescribeTasks,
    ) -> cloud::Result<Page<Task>> {
        let params = to_params::describe_tasks(self.region(), query);
        match self.call(deadline, Action::DescribeTasks, params).await? {
            ApiResponse::Tasks(listing) => Ok(page(listing, convert::task)),
            _ => Err(convert::wrong(Action::DescribeTasks)),
        }
    }

    async fn describe_disk_health(
        &self,
        deadline: Deadline,
        disks: &[DiskId],
    ) -> cloud::Result<Page<DiskHealth>> {
        let params = to_params::describe_health(self.region(), disks);
        let action = Action::DescribeDisksFullStatus;
        match self.call(deadline, action, params).await? {
            ApiResponse::Health(listing) => Ok(page(listing, convert::health)),
            _ => Err(convert::wrong(action)),
        }
    }

    async fn create_snapshot(
        &self,
        deadline: Deadline,
        request: &CreateSnapshot,
    ) -> cloud::Result<SnapshotId> {
        let params = to_params::create_snapshot(request);
        match self.call(deadline, Action::CreateSnapshot, params).await? {
            ApiResponse::Snapshot(id) => Ok(convert::snapshot_id(&id)),
            _ => Err(convert::wrong(Action::CreateSnapshot)),
        }
    }

    async fn delete_snapshot(
        &self,
        deadline: Deadline,
        snapshot: &SnapshotId,
    ) -> cloud::Result<()> {
        // Forced: CSI deletes a snapshot even if volumes were created from it.
        let params = Params::default()
            .with("SnapshotId", snapshot.as_str())
            .with("Force", "true");
        self.call(deadline, Action::DeleteSnapshot, params).await?;
        Ok(())
    }

    async fn describe_snapshots(
        &self,
        deadline: Deadline,
        query: &DescribeSnapshots,
    ) -> cloud::Result<Page<Snapshot>> {
        let ids = query.ids.as_ref();
        let ids = ids.map(|ids| id_array(ids.iter().map(SnapshotId::as_str)));
        let params = self
            .region()
            .with("MaxResults", page_size(query.page_size))
            .with_opt("SnapshotIds", ids)
            .with_opt("DiskId", query.disk.as_ref().map(DiskId::as_str))
            .with_opt("NextToken", query.next.as_deref())
            .with_tags(&query.tags);
        match self
            .call(deadline, Action::DescribeSnapshots, params)
            .await?
        {
            ApiResponse::Snapshots(listing) => Ok(page(listing, convert::snapshot)),
            _ => Err(convert::wrong(Action::DescribeSnapshots)),
        }
    }

    async fn create_snapshot_group(
        &self,
        deadline: Deadline,
        request: &CreateSnapshotGroup,
    ) -> cloud::Result<SnapshotGroupId> {
        let params = to_params::create_snapshot_group(self.region(), request);
        let action = Action::CreateSnapshotGroup;
        match self.call(deadline, action, params).await? {
            ApiResponse::Group(id) => Ok(convert::group_id(&id)),
            _ => Err(convert::wrong(action)),
        }
    }

    async fn describe_snapshot_groups(
        &self,
        deadline: Deadline,
        query: &DescribeSnapshotGroups,
    ) -> cloud::Result<Page<SnapshotGroup>> {
        let params = to_params::describe_snapshot_groups(self.region(), query);
        let action = Action::DescribeSnapshotGroups;
        match self.call(deadline, action, params).await? {
            ApiResponse::Groups(listing) => Ok(page(listing, convert::group)),
            _ => Err(convert::wrong(action)),
        }
    }

    async fn delete_snapshot_group(
        &self,
        deadline: Deadline,
        group: &SnapshotGroupId,
    ) -> cloud::Result<Vec<UndeletedSnapshot>> {
        let params = self.region().with("SnapshotGroupId", group.as_str());
        let action = Action::DeleteSnapshotGroup;
        match self.call(deadline, action, params).await? {
            ApiResponse::GroupDeleted(remaining) => {
                Ok(remaining.into_iter().map(convert::remaining).collect())
            }
            _ => Err(convert::wrong(action)),
        }
    }

    async fn tag_resources(&self, deadline: Deadline, request: &TagResources) -> cloud::Result<()> {
        let params = to_params::targets(self.region(), &request.targets).with_tags(&request.tags);
        self.call(deadline, Action::TagResources, params).await?;
        Ok(())
    }

    async fn untag_resources(
        &self,
        deadline: Deadline,
        request: &UntagResources,
    ) -> cloud::Result<()> {
        let params = to_params::targets(self.region(), &request.targets);
        let params = params.with_list("TagKey", &request.keys);
        self.call(deadline, Action::UntagResources, params).await?;
        Ok(())
    }

    async fn describe_instances(
        &self,
        deadline: Deadline,
        query: &DescribeInstances,
    ) -> cloud::Result<Page<Instance>> {
        let ids = query.ids.as_ref();
        let ids = ids.map(|ids| id_array(ids.iter().map(|id| id.as_str())));
        let params = self
            .region()
            .with("MaxResults", page_size(None))
            .with_opt("InstanceIds", ids)
            .with_opt("NextToken", query.next.as_deref());
        match self
            .call(deadline, Action::DescribeInstances, params)
            .await?
        {
            ApiResponse::Instances(listing) => Ok(page(listing, convert::instance)),
            _ => Err(convert::wrong(Action::DescribeInstances)),
        }
    }

    async fn describe_instance_types(
        &self,
        deadline: Deadline,
        names: &[String],
    ) -> cloud::Result<Vec<InstanceType>> {
        let mut params = Params::default();
        for (n, name) in (1..).zip(names) {
            params.set(format!("InstanceTypes.{n}"), name);
        }
        let action = Action::DescribeInstanceTypes;
        match self.call(deadline, action, params).await? {
            ApiResponse::Types(types) => Ok(types.into_iter().map(convert::machine).collect()),
            _ => Err(convert::wrong(action)),
        }
    }

    async fn describe_available_resource(
        &self,
        deadline: Deadline,
        query: &DescribeStock,
    ) -> cloud::Result<Vec<ZoneStock>> {
        let params = self
            .region()
            .with("DestinationResource", "DataDisk")
            .with("ResourceType", "disk")
            .with_opt("ZoneId", query.zone.as_ref().map(|zone| zone.as_str()))
            .with_opt(
                "DataDiskCategory",
                query.category.as_ref().map(|c| c.as_str()),
            )
            .with_opt("InstanceType", query.instance_type.as_deref())
            .with_opt("Scope", query.regional.then_some("region"));
        let action = Action::DescribeAvailableResource;
        match self.call(deadline, action, params).await? {
            ApiResponse::Stock(zones) => Ok(zones.into_iter().map(convert::stock).collect()),
            _ => Err(convert::wrong(action)),
        }
    }
}

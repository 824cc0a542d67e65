//! The RPCs of the Controller service.

use tonic::{Request, Response};

use super::operation::LockedOperation;
use super::paging::Item;
use super::service::Service;
use super::{events, response, validate};
use crate::csi::health::volume_health;
use crate::csi::proto::controller_server::Controller;
use crate::csi::proto::controller_service_capability::rpc::Type;
use crate::csi::proto::controller_service_capability::{Rpc, Type as Capability};
use crate::csi::proto::*;
use crate::csi::request::snapshot::ListSnapshots;
use crate::csi::request::volume::Expand;
use crate::csi::request::{self, RpcResult, field, read};
use crate::csi::{layer, status};
use crate::disk::{Cursor, UnhealthyVolume};
use crate::model::{Disk, DiskId, Gib, SnapshotId, context};

const CAPABILITIES: &[Type] = &[
    Type::CreateDeleteVolume,
    Type::PublishUnpublishVolume,
    Type::ListVolumes,
    Type::GetCapacity,
    Type::CreateDeleteSnapshot,
    Type::CloneVolume,
    Type::ListSnapshots,
    Type::GetSnapshot,
    Type::ExpandVolume,
    Type::ModifyVolume,
    Type::GetVolume,
    Type::GetVolumeHealth,
    Type::ListVolumeHealth,
    Type::SingleNodeMultiWriter,
    Type::PublishReadonly,
];

#[tonic::async_trait]
impl Controller for Service {
    async fn create_volume(&self, request: Request<CreateVolumeRequest>) -> RpcResult<CreateVolumeResponse> {
        let parse = |message: &_| request::create_volume::create(message, &self.location);
        let (deadline, create) = read(&request, parse)?;
        let new = create.new;
        self.node_categories.record(&new);
        let locked = LockedOperation::on(format!("volume {:?}", new.name));
        let created = self.run(locked, |disks| async move {
            match &new.clone_of {
                Some(source) => Box::pin(disks.provisioner.create_clone(deadline, &new, source)).await,
                None => disks.provisioner.create(deadline, &new).await,
            }
        });
        let created = created.await?;
        let disk = created.inspect_err(|error| events::volume_not_created(self, create.claim, error))?;
        layer::record("disk.id", &disk.id);
        let volume = Volume {
            volume_context: create.volume_context,
            // CSI: the response repeats the requested source.
            content_source: request.into_inner().volume_content_source,
            accessible_topology: response::topology(&disk, create.nodes_report_categories),
            ..response::volume(&disk)
        };
        Ok(Response::new(CreateVolumeResponse { volume: Some(volume) }))
    }

    async fn delete_volume(&self, request: Request<DeleteVolumeRequest>) -> RpcResult<DeleteVolumeResponse> {
        let parse = |message: &DeleteVolumeRequest| field::id_to_remove::<DiskId>("volume_id", &message.volume_id);
        let (deadline, disk) = read(&request, parse)?;
        // An ID that no disk can have is already deleted.
        if let Some(disk) = disk {
            let (locked, id) = (LockedOperation::removal(&disk), disk.clone());
            let delete = self.run(
                locked,
                |disks| async move { disks.provisioner.delete(deadline, &id).await },
            );
            delete.await??;
            self.listings.mark_deleted(disk.as_str());
        }
        Ok(Response::new(DeleteVolumeResponse {}))
    }

    async fn controller_publish_volume(
        &self,
        request: Request<ControllerPublishVolumeRequest>,
    ) -> RpcResult<ControllerPublishVolumeResponse> {
        let (deadline, wanted) = read(&request, request::volume::publish)?;
        let (locked, read_only) = (LockedOperation::publish(&wanted), wanted.read_only);
        let publish = self.run(locked, |disks| async move {
            disks.publisher.publish(deadline, &wanted).await
        });
        let published = publish.await?;
        let disk = published.inspect_err(|error| events::volume_not_attached(self, error))?;
        // The serial that the cloud reports is the serial of the device in the guest.
        let serial = disk.serial.iter().map(|s| (context::SERIAL.to_owned(), s.to_string()));
        let reads = read_only.then(|| (context::ATTACHED_READ_ONLY.to_owned(), "true".to_owned()));
        Ok(Response::new(ControllerPublishVolumeResponse {
            publish_context: serial.chain(reads).collect(),
        }))
    }

    async fn controller_unpublish_volume(
        &self,
        request: Request<ControllerUnpublishVolumeRequest>,
    ) -> RpcResult<ControllerUnpublishVolumeResponse> {
        let (deadline, wanted) = read(&request, request::volume::unpublish)?;
        if let Some((disk, node)) = wanted {
            let locked = match &node {
                None => LockedOperation::removal(&disk),
                Some(node) => LockedOperation::unpublish(&disk, node),
            };
            let detach = self.run(locked, |disks| async move {
                match &node {
                    None => disks.detacher.detach_everywhere(deadline, &disk).await,
                    Some(node) => disks.detacher.detach(deadline, &disk, node).await,
                }
            });
            detach.await??;
        }
        Ok(Response::new(ControllerUnpublishVolumeResponse {}))
    }

    async fn validate_volume_capabilities(
        &self,
        request: Request<ValidateVolumeCapabilitiesRequest>,
    ) -> RpcResult<ValidateVolumeCapabilitiesResponse> {
        let (deadline, (id, requested)) = read(&request, request::validate::validate)?;
        let disk = self.disks.inventory.disk(deadline, &id).await?;
        Ok(Response::new(validate::response(
            &disk,
            requested,
            request.into_inner(),
        )))
    }

    async fn list_volumes(&self, request: Request<ListVolumesRequest>) -> RpcResult<ListVolumesResponse> {
        let parse = |message: &ListVolumesRequest| request::page::page(message.max_entries, &message.starting_token);
        let (deadline, page) = read(&request, parse)?;
        let item = |disk: &Disk| {
            let entry = list_volumes_response::Entry {
                volume: Some(response::volume(disk)),
                status: Some(list_volumes_response::VolumeStatus {
                    published_node_ids: response::published_nodes(disk),
                }),
            };
            Item::new(Cursor::new(disk.created, &disk.id), &entry)
        };
        let inventory = &self.disks.inventory;
        let list = async {
            match self.lists_published_nodes {
                true => inventory.list_published(deadline, item).await,
                false => inventory.list(deadline, item).await,
            }
        };
        let (entries, next_token) = self.listings.page("volumes", page, list).await?;
        Ok(Response::new(ListVolumesResponse { entries, next_token }))
    }

    async fn controller_get_capabilities(
        &self,
        _: Request<ControllerGetCapabilitiesRequest>,
    ) -> RpcResult<ControllerGetCapabilitiesResponse> {
        let capability = |rpc: Type| ControllerServiceCapability {
            r#type: Some(Capability::Rpc(Rpc { r#type: rpc.into() })),
        };
        let published = self.lists_published_nodes.then_some(Type::ListVolumesPublishedNodes);
        let all = CAPABILITIES.iter().copied().chain(published);
        Ok(Response::new(ControllerGetCapabilitiesResponse {
            capabilities: all.map(capability).collect(),
        }))
    }

    /// The sizes of a volume of this class in the topology, or in the default zone without a topology; zero if the
    /// class excludes that zone.
    async fn get_capacity(&self, request: Request<GetCapacityRequest>) -> RpcResult<GetCapacityResponse> {
        let parse = |message: &_| request::create_volume::capacity(message, &self.location);
        let (deadline, new) = read(&request, parse)?;
        let sizes = match &new {
            None => None,
            Some(new) => {
                self.node_categories.record(new);
                self.disks.provisioner.capacity(deadline, new).await?
            }
        };
        let bytes = |gib: &Gib| gib.bytes().to_i64();
        let most = sizes.as_ref().map(|sizes| bytes(sizes.end()));
        Ok(Response::new(GetCapacityResponse {
            available_capacity: most.unwrap_or(0),
            maximum_volume_size: most,
            minimum_volume_size: sizes.map(|sizes| bytes(sizes.start())),
        }))
    }

    async fn create_snapshot(&self, request: Request<CreateSnapshotRequest>) -> RpcResult<CreateSnapshotResponse> {
        let parse = |message: &_| request::snapshot::create(message, &self.location);
        let (deadline, new) = read(&request, parse)?;
        let locked = LockedOperation::on(format!("snapshot {:?}", new.name));
        let create = self.run(
            locked,
            |disks| async move { disks.snapshotter.create(deadline, &new).await },
        );
        let snapshot = Some(response::snapshot(&create.await??));
        Ok(Response::new(CreateSnapshotResponse { snapshot }))
    }

    async fn delete_snapshot(&self, request: Request<DeleteSnapshotRequest>) -> RpcResult<DeleteSnapshotResponse> {
        let parse = |message: &DeleteSnapshotRequest| field::id_to_remove("snapshot_id", &message.snapshot_id);
        let (deadline, snapshot): (_, Option<SnapshotId>) = read(&request, parse)?;
        // An ID that no snapshot can have is already deleted.
        if let Some(snapshot) = snapshot {
            let (locked, id) = (LockedOperation::on(format!("snapshot {snapshot}")), snapshot.clone());
            let delete = self.run(
                locked,
                |disks| async move { disks.snapshotter.delete(deadline, &id).await },
            );
            delete.await??;
            self.listings.mark_deleted(snapshot.as_str());
        }
        Ok(Response::new(DeleteSnapshotResponse {}))
    }

    async fn list_snapshots(&self, request: Request<ListSnapshotsRequest>) -> RpcResult<ListSnapshotsResponse> {
        let (deadline, filters) = read(&request, request::snapshot::list)?;
        let Some(ListSnapshots { page, snapshot, source }) = filters else {
            return Ok(Response::new(ListSnapshotsResponse::default()));
        };
        let item = |row: &crate::model::Snapshot| {
            let snapshot = Some(response::snapshot(row));
            let entry = list_snapshots_response::Entry { snapshot };
            Item::new(Cursor::new(row.created, &row.id), &entry)
        };
        let (id, of) = (snapshot.as_ref(), source.as_ref());
        let list = self.disks.inventory.list_snapshots(deadline, id, of, item);
        let subject = format!("snapshots {snapshot:?} {source:?}");
        let (entries, next_token) = self.listings.page(&subject, page, list).await?;
        Ok(Response::new(ListSnapshotsResponse { entries, next_token }))
    }

    async fn get_snapshot(&self, request: Request<GetSnapshotRequest>) -> RpcResult<GetSnapshotResponse> {
        let parse = |message: &GetSnapshotRequest| field::id("snapshot_id", &message.snapshot_id);
        let (deadline, id) = read(&request, parse)?;
        let snapshot = self.disks.snapshotter.get(deadline, &id).await?;
        let snapshot = Some(response::snapshot(&snapshot));
        Ok(Response::new(GetSnapshotResponse { snapshot }))
    }

    async fn controller_expand_volume(
        &self,
        request: Request<ControllerExpandVolumeRequest>,
    ) -> RpcResult<ControllerExpandVolumeResponse> {
        let (deadline, Expand { disk, size, block }) = read(&request, request::volume::expand)?;
        let locked = LockedOperation::on(format!("the size of volume {disk}"));
        let resize = self.run(locked, |disks| async move {
            disks.resizer.resize(deadline, &disk, size).await
        });
        let disk = resize.await?.map_err(|error| status::for_expansion(&error))?;
        Ok(Response::new(ControllerExpandVolumeResponse {
            capacity_bytes: disk.size.bytes().to_i64(),
            node_expansion_required: !block,
        }))
    }

    async fn controller_modify_volume(
        &self,
        request: Request<ControllerModifyVolumeRequest>,
    ) -> RpcResult<ControllerModifyVolumeResponse> {
        let (deadline, (disk, change)) = read(&request, request::volume::modify)?;
        let locked = LockedOperation::on(format!("the parameters of volume {disk}"));
        let nodes = self.node_categories.clone();
        let modify = self.run(locked, |disks| async move {
            if let Some(to) = &change.category
                && !nodes.is_empty()
            {
                nodes.check(&disks.inventory.disk(deadline, &disk).await?, to)?;
            }
            disks.modifier.modify(deadline, &disk, &change).await?;
            Ok(Response::new(ControllerModifyVolumeResponse {}))
        });
        modify.await?
    }

    async fn controller_get_volume(
        &self,
        request: Request<ControllerGetVolumeRequest>,
    ) -> RpcResult<ControllerGetVolumeResponse> {
        let parse = |message: &ControllerGetVolumeRequest| field::id("volume_id", &message.volume_id);
        let (deadline, id) = read(&request, parse)?;
        let disk = self.disks.inventory.disk(deadline, &id).await?;
        Ok(Response::new(ControllerGetVolumeResponse {
            status: Some(controller_get_volume_response::VolumeStatus {
                published_node_ids: response::published_nodes(&disk),
            }),
            volume: Some(response::volume(&disk)),
        }))
    }

    async fn controller_get_volume_health(
        &self,
        request: Request<ControllerGetVolumeHealthRequest>,
    ) -> RpcResult<ControllerGetVolumeHealthResponse> {
        let parse = |message: &ControllerGetVolumeHealthRequest| field::id("volume_id", &message.volume_id);
        let (deadline, id) = read(&request, parse)?;
        let (disk, issues) = self.disks.inventory.health(deadline, &id).await?;
        Ok(Response::new(ControllerGetVolumeHealthResponse {
            volume_health: Some(volume_health(&disk.id, &issues)),
        }))
    }

    async fn controller_list_volume_health(
        &self,
        request: Request<ControllerListVolumeHealthRequest>,
    ) -> RpcResult<ControllerListVolumeHealthResponse> {
        let parse = |message: &ControllerListVolumeHealthRequest| {
            request::page::page(message.max_entries, &message.starting_token)
        };
        let (deadline, page) = read(&request, parse)?;
        let list = async {
            let listed = self.disks.inventory.list_unhealthy(deadline).await?;
            let item = |volume: UnhealthyVolume| {
                Item::new(volume.cursor(), &volume_health(&volume.disk, &volume.health_issues))
            };
            Ok(listed.into_iter().map(item).collect())
        };
        let (entries, next_token) = self.listings.page("health", page, list).await?;
        Ok(Response::new(ControllerListVolumeHealthResponse {
            entries,
            next_token,
        }))
    }
}

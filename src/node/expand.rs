//! Growing: the filesystem follows its device while it is in use.

use std::sync::Arc;

use super::observe::{CallContext, mounts_of, quick};
use super::place::not_there;
use super::plan;
use super::request::ExpandRequest;
use super::run::StepContext;
use super::{Error, Node, Result};
use crate::base::Deadline;
use crate::host::{Device, Entry, Mount};
use crate::model::Bytes;

const VERB: &str = "expanding";

impl Node {
    /// Grows a volume's filesystem and answers the size of its device. Repeatable; the deadline
    /// bounds the wait for the device to have the wanted size.
    ///
    /// # Errors
    /// When the volume is not at the path, its device keeps its size, or growing fails.
    pub async fn expand(
        self: &Arc<Self>,
        request: ExpandRequest,
        deadline: Deadline,
    ) -> Result<Bytes> {
        let guard = self.lock(&request.volume.id)?;
        let node = Arc::clone(self);
        self.tasks
            .run(async move {
                let _guard = guard;
                node.expand_locked(&request, deadline).await
            })
            .await
    }

    async fn expand_locked(&self, request: &ExpandRequest, deadline: Deadline) -> Result<Bytes> {
        let volume = &request.volume;
        let device = self.device_at(request).await?;
        let device = self.wait_for_size(request, device, deadline).await?;
        if let Some(limit) = request.limit.filter(|limit| device.size > *limit) {
            return Err(Error::TooLarge {
                volume: volume.id.clone(),
                device: device.to_string(),
                size: device.size,
                limit,
            });
        }
        let at = CallContext::new(volume, VERB);
        let mounts = mounts_of(&device, &self.mounts(at).await?, &[]);
        let filesystem = mounts.first().and_then(|mount| mount.kind.parse().ok());
        let Some(filesystem) = filesystem else {
            return Ok(device.size);
        };
        let stated = self
            .host
            .filesystem_size(quick(), &device, filesystem)
            .await
            .map_err(at.failed())?;
        let steps = plan::expand(&device, &mounts, stated).map_err(|refusal| Error::Refused {
            volume: volume.id.clone(),
            verb: VERB,
            refusal,
        })?;
        let context = StepContext {
            volume,
            device: Some(&device),
            proof: None,
            verb: VERB,
            deadline,
        };
        self.run_steps(context, &steps).await?;
        Ok(device.size)
    }

    /// The volume's device, if the volume is at the path.
    async fn device_at(&self, request: &ExpandRequest) -> Result<Device> {
        let volume = &request.volume;
        let at = CallContext::new(volume, VERB);
        let not_here = |reason: &str| Error::NotHere {
            volume: volume.id.clone(),
            path: request.path.as_path().to_owned(),
            reason: reason.to_owned(),
        };
        let Some(device) = self.present(volume, VERB).await? else {
            return Err(not_here("no device with its serial is on this node"));
        };
        self.place(&request.path, at).await.map_err(not_there)?;
        // The path of a device says nothing: orchestrators name a directory above it.
        if request.block {
            return Ok(device);
        }
        let mounts = self.mounts(at).await?;
        let path_state = self.path_state(&request.path, &mounts, at).await?;
        let is_mounted = path_state
            .mount
            .as_ref()
            .is_some_and(|m: &Mount| m.is_of(&device));
        if is_mounted || path_state.entry == Entry::Block(device.number) {
            return Ok(device);
        }
        Err(not_here("it is not mounted there"))
    }

    async fn wait_for_size(
        &self,
        request: &ExpandRequest,
        mut device: Device,
        deadline: Deadline,
    ) -> Result<Device> {
        let required = request.required.unwrap_or_default();
        let mut changes = None;
        while device.size < required {
            if !self.await_change(&mut changes, deadline).await {
                return Err(Error::NotGrown {
                    volume: request.volume.id.clone(),
                    device: device.to_string(),
                    size: device.size,
                    required,
                });
            }
            device = self.device_at(request).await?;
        }
        Ok(device)
    }
}

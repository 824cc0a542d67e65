//! Staging: the attached disk becomes a mounted filesystem, or is found ready as a device.

use std::sync::Arc;

use super::observe::{Quick, Spot, mounts_of, quick};
use super::plan::{self, StageSeen, Wanted};
use super::request::{Access, Stage};
use super::run::Subject;
use super::{Error, Node, Result};
use crate::base::Deadline;
use crate::host::{Content, Device};
use crate::model::Bytes;

const VERB: &str = "staging";

impl Node {
    /// Stages a volume. Repeatable; the deadline bounds the wait for its device.
    ///
    /// # Errors
    /// When the device does not come, is not certain, is refused, or a step fails.
    pub async fn stage(self: &Arc<Self>, request: Stage, deadline: Deadline) -> Result<()> {
        let guard = self.lock(&request.volume.id)?;
        let node = Arc::clone(self);
        self.tasks
            .run(async move {
                let _guard = guard;
                node.stage_locked(&request, deadline).await
            })
            .await
    }

    async fn stage_locked(&self, request: &Stage, deadline: Deadline) -> Result<()> {
        let volume = &request.volume;
        let device = self.find(volume, deadline).await?;
        let seen = self.look_to_stage(request, device, deadline).await?;
        let wanted = Wanted {
            access: &request.access,
            read_only: request.read_only,
            locked: request.locked,
        };
        let steps = plan::stage(wanted, &seen).map_err(|refusal| Error::Refused {
            volume: volume.id.clone(),
            verb: VERB,
            refusal,
        })?;
        let subject = Subject {
            volume,
            device: Some(&seen.device),
            verb: VERB,
        };
        self.run(subject, &steps).await
    }

    async fn look_to_stage(
        &self,
        request: &Stage,
        device: Device,
        deadline: Deadline,
    ) -> Result<StageSeen> {
        let at = Quick::new(&request.volume, VERB);
        let mounts = self.mounts(at).await?;
        let staging = self.spot(request.staging.as_path(), &mounts, at).await?;
        let elsewhere = mounts_of(&device, &mounts, &[&staging.path]);
        let in_use = staging.mount.is_some()
            || !elsewhere.is_empty()
            || !device.partitions.is_empty()
            || !device.holders.is_empty();
        let content = match request.access {
            Access::Mount { .. } if !in_use => Some(self.content(&device, deadline, at).await?),
            Access::Mount { .. } | Access::Block => None,
        };
        let mounted_size = self.mounted_size(request, &device, &staging, at).await?;
        Ok(StageSeen {
            device,
            staging,
            elsewhere,
            content,
            mounted_size,
        })
    }

    async fn content(&self, device: &Device, deadline: Deadline, at: Quick<'_>) -> Result<Content> {
        let content = self.host.content(deadline, device).await;
        content.map_err(at.failed())
    }

    async fn mounted_size(
        &self,
        request: &Stage,
        device: &Device,
        staging: &Spot,
        at: Quick<'_>,
    ) -> Result<Option<Bytes>> {
        match (&request.access, &staging.mount) {
            (Access::Mount { filesystem, .. }, Some(mount)) if mount.is_of(device) => self
                .host
                .filesystem_size(quick(), device, *filesystem)
                .await
                .map_err(at.failed()),
            _ => Ok(None),
        }
    }
}

//! Staging: the attached disk becomes a mounted filesystem, or is found ready as a device.

use std::sync::Arc;

use super::journal::Journal;
use super::observe::{Quick, Spot, mounts_of, nodes_of, quick};
use super::plan::{self, StageSeen, Step, Wanted};
use super::proof::{Handed, Proof};
use super::request::{Access, Stage};
use super::run::Subject;
use super::{Error, Node, Result};
use crate::base::Deadline;
use crate::host::Device;
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
        // What is refused whatever comes is not waited for.
        self.place(&request.staging, Quick::new(volume, VERB))
            .await?;
        if !volume.has_serial_of_id() {
            tracing::warn!(
                disk.id = %volume.id,
                serial = %volume.serial,
                "the disk's serial is not its id without \"d-\": it can be staged and published, but must be \
                 unmounted by hand; move the data to a new disk"
            );
        }
        let device = self.find(volume, deadline).await?;
        let (seen, proof) = self.look_to_stage(request, device, deadline).await?;
        let wanted = Wanted {
            access: &request.access,
            read_only: request.read_only,
            locked: request.locked,
        };
        let steps =
            plan::stage(wanted, &request.tuning, &seen).map_err(|refusal| Error::Refused {
                volume: volume.id.clone(),
                verb: VERB,
                refusal,
            })?;
        // What is mounted already was noted when it was mounted.
        if steps.iter().any(|step| matches!(step, Step::Mount { .. }))
            || matches!(request.access, Access::Block)
        {
            self.note_staged(volume, &seen.device).await;
        }
        let proof = Handed::new(proof);
        let subject = Subject {
            volume,
            device: Some(&seen.device),
            proof: Some(&proof),
            verb: VERB,
            deadline,
        };
        let size = seen.device.size;
        let _room = match self.budget.room_now(size, &steps) {
            Some(room) => room,
            None => {
                // The look will be old then, and nobody is kept from the disk meanwhile.
                drop(proof.take());
                self.budget.room(volume, size, &steps, deadline).await?
            }
        };
        self.run(subject, &steps).await
    }

    async fn look_to_stage(
        &self,
        request: &Stage,
        device: Device,
        deadline: Deadline,
    ) -> Result<(StageSeen, Option<Proof>)> {
        let at = Quick::new(&request.volume, VERB);
        let mounts = self.mounts(at).await?;
        let staging = self.spot(&request.staging, &mounts, at).await?;
        let mut elsewhere = mounts_of(&device, &mounts, &[&staging.path]);
        // Who has the device as it is may write to it at any time, and blank proves nothing then.
        if let Access::Mount { .. } = request.access {
            elsewhere.extend(nodes_of(&device, &mounts, &staging.path));
        }
        let in_use = staging.mount.is_some()
            || !elsewhere.is_empty()
            || !device.partitions.is_empty()
            || !device.holders.is_empty();
        let journal = if in_use {
            Journal::Nothing
        } else {
            self.journal(&request.volume, &device, at).await?
        };
        if journal == Journal::Ours {
            // The mkfs may still run, where this process is not the one that began it.
            let free = self.host.claim(deadline, &device).await;
            drop(free.map_err(at.failed())?);
        }
        let (content, proof) = match request.access {
            Access::Mount { .. } if !in_use => {
                let (content, proof) = self.prove(&device, deadline, at).await?;
                (Some(content), proof)
            }
            Access::Mount { .. } | Access::Block => (None, None),
        };
        let mounted_size = self.mounted_size(request, &device, &staging, at).await?;
        let ext_grows_mounted = self.host.may_grow_mounted_ext(quick()).await;
        let seen = StageSeen {
            ext_grows_mounted: ext_grows_mounted.map_err(at.failed())?,
            device,
            staging,
            elsewhere,
            content,
            journal,
            mounted_size,
        };
        Ok((seen, proof))
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

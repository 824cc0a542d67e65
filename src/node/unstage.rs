//! Unstaging: the disk is unmounted, so that it can be detached.

use std::io::ErrorKind;
use std::sync::Arc;

use super::observe::{Quick, mounts_of, nodes_of};
use super::plan::{self, LeaveSeen, Step};
use super::request::Leave;
use super::run::Subject;
use super::{Error, Node, Result};
use crate::base::Deadline;
use crate::host::Mount;

const VERB: &str = "unstaging";

impl Node {
    /// Unstages a volume. Repeatable; a path that is not there is fine.
    ///
    /// # Errors
    /// When it is still published, the path holds something else, or a step fails.
    pub async fn unstage(self: &Arc<Self>, request: Leave, deadline: Deadline) -> Result<()> {
        let guard = self.lock(&request.volume.id)?;
        let node = Arc::clone(self);
        self.tasks
            .run(async move {
                let _guard = guard;
                // Mounts may lie on top of each other: each round takes one off.
                while node.unstage_once(&request, deadline).await? {}
                node.complaints.forget(&request.volume.id);
                node.forget_staged(&request.volume).await;
                Ok(())
            })
            .await
    }

    /// Whether there may be more to do.
    async fn unstage_once(&self, request: &Leave, deadline: Deadline) -> Result<bool> {
        let volume = &request.volume;
        let at = Quick::new(volume, VERB);
        // A disk that tells its serial late, or has lost its node or its mark, is not absent: its
        // filesystem may live on elsewhere.
        let device = match self.present(volume, VERB).await? {
            Some(device) => Some(device),
            None => self.staged_on(volume, at).await?,
        };
        let mounts = self.mounts(at).await?;
        let spot = self.spot(&request.path, &mounts, at).await?;
        let others: Vec<Mount> = match &device {
            Some(device) => {
                let mut others = mounts_of(device, &mounts, &[&spot.path]);
                others.extend(nodes_of(device, &mounts, &spot.path));
                others
            }
            None => Vec::new(),
        };
        let stacked = mounts.iter().filter(|m| m.point == spot.path).count() > 1;
        let (devices, claimed) = self.bystanders(device.as_ref(), &spot, at).await?;
        let seen = LeaveSeen {
            devices,
            claimed,
            serial: volume.serial.clone(),
            device,
            spot,
            others,
        };
        let mut steps = plan::unstage(&seen).map_err(|refusal| Error::Refused {
            volume: volume.id.clone(),
            verb: VERB,
            refusal,
        })?;
        if stacked {
            steps.retain(|step| !matches!(step, Step::Remove(_) | Step::Release));
        }
        let subject = Subject {
            volume,
            device: seen.device.as_ref(),
            proof: None,
            verb: VERB,
            deadline,
        };
        match self.run(subject, &steps).await {
            // The directory is the orchestrator's; what lies in it is not the volume's.
            Err(Error::Host { source, .. })
                if source.io_kind() == Some(ErrorKind::DirectoryNotEmpty) =>
            {
                tracing::info!(disk.id = %volume.id, "the staging directory is not empty and stays");
            }
            other => other?,
        }
        Ok(stacked)
    }
}

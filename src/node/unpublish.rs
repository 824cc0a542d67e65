//! Unpublishing: the pod's path goes, the staged volume stays.

use std::sync::Arc;

use super::observe::{Quick, nodes_of};
use super::plan::{self, LeaveSeen, Step};
use super::request::Leave;
use super::run::Subject;
use super::{Error, Node, Result};
use crate::base::Deadline;

const VERB: &str = "unpublishing";

impl Node {
    /// Unpublishes a volume. Repeatable; a path that is not there is fine.
    ///
    /// # Errors
    /// When the path holds something else, is not empty, or a step fails.
    pub async fn unpublish(self: &Arc<Self>, request: Leave, deadline: Deadline) -> Result<()> {
        let guard = self.lock(&request.volume.id)?;
        let node = Arc::clone(self);
        self.tasks
            .run(async move {
                let _guard = guard;
                // Mounts may lie on top of each other: each round takes one off.
                while node.unpublish_once(&request, deadline).await? {}
                Ok(())
            })
            .await
    }

    /// Whether there may be more to do.
    async fn unpublish_once(&self, request: &Leave, deadline: Deadline) -> Result<bool> {
        let volume = &request.volume;
        let at = Quick::new(volume, VERB);
        let device = self.present(volume, VERB).await?;
        let mounts = self.mounts(at).await?;
        let spot = self.spot(&request.path, &mounts, at).await?;
        let others = match &device {
            Some(device) => nodes_of(device, &mounts, &spot.path),
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
        let mut steps = plan::unpublish(&seen).map_err(|refusal| Error::Refused {
            volume: volume.id.clone(),
            verb: VERB,
            refusal,
        })?;
        if stacked {
            steps.retain(|step| !matches!(step, Step::Remove(_)));
        }
        let subject = Subject {
            volume,
            device: seen.device.as_ref(),
            proof: None,
            verb: VERB,
            deadline,
        };
        self.run(subject, &steps).await?;
        Ok(stacked)
    }
}

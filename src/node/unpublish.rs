//! Unpublish: unmounts and removes a target path. The volume stays staged.

use std::sync::Arc;

use super::observe::{CallContext, nodes_of};
use super::plan::{self, LeaveSeen, Step};
use super::request::UnpublishRequest;
use super::run::StepContext;
use super::{Error, Node, Result};
use crate::base::Deadline;

const VERB: &str = "unpublishing";

impl Node {
    /// Unpublishes a volume. Idempotent: a missing path is not an error.
    ///
    /// # Errors
    /// Another volume is mounted at the path, the path is not empty, or a step fails.
    pub async fn unpublish(
        self: &Arc<Self>,
        request: UnpublishRequest,
        deadline: Deadline,
    ) -> Result<()> {
        let guard = self.lock(&request.volume.id)?;
        let node = Arc::clone(self);
        self.tasks
            .run(async move {
                let _guard = guard;
                // Mounts may be stacked. Each iteration removes one.
                while node.unpublish_once(&request, deadline).await? {}
                Ok(())
            })
            .await
    }

    /// Removes one mount. Returns whether more mounts are stacked at the path.
    async fn unpublish_once(&self, request: &UnpublishRequest, deadline: Deadline) -> Result<bool> {
        let volume = &request.volume;
        let call = CallContext::new(volume, VERB);
        let device = self.present(volume, VERB).await?;
        let mounts = self.mounts(call).await?;
        let path_state = self.path_state(&request.target, &mounts, call).await?;
        let others = match &device {
            Some(device) => nodes_of(device, &mounts, &path_state.path),
            None => Vec::new(),
        };
        let stacked = mounts.iter().filter(|m| m.point == path_state.path).count() > 1;
        let (devices, claimed) = self.bystanders(device.as_ref(), &path_state, call).await?;
        let seen = LeaveSeen {
            devices,
            claimed,
            serial: volume.serial.clone(),
            device,
            path_state,
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
        let context = StepContext {
            volume,
            device: seen.device.as_ref(),
            proof: None,
            verb: VERB,
            deadline,
        };
        self.run_steps(context, &steps).await?;
        Ok(stacked)
    }
}

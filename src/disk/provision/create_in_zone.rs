use std::time::Duration;

use ecs::CreateDisk;
use ecs::poll::{Operation, OperationKind};

use super::Provisioner;
use super::candidates::{Candidate, Selection};
use crate::base::Deadline;
use crate::disk::error::cloud;
use crate::disk::evidence::CreateCall;
use crate::disk::{NewDisk, Result};
use crate::model::{ClientToken, DiskId};

/// By how much a request precedes others of the same deadline in the queue of the rate limit.
const QUEUED_FIRST: Duration = Duration::from_millis(1);

impl Provisioner {
    /// Attempts the candidates in order, and returns the disk and, if it is new, its creation. A request that may have
    /// taken effect is repeated first.
    pub(super) async fn create_in_zone(
        &self,
        deadline: Deadline,
        new: &NewDisk,
        selection: &Selection,
        call: &CreateCall,
    ) -> Result<(DiskId, Option<OperationKind>)> {
        let name = self.creator.names.get(&call.key);
        let is_unresolved = |candidate: &&Candidate| {
            name.unresolved().is_some_and(|pending| {
                let request = self.request(new, candidate, pending.token.clone());
                pending.request == format!("{request:?}")
            })
        };
        let first = selection.candidates.iter().find(is_unresolved);
        let (ecs, stock) = (self.shared.ecs.as_ref(), &self.stock_view);
        let mut attempt_order = stock.attempt_order(selection, first);
        let error = loop {
            let Some(candidate) = attempt_order.next(ecs, deadline).await else {
                break attempt_order.error(new.name.clone());
            };
            let order = format!("{candidate} {new:?}");
            let may_exist = || self.creator.names.get(&call.key).may_exist();
            // A request that may have taken effect is repeated without a pause.
            let refusal = if may_exist() {
                None
            } else {
                self.creator.refusals.admit(deadline, &order).await.err()
            };
            let rejection = if let Some(refusal) = refusal {
                refusal
            } else {
                let request = |token| self.request(new, candidate, token);
                // A stock-out is recorded for all calls, so that their queued requests are not sent; any other refusal
                // for this request.
                let record = |outcome: &ecs::Result<DiskId>| {
                    stock.record(candidate, outcome.as_ref().err());
                    match outcome {
                        Ok(_) => self.creator.refusals.record_success(&order),
                        Err(error) if stock.is_stockout(error) => {}
                        Err(error) => self.creator.refusals.record_refusal(&order, error),
                    }
                };
                // Precedes the creations that only await the rate limit, so that they await this response too.
                let earlier = deadline.at_most(deadline.remaining().saturating_sub(QUEUED_FIRST));
                match self.creator.create(earlier, call, request, record).await? {
                    Ok(disk) => {
                        let operation = Operation::Create.for_category(&candidate.category);
                        return Ok((disk, Some(operation)));
                    }
                    Err(rejection) => rejection,
                }
            };
            if may_exist() || !attempt_order.add_rejection(candidate, &rejection, ecs, deadline).await {
                let (size, name) = (candidate.size, &new.name);
                let step = format!("create a disk of {size} of {candidate} for {name:?}");
                break cloud(step)(rejection);
            }
            tracing::info!(
                volume.name = new.name,
                pair = %candidate,
                cloud.code = rejection.code(),
                cloud.request_id = rejection.request_id(),
                "cannot create the disk here, trying the next zone or category"
            );
        };
        Err(error)
    }

    fn request(&self, new: &NewDisk, candidate: &Candidate, token: ClientToken) -> CreateDisk {
        new.request(candidate, self.shared.owner.name_tags(&new.name), token)
    }
}

use std::fmt;
use std::time::Duration;

use ecs::poll::{Operation, OperationKind};
use ecs::{Client, CreateDisk};

use super::Provisioner;
use super::candidates::{Candidate, Selection, StockView};
use crate::base::Deadline;
use crate::disk::error::{Error, cloud};
use crate::disk::evidence::CreateCall;
use crate::disk::owned::CreateRequest;
use crate::disk::ownership::display_name;
use crate::disk::refusals::Refusals;
use crate::disk::{NewDisk, Result};
use crate::model::{ClientToken, Disk, DiskId, Tags, tag};

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
                let (name, is_size_only) = (new.name.clone(), attempt_order.is_size_only());
                let reasons = attempt_order.reasons();
                break if is_size_only {
                    Error::OutOfRange { name, reasons }
                } else {
                    Error::OutOfStock { name, reasons }
                };
            };
            let order = format!("{candidate} {new:?}");
            let may_exist = || self.creator.names.get(&call.key).may_exist();
            // A request that may have taken effect is repeated without a pause.
            let refusal = if may_exist() {
                None
            } else {
                self.refusals.admit(deadline, &order).await.err()
            };
            let rejection = if let Some(refusal) = refusal {
                refusal
            } else {
                let request = |token| Attempt {
                    request: self.request(new, candidate, token),
                    candidate,
                    stock,
                    refusals: &self.refusals,
                    order: &order,
                };
                match self.creator.create(deadline, call, request).await? {
                    Ok(disk) => {
                        let operation = Operation::Create.for_category(&candidate.category);
                        return Ok((disk, Some(operation)));
                    }
                    Err(rejection) => rejection,
                }
            };
            if self.creator.names.get(&call.key).may_exist()
                || !attempt_order.add_rejection(candidate, &rejection, ecs, deadline).await
            {
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
        create_request(new, candidate, self.shared.owner.name_tags(&new.name), token)
    }
}

pub(in crate::disk) fn create_request(
    new: &NewDisk,
    candidate: &Candidate,
    mut tags: Tags,
    token: ClientToken,
) -> CreateDisk {
    let burst = candidate.category.has_burst();
    if let Some(source) = &new.clone_of {
        tags.insert(tag::CLONE_OF.to_owned(), source.to_string());
    }
    tags.extend(new.tags.clone());
    tags.extend(new.created_for.clone());
    CreateDisk {
        zone: candidate.zone.clone(),
        category: candidate.category.clone(),
        performance_level: candidate.level,
        provisioned_iops: (burst && new.provisioned_iops > 0).then_some(new.provisioned_iops),
        bursting: burst && new.bursting,
        multi_attach: new.multi_attach,
        resource_group: new.resource_group.clone(),
        size: candidate.size,
        name: display_name(&new.name),
        snapshot: new.snapshot.clone(),
        encrypted: new.encrypted,
        kms_key: new.kms_key.clone(),
        tags,
        token,
    }
}

/// A request for a candidate. Its response is recorded before anything else: a stock-out for all calls, so that their
/// queued requests are not sent, and any other refusal for this one.
struct Attempt<'a> {
    request: CreateDisk,
    candidate: &'a Candidate,
    stock: &'a StockView,
    refusals: &'a Refusals<String>,
    order: &'a String,
}

impl fmt::Debug for Attempt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.request.fmt(f)
    }
}

impl CreateRequest for Attempt<'_> {
    type Row = Disk;

    const ACTION: &'static str = CreateDisk::ACTION;

    async fn send(&self, ecs: &Client, deadline: Deadline) -> ecs::Result<DiskId> {
        // Precedes the creations that only await the rate limit, so that they await this response too.
        let earlier = deadline.remaining().saturating_sub(QUEUED_FIRST);
        let outcome = self.request.send(ecs, deadline.at_most(earlier)).await;
        self.stock.record(self.candidate, outcome.as_ref().err());
        match &outcome {
            Ok(_) => self.refusals.record_success(self.order),
            Err(error) if self.stock.is_stockout(error) => {}
            Err(error) => self.refusals.record_refusal(self.order, error),
        }
        outcome
    }
}

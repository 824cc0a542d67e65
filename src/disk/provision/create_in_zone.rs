//! Ordering a disk of the first pair of category and zone that is in stock.

use super::Provisioner;
use super::place::{Candidate, Choice};
use crate::base::Deadline;
use crate::cloud::CreateDisk;
use crate::disk::create_once::Call;
use crate::disk::error::{Error, cloud};
use crate::disk::ownership::display_name;
use crate::disk::{NewDisk, Result};
use crate::model::{Category, ClientToken, DiskId, tag};

impl Provisioner {
    /// Goes through the pairs until one is in stock, and returns the disk and its category. An order that may have taken effect is repeated first.
    pub(super) async fn create_in_zone(
        &self,
        deadline: Deadline,
        new: &NewDisk,
        choice: &Choice,
        call: &mut Call,
    ) -> Result<(DiskId, Category)> {
        let is_open = |pair: &&Candidate| {
            let open = call.past.unresolved.as_ref();
            open.is_some_and(|order| {
                let request = self.request(new, pair, order.token.clone());
                order.request == format!("{request:?}")
            })
        };
        let first = choice.pairs.iter().find(is_open);
        let mut attempt_order = self.stock_view.attempt_order(choice, first);
        while let Some(pair) = attempt_order.next() {
            let request = |token| self.request(new, pair, token);
            let refusal = match self.creator.order(deadline, call, request).await? {
                Ok(disk) => {
                    self.stock_view.record_success(pair);
                    return Ok((disk, pair.category.clone()));
                }
                Err(refusal) => refusal,
            };
            let ecs = self.ecs.as_ref();
            if self.creator.attempts.of(&call.key).is_open()
                || !attempt_order.refused(pair, &refusal, ecs, deadline).await
            {
                let (size, name) = (pair.size, &new.name);
                let step = format!("create a disk of {size} of {pair} for {name:?}");
                return Err(cloud(step)(refusal));
            }
            tracing::info!(
                volume.name = new.name,
                pair = %pair,
                cloud.code = refusal.code(),
                cloud.request_id = refusal.request_id(),
                "not available here, trying the next"
            );
        }
        let (name, only_sizes) = (new.name.clone(), attempt_order.only_sizes());
        let reasons = attempt_order.reasons(choice);
        Err(if only_sizes {
            Error::OutOfRange { name, reasons }
        } else {
            Error::OutOfStock { name, reasons }
        })
    }

    fn request(&self, new: &NewDisk, pair: &Candidate, token: ClientToken) -> CreateDisk {
        let burst = pair.category.has_burst();
        let mut tags = self.owner.tags_of(&new.name);
        if let Some(source) = &new.clone_of {
            tags.insert(tag::CLONE_OF.to_owned(), source.to_string());
        }
        tags.extend(new.tags.clone());
        tags.extend(new.origin.clone());
        CreateDisk {
            zone: pair.zone.clone(),
            category: pair.category.clone(),
            performance_level: pair.level,
            provisioned_iops: (burst && new.provisioned_iops > 0).then_some(new.provisioned_iops),
            bursting: burst && new.bursting,
            multi_attach: new.multi_attach,
            resource_group: new.resource_group.clone(),
            size: pair.size,
            name: display_name(&new.name),
            snapshot: new.snapshot.clone(),
            encrypted: new.encrypted,
            kms_key: new.kms_key.clone(),
            tags,
            token,
        }
    }
}

//! Buying a disk of one category in one zone, once, whatever became of earlier calls.
//!
//! The token holds the cluster and the name only: whatever else a call asks for under the name meets
//! it, and the cloud answers a mismatch; then the tags tell. A refused call may have used the token
//! up, and is answered the same for a day: such a name goes on under a token of the whole request.

use super::Provisioner;
use super::place::{Candidate, Choice};
use crate::base::Deadline;
use crate::cloud::{self as api, CreateDisk, Kind};
use crate::disk::attempts::{PriorAttempts, is_final};
use crate::disk::error::{Error, cloud};
use crate::disk::ownership::display_name;
use crate::disk::tag_index::lagging;
use crate::disk::{NewDisk, Result};
use crate::model::{ClientToken, DiskId, PerformanceLevel, SnapshotId, ZoneId};

/// What one call knows before it tries a pair.
#[derive(Debug)]
struct Attempt {
    past: PriorAttempts,
    /// Whether the name was looked for by its tags.
    looked: bool,
    /// The tokens under which this call was refused already.
    refused: Vec<ClientToken>,
}

impl Provisioner {
    /// Goes through the pairs until one can be had. What may have been bought already goes first.
    /// `looked` tells whether the name was looked for by its tags.
    pub(super) async fn buy(
        &self,
        deadline: Deadline,
        new: &NewDisk,
        choice: &Choice,
        looked: bool,
    ) -> Result<DiskId> {
        let past = self.attempts.of(&new.name);
        let token = self.token(new, &past);
        let unclear = past.unclear.clone();
        let mut round = self
            .market
            .round(choice, unclear.as_ref().map(|(pair, _)| pair));
        let mut attempt = Attempt {
            past,
            looked,
            refused: Vec::new(),
        };
        while let Some(pair) = round.next() {
            let earlier = unclear.as_ref().filter(|(other, _)| other.is_as(pair));
            let token = earlier.map_or_else(|| token.clone(), |(_, token)| token.clone());
            let outcome = self
                .buy_one(deadline, new, pair, token.clone(), &attempt)
                .await;
            match outcome {
                Err(Error::Cloud { step, source }) => {
                    let ecs = self.ecs.as_ref();
                    if !round.refused(pair, &source, ecs, deadline).await {
                        return Err(Error::Cloud { step, source });
                    }
                    tracing::info!(
                        volume.name = new.name,
                        pair = %pair,
                        cloud.code = source.code(),
                        cloud.request_id = source.request_id(),
                        "not to be had here, trying the next"
                    );
                    attempt.refused.push(token);
                }
                Ok(disk) => {
                    self.market.had(pair);
                    return Ok(disk);
                }
                outcome => return outcome,
            }
        }
        let (name, only_sizes) = (new.name.clone(), round.only_sizes());
        let reasons = round.reasons(choice);
        Err(if only_sizes {
            Error::OutOfRange { name, reasons }
        } else {
            Error::OutOfStock { name, reasons }
        })
    }

    async fn buy_one(
        &self,
        deadline: Deadline,
        new: &NewDisk,
        pair: &Candidate,
        token: ClientToken,
        attempt: &Attempt,
    ) -> Result<DiskId> {
        let step = || {
            format!(
                "create a disk of {} of {pair} for {:?}",
                pair.size, new.name
            )
        };
        let mut request = self.request(new, pair, token);
        let again = attempt.past.refused > 0;
        match self.order(deadline, new, pair, &request).await {
            // This call's own refusal has used the token up, or meanwhile another process has.
            Err(refusal)
                if refusal.kind() == Kind::TokenMismatch
                    && attempt.refused.contains(&request.token) =>
            {
                if let Some(disk) = self.find_disk(deadline, &new.name).await? {
                    return Ok(disk.id);
                }
            }
            Err(refusal) if refusal.kind() == Kind::TokenMismatch => {
                tracing::info!(
                    volume.name = new.name,
                    cloud.request_id = refusal.request_id(),
                    "token was used before"
                );
                if let Some(disk) =
                    lagging(deadline, || self.find_disk(deadline, &new.name)).await?
                {
                    return Ok(disk.id);
                }
            }
            Err(refusal) if is_final(&refusal) && (again || !attempt.looked) => {
                // It may be the echo of a refusal after which another token has served.
                if let Some(disk) = self.find_disk(deadline, &new.name).await? {
                    return Ok(disk.id);
                }
                if !again {
                    return Err(cloud(step())(refusal));
                }
            }
            outcome => return outcome.map_err(cloud(step())),
        }
        request.token = self.next_token(&request, &attempt.past);
        let outcome = self.order(deadline, new, pair, &request).await;
        outcome.map_err(cloud(step()))
    }

    /// One call, which counts as unclear until it is answered for good.
    async fn order(
        &self,
        deadline: Deadline,
        new: &NewDisk,
        pair: &Candidate,
        request: &CreateDisk,
    ) -> api::Result<DiskId> {
        let unclear = Some((pair.clone(), request.token.clone()));
        self.attempts.note(&new.name, |past| past.unclear = unclear);
        let outcome = self.ecs.create_disk(deadline, request).await;
        if outcome.as_ref().is_err_and(is_final) {
            self.attempts.note(&new.name, |past| {
                past.unclear = None;
                past.refused += 1;
            });
        }
        outcome
    }

    fn token(&self, new: &NewDisk, past: &PriorAttempts) -> ClientToken {
        let gone = past.gone.as_deref();
        let parts = [self.owner.cluster.as_str(), new.name.as_str()];
        ClientToken::derive("CreateDisk", parts.into_iter().chain(gone))
    }

    fn request(&self, new: &NewDisk, pair: &Candidate, token: ClientToken) -> CreateDisk {
        let burst = pair.category.has_burst();
        let mut tags = self.owner.disk_tags(new);
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

    /// A token of the whole request and its past: safe where nothing carries the name.
    fn next_token(&self, request: &CreateDisk, past: &PriorAttempts) -> ClientToken {
        let level = request
            .performance_level
            .map_or("", PerformanceLevel::as_str);
        let numbers = [
            request.size.0.to_string(),
            past.refused.to_string(),
            request.provisioned_iops.unwrap_or(0).to_string(),
        ];
        let switches = [
            (request.encrypted, "encrypted"),
            (request.bursting, "bursting"),
            (request.multi_attach, "shared"),
        ];
        let tags = request.tags.iter().flat_map(|(key, value)| [key, value]);
        let parts = [
            self.owner.cluster.as_str(),
            request.zone.as_ref().map_or("", ZoneId::as_str),
            request.category.as_str(),
            level,
            request.snapshot.as_ref().map_or("", SnapshotId::as_str),
            request.kms_key.as_deref().unwrap_or_default(),
            request.resource_group.as_deref().unwrap_or_default(),
            past.gone.as_deref().unwrap_or_default(),
        ];
        let parts = parts
            .into_iter()
            .chain(numbers.iter().map(String::as_str))
            .chain(switches.map(|(on, name)| if on { name } else { "" }))
            // The CSI name is among the tags.
            .chain(tags.map(String::as_str));
        ClientToken::derive("CreateDisk", parts)
    }
}

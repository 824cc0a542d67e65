//! Creating a disk of one category in one zone, once, whatever became of earlier calls.
//!
//! The token holds the cluster and the name only: whatever else a call asks for under the name meets
//! it, and the cloud answers a mismatch; then the tags tell. A refused call may have used the token
//! up, and is answered the same for a day: such a name goes on under a token of the whole request.
//!
//! As long as an order may have taken effect, no other is sent, and no refusal of its repetition is final: the disk is
//! found by its token or by its tags, or a listing proves that there is none.

use tokio::time::Instant;

use super::Provisioner;
use super::place::{Candidate, Choice};
use crate::base::Deadline;
use crate::cloud::{self as api, CreateDisk, Kind};
use crate::disk::attempts::{Order, PriorAttempts, is_final};
use crate::disk::error::{Error, cloud, wait};
use crate::disk::ownership::display_name;
use crate::disk::ownership_listing::EFFECT;
use crate::disk::tag_index::lagging;
use crate::disk::{NewDisk, Result};
use crate::model::{ClientToken, Disk, DiskId, PerformanceLevel, SnapshotId, ZoneId};

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
    /// Goes through the pairs until one is in stock. What may have been created already goes first.
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
        let open = past.unresolved.clone();
        let of_open = |pair: &Candidate| {
            let open = open.as_ref()?;
            let is_its = open
                .candidate
                .as_ref()
                .is_some_and(|other| other.is_as(pair));
            is_its.then(|| open.token.clone())
        };
        if let Some(open) = &open
            && !choice.pairs.iter().any(|pair| of_open(pair).is_some())
        {
            // The request has changed, so that the order cannot be repeated.
            if let Some(disk) = self.find_created(deadline, &new.name).await? {
                return Ok(disk.id);
            }
            if !self.had_no_effect(deadline, &new.name, open).await {
                let changed = Error::Exists {
                    name: new.name.clone(),
                    existing: "a disk of an earlier request".to_owned(),
                    differences: "the request has other categories or zones".to_owned(),
                };
                return Err(Error::CreationUnresolved {
                    name: new.name.clone(),
                    source: Box::new(changed),
                });
            }
        }
        let first = open.as_ref().and_then(|open| open.candidate.as_ref());
        let mut round = self.market.round(choice, first);
        let mut attempt = Attempt {
            past,
            looked,
            refused: Vec::new(),
        };
        while let Some(pair) = round.next() {
            let token = of_open(pair).unwrap_or_else(|| token.clone());
            let outcome = self
                .buy_one(deadline, new, pair, token.clone(), &mut attempt)
                .await;
            match outcome {
                Err(Error::Cloud { step, source }) => {
                    let ecs = self.ecs.as_ref();
                    if self.attempts.of(&new.name).is_open()
                        || !round.refused(pair, &source, ecs, deadline).await
                    {
                        return Err(Error::Cloud { step, source });
                    }
                    tracing::info!(
                        volume.name = new.name,
                        pair = %pair,
                        cloud.code = source.code(),
                        cloud.request_id = source.request_id(),
                        "not available here, trying the next"
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
        attempt: &mut Attempt,
    ) -> Result<DiskId> {
        let step = || {
            format!(
                "create a disk of {} of {pair} for {:?}",
                pair.size, new.name
            )
        };
        let mut request = self.request(new, pair, token);
        let refusal = match self.order(deadline, new, pair, &request).await {
            Ok(id) => return Ok(id),
            Err(refusal) => refusal,
        };
        let open = self.attempts.of(&new.name).unresolved;
        let is_mismatch = refusal.kind() == Kind::TokenMismatch;
        let ends_call = refusal.failure().meaning().is_final();
        if !is_mismatch && !is_final(&refusal) && !ends_call {
            return Err(cloud(step())(refusal));
        }
        // A refusal may be the echo of one after which another token has served; only a token that was used for
        // another request is certain to have a disk, unless this call's own refusal has used it up.
        let again = attempt.past.refused > 0;
        let is_used = is_mismatch && !attempt.refused.contains(&request.token);
        if is_mismatch || again || open.is_some() || !attempt.looked {
            attempt.looked = true;
            let found = if is_used {
                let find = || self.find_created(deadline, &new.name);
                let found = lagging(deadline, find).await?;
                // No order of this process explains the use of the token, so that a disk must be expected.
                let since = Instant::now().checked_sub(EFFECT);
                if found.is_none()
                    && attempt.past.refused == 0
                    && let Some(since) = since
                    && !self.listing.proves_absent(deadline, &new.name, since).await
                {
                    let step = format!("find what used the token of {:?}", new.name);
                    return Err(wait(step)(self.disks.unproven()));
                }
                found
            } else {
                self.find_created(deadline, &new.name).await?
            };
            if let Some(disk) = found {
                return Ok(disk.id);
            }
        }
        if let Some(open) = &open
            && !self.had_no_effect(deadline, &new.name, open).await
        {
            return Err(cloud(step())(refusal));
        }
        if !(is_mismatch || again && is_final(&refusal)) {
            return Err(cloud(step())(refusal));
        }
        request.token = self.next_token(&request, &attempt.past);
        let outcome = self.order(deadline, new, pair, &request).await;
        outcome.map_err(cloud(step()))
    }

    /// What an earlier order under this name has created, by its tags.
    async fn find_created(&self, deadline: Deadline, name: &str) -> Result<Option<Disk>> {
        let found = self.find_disk(deadline, name).await?;
        if let Some(disk) = &found {
            self.attempts.found(name, disk.id.as_str());
        }
        Ok(found)
    }

    /// Whether a listing proves that an order which may have taken effect had none; then it is settled.
    async fn had_no_effect(&self, deadline: Deadline, name: &str, open: &Order) -> bool {
        let listing = &self.listing;
        let is_proven = listing.proves_absent(deadline, name, open.since).await;
        if is_proven {
            self.attempts.note(name, |past| past.unresolved = None);
        }
        is_proven
    }

    /// One call, which counts as unresolved until it is answered for good.
    async fn order(
        &self,
        deadline: Deadline,
        new: &NewDisk,
        pair: &Candidate,
        request: &CreateDisk,
    ) -> api::Result<DiskId> {
        let order = Order::new(request.token.clone(), Some(pair.clone()));
        let call = self.ecs.create_disk(deadline, request);
        self.attempts.track(&new.name, order, call).await
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

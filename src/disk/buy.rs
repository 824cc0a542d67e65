//! Buying a disk of one category in one zone, once, whatever became of earlier calls.
//!
//! The token holds the cluster and the name only: whatever else a call asks for under the name meets
//! it, and the cloud answers a mismatch; then the tags tell. A refused call may have used the token
//! up, and is answered the same for a day: such a name goes on under a token of the whole request.

use super::error::{Error, cloud};
use super::find::lagging;
use super::place::Candidate;
use super::trail::{Past, is_final};
use super::{Disks, NewDisk, Result, label};
use crate::base::Deadline;
use crate::cloud::{self as api, CreateDisk, Kind};
use crate::model::{ClientToken, DiskId, SnapshotId};

/// What one call knows before it tries a pair.
#[derive(Debug)]
struct Attempt {
    past: Past,
    /// Whether the name was looked for by its tags.
    looked: bool,
    /// The tokens under which this call was refused already.
    refused: Vec<ClientToken>,
}

impl Disks {
    /// Goes through the pairs until one can be had. What may have been bought already goes first.
    /// `looked` tells whether the name was looked for by its tags.
    pub(super) async fn buy(
        &self,
        deadline: Deadline,
        new: &NewDisk,
        candidates: &[Candidate],
        looked: bool,
    ) -> Result<DiskId> {
        let past = self.trails.disks.of(&new.name);
        let token = self.token(new, &past);
        let mut orders: Vec<_> = candidates
            .iter()
            .map(|pair| (pair, token.clone()))
            .collect();
        if let Some((pair, token)) = &past.unclear
            && let Some(n) = candidates.iter().position(|other| other.is_as(pair))
        {
            orders[..=n].rotate_right(1);
            orders[0].1 = token.clone();
        }
        let mut attempt = Attempt {
            past,
            looked,
            refused: Vec::new(),
        };
        let mut reasons = Vec::new();
        for (pair, token) in orders {
            let outcome = self
                .buy_one(deadline, new, pair, token.clone(), &attempt)
                .await;
            match outcome {
                Err(Error::Cloud { source, .. }) if moves_on(&source) => {
                    tracing::info!(
                        volume.name = new.name,
                        zone = %pair.zone,
                        category = %pair.category,
                        cloud.code = source.code(),
                        cloud.request_id = source.request_id(),
                        "not to be had here, trying the next"
                    );
                    let reason = crate::base::chain::chain(&source);
                    reasons.push(format!("{} in {}: {reason}", pair.category, pair.zone));
                    attempt.refused.push(token);
                }
                outcome => return outcome,
            }
        }
        Err(Error::OutOfStock {
            name: new.name.clone(),
            reasons: reasons.join("; "),
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
                "create a {} disk in {} for {:?}",
                pair.category, pair.zone, new.name
            )
        };
        let mut request = CreateDisk {
            zone: Some(pair.zone.clone()),
            category: pair.category.clone(),
            performance_level: None,
            provisioned_iops: None,
            bursting: false,
            multi_attach: false,
            resource_group: None,
            size: pair.size,
            name: label::display_name(&new.name),
            snapshot: new.snapshot.clone(),
            encrypted: new.encrypted,
            kms_key: new.kms_key.clone(),
            tags: self.tags(&new.name),
            token,
        };
        let again = attempt.past.refused > 0;
        match self.order(deadline, new, pair, &request).await {
            // This call's own refusal has used the token up.
            Err(refusal)
                if refusal.kind() == Kind::TokenMismatch
                    && attempt.refused.contains(&request.token) => {}
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
        request.token = self.next_token(new, pair, &attempt.past);
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
        self.trails
            .disks
            .note(&new.name, |past| past.unclear = unclear);
        let outcome = self.ecs.create_disk(deadline, request).await;
        if outcome.as_ref().is_err_and(is_final) {
            self.trails.disks.note(&new.name, |past| {
                past.unclear = None;
                past.refused += 1;
            });
        }
        outcome
    }

    fn token(&self, new: &NewDisk, past: &Past) -> ClientToken {
        let gone = past.gone.as_deref();
        let parts = [self.cluster.as_str(), new.name.as_str()];
        ClientToken::derive("CreateDisk", parts.into_iter().chain(gone))
    }

    /// A token of the whole request and its past: safe where nothing carries the name.
    fn next_token(&self, new: &NewDisk, pair: &Candidate, past: &Past) -> ClientToken {
        let (size, refused) = (pair.size.0.to_string(), past.refused.to_string());
        let parts = [
            self.cluster.as_str(),
            &new.name,
            pair.zone.as_str(),
            pair.category.as_str(),
            &size,
            new.snapshot.as_ref().map_or("", SnapshotId::as_str),
            if new.encrypted { "encrypted" } else { "" },
            new.kms_key.as_deref().unwrap_or_default(),
            past.gone.as_deref().unwrap_or_default(),
            &refused,
        ];
        ClientToken::derive("CreateDisk", parts)
    }
}

/// Whether another pair may succeed where this one was refused.
fn moves_on(error: &api::Error) -> bool {
    error.kind() == Kind::OutOfStock
        || error
            .code()
            .is_some_and(|code| code.starts_with("QuotaExceed.DiskCapacity"))
}

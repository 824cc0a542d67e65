//! That a disk is blank, and for how long that is believed. Whoever looks, waits and then writes
//! overwrites what came in between.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::observe::Quick;
use super::{Node, Result};
use crate::base::Deadline;
use crate::host::{Claim, Content, Device};

/// For how long after a look nobody needs to look again. Planning and the records take a few
/// milliseconds; a node that is busy, or its disk, makes the look old.
const FRESH: Duration = Duration::from_millis(50);

/// A look that found a device blank while it was claimed: no mkfs of another process ends after it
/// and before ours. A device can be claimed once, also by the same process.
#[derive(Debug)]
pub(super) struct Proof {
    claim: Claim,
    at: Instant,
}

impl Proof {
    /// The device was found blank by a look that began then: its first bytes were read first, and on a slow
    /// disk the look itself takes a while.
    pub(super) fn since(claim: Claim, at: Instant) -> Self {
        Self { claim, at }
    }

    /// The device was found blank now, by a second look, most of which the kernel has in its memory.
    pub(super) fn now(claim: Claim) -> Self {
        Self::since(claim, Instant::now())
    }

    /// Whether the look still counts.
    pub(super) fn is_fresh(&self) -> bool {
        self.at.elapsed() <= FRESH
    }

    /// The claim, which lasts as long as any of its clones.
    pub(super) fn claim(&self) -> &Claim {
        &self.claim
    }
}

/// Hands a proof to the one step that uses it up.
#[derive(Debug, Default)]
pub(super) struct Handed(Mutex<Option<Proof>>);

impl Handed {
    pub(super) fn new(proof: Option<Proof>) -> Self {
        Self(Mutex::new(proof))
    }

    /// The proof, for the first who asks.
    pub(super) fn take(&self) -> Option<Proof> {
        let mut proof = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        proof.take()
    }
}

impl Node {
    /// Looks at a device that nobody uses. There is a proof where it is blank and could be claimed at
    /// once: udev has a new device for a moment, and skips one that is claimed, so that one with a
    /// filesystem is not.
    pub(super) async fn prove(
        &self,
        device: &Device,
        deadline: Deadline,
        at: Quick<'_>,
    ) -> Result<(Content, Option<Proof>)> {
        let claim = self.host.claim_if_blank(deadline, device).await;
        let claim = claim.map_err(at.failed())?;
        let begin = Instant::now();
        let content = self.host.content(deadline, device).await;
        let content = content.map_err(at.failed())?;
        let claim = claim.filter(|_| content == Content::Blank);
        let proof = claim.map(|claim| Proof::since(claim, begin));
        Ok((content, proof))
    }
}

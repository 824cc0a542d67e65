//! A request for a candidate. Its response is recorded before anything else: a stock-out for all calls, so that their
//! queued requests are not sent, and any other refusal for this one.

use std::fmt;
use std::time::Duration;

use ecs::{Client, CreateDisk};

use super::candidates::{Candidate, StockView};
use crate::base::Deadline;
use crate::disk::owned::CreateRequest;
use crate::disk::refusals::Refusals;
use crate::model::{Disk, DiskId};

/// By how much a request precedes others of the same deadline in the queue of the rate limit.
const QUEUED_FIRST: Duration = Duration::from_millis(1);

pub(super) struct Attempt<'a> {
    pub(super) request: CreateDisk,
    pub(super) candidate: &'a Candidate,
    pub(super) stock: &'a StockView,
    pub(super) refusals: &'a Refusals<String>,
    /// The key of the refusals.
    pub(super) order: &'a String,
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

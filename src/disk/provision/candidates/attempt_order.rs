//! The order in which the candidates of one call are attempted, by their known stock.
//!
//! Candidates in stock come first, in the caller's order. Those with a recent stock-out, or out of stock according to the
//! cloud, come last, because both can be outdated. Of the candidates to which both apply, only one is attempted, as the
//! last one.

use std::time::Duration;

use super::rejection::Rejection;
use super::stock::{StockCache, is_in_stock};
use super::stockouts::StockoutCache;
use super::{Candidate, Selection};
use crate::base::Deadline;
use crate::base::error_chain;
use crate::cloud::{self, EcsApi};

/// How long a stock query may delay a create that does not depend on it.
const QUERY: Duration = Duration::from_secs(5);

/// The known stock of zones and categories.
#[derive(Debug, Default)]
pub(in crate::disk) struct StockView {
    pub(in crate::disk) stockouts: StockoutCache,
    pub(super) stock: StockCache,
}

#[derive(Debug)]
pub(in crate::disk) struct AttemptOrder<'a> {
    view: &'a StockView,
    remaining: Vec<&'a Candidate>,
    first: Option<&'a Candidate>,
    is_probed: bool,
    reasons: Vec<String>,
    is_size_only: bool,
}

impl StockView {
    /// Starts an attempt order over the candidates of a call, beginning with `first` regardless of its stock.
    pub(in crate::disk) fn attempt_order<'a>(
        &'a self,
        selection: &'a Selection,
        first: Option<&'a Candidate>,
    ) -> AttemptOrder<'a> {
        AttemptOrder {
            view: self,
            remaining: selection.candidates.iter().collect(),
            first,
            is_probed: false,
            reasons: Vec::new(),
            is_size_only: selection.excluded.is_empty(),
        }
    }

    /// Whether the candidate is in stock according to the cloud and recent creates. Without permission for the query, only
    /// recent stock-outs count.
    pub(in crate::disk) async fn is_in_stock(
        &self,
        ecs: &dyn EcsApi,
        deadline: Deadline,
        candidate: &Candidate,
    ) -> cloud::Result<bool> {
        let zones = self
            .stock
            .query(ecs, deadline, candidate.category.is_regional())
            .await?;
        let is_in_stock = zones.is_none_or(|zones| is_in_stock(&zones, candidate));
        Ok(is_in_stock && self.stockouts.reason(candidate).is_none())
    }

    pub(in crate::disk) fn record_success(&self, candidate: &Candidate) {
        self.stockouts.record_success(candidate);
    }
}

impl<'a> AttemptOrder<'a> {
    /// The next candidate to attempt; `None` if no remaining one is likely to succeed.
    pub(in crate::disk) fn next(&mut self) -> Option<&'a Candidate> {
        let index = match self.first.take() {
            Some(first) => self
                .remaining
                .iter()
                .position(|other| std::ptr::eq(*other, first)),
            None => self.best(),
        }?;
        Some(self.remaining.remove(index))
    }

    fn best(&mut self) -> Option<usize> {
        let ranked = self.remaining.iter().enumerate();
        let (index, rank) = ranked
            .map(|(index, candidate)| (index, self.rank(candidate)))
            .min_by_key(|(_, rank)| *rank)?;
        if rank == 2 && std::mem::replace(&mut self.is_probed, true) {
            return None;
        }
        Some(index)
    }

    /// The number of negative signs: a recent stock-out, and out of stock according to the cloud.
    fn rank(&self, candidate: &Candidate) -> u8 {
        let rejected = self.view.stockouts.reason(candidate).is_some();
        let out_of_stock = self.view.stock.is_in_stock(candidate) == Some(false);
        u8::from(rejected) + u8::from(out_of_stock)
    }

    /// Records the rejection of a candidate. False if no other candidate can succeed. If several candidates remain, the stock
    /// is queried once, to avoid further rejections.
    pub(in crate::disk) async fn record_rejection(
        &mut self,
        candidate: &Candidate,
        error: &cloud::Error,
        ecs: &dyn EcsApi,
        deadline: Deadline,
    ) -> bool {
        let Some(rejection) = Rejection::from_error(error) else {
            return false;
        };
        let reason = error_chain(error);
        self.view.stockouts.record(candidate, rejection, &reason);
        self.reasons.push(format!("{candidate}: {reason}"));
        self.is_size_only &= rejection == Rejection::Size;
        for regional in [false, true] {
            let (stock, remaining) = (&self.view.stock, self.remaining.iter());
            let concerned = remaining.filter(|other| other.category.is_regional() == regional);
            if concerned.count() >= 2 && stock.is_unknown(regional) {
                let query = stock.query(ecs, deadline.at_most(QUERY), regional);
                if let Err(error) = query.await {
                    tracing::debug!(error = error_chain(&error), "cannot query the stock");
                }
            }
        }
        true
    }

    /// Whether every candidate was rejected because of its size.
    pub(in crate::disk) fn is_size_only(&self) -> bool {
        self.is_size_only && self.remaining.is_empty()
    }

    pub(in crate::disk) fn reasons(mut self, selection: &Selection) -> String {
        for candidate in &self.remaining {
            let why = self.view.stockouts.reason(candidate).unwrap_or_default();
            let text = "not tried again, it is out of stock and was rejected";
            self.reasons.push(format!("{candidate}: {text}: {why}"));
        }
        self.reasons.extend(selection.excluded.iter().cloned());
        self.reasons.join("; ")
    }
}

//! The order in which the candidates of one call are attempted: the caller's, but those that the cloud reports as out
//! of stock come last, because the report can be outdated. Candidates that are out of stock according to a creation are
//! skipped, except for a probe. After a probe, a call skips those to which both apply.

use std::time::Duration;

use ecs::Client;

use super::stock::{StockCache, is_in_stock};
use super::stockouts::{Rejection, Stockouts};
use super::{Candidate, Selection};
use crate::base::{Deadline, error_chain};
use crate::disk::error::Error;
use crate::model::{Failure, FailureKind, ZoneStock};

/// How long a stock query may delay a create that does not depend on it.
const QUERY: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(in crate::disk) struct StockView {
    pub(in crate::disk) stockouts: Stockouts,
    pub(super) stock: StockCache,
}

#[derive(Debug)]
pub(in crate::disk) struct AttemptOrder<'a> {
    view: &'a StockView,
    selection: &'a Selection,
    remaining: Vec<&'a Candidate>,
    first: Option<&'a Candidate>,
    /// Whether this call has probed a candidate that is out of stock according to a creation.
    is_probed: bool,
    rejections: Vec<String>,
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
            selection,
            remaining: selection.candidates.iter().collect(),
            first,
            is_probed: false,
            rejections: Vec::new(),
            is_size_only: selection.excluded.is_empty(),
        }
    }

    /// Whether the candidate is in stock according to the cloud and recent creates. Without permission for the query,
    /// only recent stock-outs count.
    pub(in crate::disk) async fn is_in_stock(
        &self,
        ecs: &Client,
        deadline: Deadline,
        candidate: &Candidate,
    ) -> ecs::Result<bool> {
        let zones = self
            .stock
            .query(ecs, deadline, candidate.category.is_regional())
            .await?;
        let is_in_stock = zones.is_none_or(|zones| is_in_stock(&zones, candidate));
        Ok(is_in_stock && !self.stockouts.is_recent(candidate))
    }

    pub(in crate::disk) fn record(&self, candidate: &Candidate, error: Option<&ecs::Error>) {
        let why = error.map(|error| error_chain(error)).unwrap_or_default();
        let rejected = error
            .and_then(Rejection::from_error)
            .map(|rejection| (rejection, &*why));
        // Other claims must fail with a denial, not with the earlier stock-out.
        let is_denied = |error| Failure::from(error).kind() == FailureKind::PermissionDenied;
        if rejected.is_some() || error.is_none_or(is_denied) {
            self.stockouts.record(candidate, rejected);
        }
    }

    /// Whether the rejection applies to other calls too.
    pub(in crate::disk) fn is_stockout(&self, error: &ecs::Error) -> bool {
        use Rejection::{Quota, Stock, Zone};
        matches!(Rejection::from_error(error), Some(Zone | Stock | Quota))
    }

    pub(super) fn sort(&self, candidates: &mut [&Candidate]) {
        candidates.sort_by_key(|candidate| self.stock.is_in_stock(candidate) == Some(false));
    }
}

impl<'a> AttemptOrder<'a> {
    /// The next candidate to attempt, once the rate limit permits its request; `None` if all remaining ones are out of
    /// stock.
    pub(in crate::disk) async fn next(&mut self, ecs: &Client, deadline: Deadline) -> Option<&'a Candidate> {
        let stockouts = &self.view.stockouts;
        self.view.sort(&mut self.remaining);
        let next = match self.first.take() {
            Some(first) => first,
            None => loop {
                let is_doubtful = |candidate: &Candidate| {
                    let reported = self.view.stock.is_in_stock(candidate) == Some(false);
                    reported && stockouts.reason(candidate).is_some()
                };
                let mut remaining = self.remaining.iter().filter(|next| stockouts.is_due(next));
                let next = *remaining.find(|next| !(self.is_probed && is_doubtful(next)))?;
                // Another call may have been rejected while this one was queued.
                let _ = ecs.ready(deadline, "CreateDisk").await;
                if stockouts.begin_attempt(next) {
                    self.is_probed |= stockouts.reason(next).is_some();
                    break next;
                }
            },
        };
        self.remaining.retain(|other| !std::ptr::eq(*other, next));
        Some(next)
    }

    /// Adds the rejection of a candidate. False if no other candidate can succeed. If several candidates remain, the
    /// stock is queried once, to avoid further rejections.
    pub(in crate::disk) async fn add_rejection(
        &mut self,
        candidate: &Candidate,
        error: &ecs::Error,
        ecs: &Client,
        deadline: Deadline,
    ) -> bool {
        let Some(rejection) = Rejection::from_error(error) else {
            return false;
        };
        self.rejections.push(format!("{candidate}: {}", error_chain(error)));
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

    /// The error with the rejections, the last rejection of candidates that were not attempted, and why others are
    /// excluded.
    pub(in crate::disk) fn error(self, name: String) -> Error {
        let is_size_only = self.is_size_only && self.remaining.is_empty();
        let mut reasons = self.rejections;
        for candidate in &self.remaining {
            let why = self.view.stockouts.reason(candidate);
            let why = why.unwrap_or_else(|| "it was out of stock".to_owned());
            reasons.push(format!("{candidate}: not attempted by this call: {why}"));
        }
        reasons.extend(self.selection.excluded.iter().cloned());
        let reasons = reasons.join("; ");
        match is_size_only {
            true => Error::OutOfRange { name, reasons },
            false => Error::OutOfStock { name, reasons },
        }
    }
}

/// The stock of a region, as `DescribeAvailableResource` reports it; `None` if unknown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RegionStock {
    pub zonal: Option<Vec<ZoneStock>>,
    pub regional: Option<Vec<ZoneStock>>,
}

/// The candidates in the order of attempts while this stock is cached, and whether each is in stock.
pub fn attempts_with_stock(selection: &Selection, stock: &RegionStock) -> Vec<(Candidate, Option<bool>)> {
    let view = StockView::default();
    for (regional, zones) in [(false, &stock.zonal), (true, &stock.regional)] {
        if let Some(zones) = zones {
            view.stock.remember(regional, zones.clone());
        }
    }
    let mut order: Vec<_> = selection.candidates.iter().collect();
    view.sort(&mut order);
    let attempts = order.into_iter();
    attempts
        .map(|candidate| (candidate.clone(), view.stock.is_in_stock(candidate)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Category, Gib, Stock};

    #[test]
    fn candidates_out_of_stock_come_last() {
        let candidate = |zone: &str, category: Category| Candidate {
            zone: Some(zone.parse().unwrap()),
            category,
            level: None,
            size: Gib(40),
        };
        let first = candidate("a", Category::CloudSsd);
        let second = candidate("a", Category::CloudEssd);
        let selection = Selection {
            candidates: vec![first.clone(), second.clone()],
            excluded: Vec::new(),
        };
        let unknown = attempts_with_stock(&selection, &RegionStock::default());
        assert_eq!(unknown, [(first.clone(), None), (second.clone(), None)]);
        let stock = Stock {
            category: Category::CloudEssd,
            available: true,
        };
        let stock = RegionStock {
            zonal: Some(vec![ZoneStock {
                zone: second.zone.clone(),
                categories: vec![stock],
            }]),
            regional: None,
        };
        let known = attempts_with_stock(&selection, &stock);
        assert_eq!(known, [(second, Some(true)), (first, Some(false))]);
    }
}

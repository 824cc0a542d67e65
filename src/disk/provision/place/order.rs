//! In what order the pairs of one call are tried, by all that is known of their stock.
//!
//! What nothing speaks against goes first, in the caller's order. What was refused is_recent_or_pending, or what the
//! cloud says is stockouts out, goes last: both may be out of date. Of what both speak against only one is
//! tried, when nothing else is left; if that is refused too, so would be the others.

use std::time::Duration;

use super::refusal::Refusal;
use super::stock::{Stock, sells};
use super::stockouts::StockoutCache;
use super::{Candidate, Choice};
use crate::base::Deadline;
use crate::base::error_chain;
use crate::cloud::{self, EcsApi};

/// How long a stock query may delay a create that does not depend on it.
const QUERY: Duration = Duration::from_secs(5);

/// The known stock of zones and categories.
#[derive(Debug, Default)]
pub(in crate::disk) struct StockView {
    pub(super) stockouts: StockoutCache,
    pub(super) stock: Stock,
}

#[derive(Debug)]
pub(in crate::disk) struct AttemptOrder<'a> {
    stock_view: &'a StockView,
    left: Vec<&'a Candidate>,
    first: Option<&'a Candidate>,
    probed: bool,
    reasons: Vec<String>,
    only_sizes: bool,
}

impl StockView {
    /// Starts an attempt order over the pairs of a call, beginning with `first` regardless of its stock.
    pub(in crate::disk) fn attempt_order<'a>(
        &'a self,
        choice: &'a Choice,
        first: Option<&'a Candidate>,
    ) -> AttemptOrder<'a> {
        AttemptOrder {
            stock_view: self,
            left: choice.pairs.iter().collect(),
            first,
            probed: false,
            reasons: Vec::new(),
            only_sizes: choice.left_out.is_empty(),
        }
    }

    /// Whether the pair is in stock according to the cloud and recent creates. Without permission
    /// for the query, only recent stock-outs count.
    pub(in crate::disk) async fn has(
        &self,
        ecs: &dyn EcsApi,
        deadline: Deadline,
        pair: &Candidate,
    ) -> cloud::Result<bool> {
        let zones = self
            .stock
            .ask(ecs, deadline, pair.category.is_regional())
            .await?;
        let sells = zones.is_none_or(|zones| sells(&zones, pair));
        Ok(sells && self.stockouts.rejection_reason(pair).is_none())
    }

    pub(in crate::disk) fn record_success(&self, pair: &Candidate) {
        self.stockouts.record_success(pair);
    }
}

impl<'a> AttemptOrder<'a> {
    /// The pair to try next; none when none is left that it makes sense to try.
    pub(in crate::disk) fn next(&mut self) -> Option<&'a Candidate> {
        let index = match self.first.take() {
            Some(first) => self.left.iter().position(|pair| std::ptr::eq(*pair, first)),
            None => self.best(),
        }?;
        Some(self.left.remove(index))
    }

    fn best(&mut self) -> Option<usize> {
        let ranked = self.left.iter().enumerate();
        let (index, against) = ranked
            .map(|(index, pair)| (index, self.against(pair)))
            .min_by_key(|(_, against)| *against)?;
        if against == 2 && std::mem::replace(&mut self.probed, true) {
            return None;
        }
        Some(index)
    }

    /// How many of the two speak against the pair: a recent refusal, and the cloud's stock.
    fn against(&self, pair: &Candidate) -> u8 {
        let refused = self.stock_view.stockouts.rejection_reason(pair).is_some();
        let sold_out = self.stock_view.stock.has(pair) == Some(false);
        u8::from(refused) + u8::from(sold_out)
    }

    /// Records the rejection of a pair. False if no other pair can succeed.
    ///
    /// If several pairs remain, the stock is queried once, to avoid rejections.
    pub(in crate::disk) async fn refused(
        &mut self,
        pair: &Candidate,
        error: &cloud::Error,
        ecs: &dyn EcsApi,
        deadline: Deadline,
    ) -> bool {
        let Some(refusal) = Refusal::of(error) else {
            return false;
        };
        let reason = error_chain(error);
        self.stock_view.stockouts.note(pair, refusal, &reason);
        self.reasons.push(format!("{pair}: {reason}"));
        self.only_sizes &= refusal == Refusal::Size;
        for regional in [false, true] {
            let concerned = self
                .left
                .iter()
                .filter(|pair| pair.category.is_regional() == regional);
            if concerned.count() >= 2 && self.stock_view.stock.is_unknown(regional) {
                let look = self
                    .stock_view
                    .stock
                    .ask(ecs, deadline.at_most(QUERY), regional);
                if let Err(error) = look.await {
                    tracing::debug!(error = error_chain(&error), "stock is not known");
                }
            }
        }
        true
    }

    /// Whether all that was tried was refused for its size alone.
    pub(in crate::disk) fn only_sizes(&self) -> bool {
        self.only_sizes && self.left.is_empty()
    }

    pub(in crate::disk) fn reasons(mut self, choice: &Choice) -> String {
        for pair in &self.left {
            let why = self
                .stock_view
                .stockouts
                .rejection_reason(pair)
                .unwrap_or_default();
            let reason =
                format!("{pair}: not tried again, it is stockouts out and was refused: {why}");
            self.reasons.push(reason);
        }
        self.reasons.extend(choice.left_out.iter().cloned());
        self.reasons.join("; ")
    }
}

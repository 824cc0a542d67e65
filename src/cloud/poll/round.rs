//! Who hears of a description, and when the next one is due: those who wait share all of them, and nobody
//! is told more often than is good for what it does then.

use std::time::Duration;

use tokio::time::Instant;

use super::{IDS_A_CALL, Pace};

/// What somebody looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// How it is now.
    Look,
    /// A change, whoever makes it. It may call the cloud again for each description.
    Wait,
    /// The end of an order that the cloud has accepted.
    Order {
        /// Until when looks at it are brisk.
        young: Instant,
    },
}

impl Manner {
    /// From joining to the first description.
    pub(super) fn first(self, pace: Pace) -> Duration {
        match self {
            Self::Look => pace.linger,
            Self::Wait => pace.tick,
            // Clouds, and fakes more so, take round times: they end between two looks, and not with one, where
            // what is late by a hair waits for the next.
            Self::Order { .. } => pace.tick - pace.brisk / 2,
        }
    }
}

/// One description, or several at once for more than [`IDS_A_CALL`] ids.
#[derive(Debug, Clone, Copy)]
pub(super) struct Round {
    pace: Pace,
    now: Instant,
    is_brisk: bool,
    /// When the tick of all was last, this round included.
    ticked: Option<Instant>,
}

impl Round {
    /// The round of now, for those who wait: what for, and when they are due. It is not brisk where
    /// the cloud has refused looks lately, nor where one call may not tell all.
    pub(super) fn now(
        pace: Pace,
        ticked: Option<Instant>,
        is_calm: bool,
        waiters: impl ExactSizeIterator<Item = (Manner, Instant)>,
    ) -> Self {
        let mut round = Self {
            pace,
            now: Instant::now(),
            is_brisk: is_calm && waiters.len() <= IDS_A_CALL,
            ticked,
        };
        // That an order has grown old, or that others came meanwhile, brings no tick before its time.
        let is_time = ticked.is_none_or(|ticked| round.is_due(ticked + pace.tick));
        let mut ticking =
            waiters.filter(|(manner, _)| *manner != Manner::Look && !round.is_young(*manner));
        if is_time && ticking.any(|(_, due)| round.is_due(due)) {
            round.ticked = Some(round.now);
        }
        round
    }

    /// When the tick of all was last.
    pub(super) fn ticked(self) -> Option<Instant> {
        self.ticked
    }

    /// When the waiter is due again, if it hears of this round: who is due does, and so does who waits
    /// for a young order. When the tick of one has come, it is that of all.
    pub(super) fn next(self, manner: Manner, due: Instant) -> Option<Instant> {
        if self.is_young(manner) {
            return Some(self.now + self.pace.brisk);
        }
        let is_tick = self.ticked == Some(self.now);
        let tick = self.ticked.map(|ticked| ticked + self.pace.tick);
        let next = tick.filter(|tick| *tick > self.now);
        let next = next.unwrap_or(self.now + self.pace.tick);
        (is_tick || self.is_due(due)).then_some(next)
    }

    /// Now or so soon that a round of its own would be wasted.
    fn is_due(self, due: Instant) -> bool {
        due <= self.now + self.pace.brisk / 2
    }

    fn is_young(self, manner: Manner) -> bool {
        matches!(manner, Manner::Order { young } if self.is_brisk && self.now < young)
    }
}

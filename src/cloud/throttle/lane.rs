//! What is known of one limit of the cloud, and when the next call may go. No waiting here.

/// A window of the cloud, in milliseconds.
const WINDOW: i64 = 60_000;

/// By how much the cloud's clock may be behind ours when nothing is known of it.
const GUARD: i64 = 500;

/// The most that is allowed for it.
const MOST_GUARD: i64 = 8_000;

/// Within this part of a window the whole proven budget is handed out; what is left of it is for
/// finding out whether there is more. A refusal so late costs little.
const PACED: i64 = 54_000;

/// How long others wait for the answer to a call that tries whether one is let through.
const LEASE: i64 = 2_000;

/// So many calls in a window are let go without waiting for one another, before anything is known.
const UNPROVEN: u32 = 20;

/// Why a call may not go yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blocked {
    /// Not before this time: the window is used up, or this call's part of it.
    Until(i64),
    /// Until another call is answered, or this time.
    Answer(i64),
}

impl Blocked {
    pub(super) fn at(self) -> i64 {
        match self {
            Self::Until(at) | Self::Answer(at) => at,
        }
    }
}

/// One limit: that of an API, or that of the account.
#[derive(Debug)]
pub(super) struct Lane {
    /// Where the window begins, in milliseconds of the wall clock; none before the first call.
    window: Option<i64>,
    /// Whether the window was watched from its beginning.
    whole: bool,
    sent: u32,
    /// How many of them were not urgent.
    idle: u32,
    /// How many urgent ones went since the last that was not.
    run: u32,
    /// Whether a call of this window was refused.
    refused: bool,
    /// How many of those sent nobody knows of whether they were let through.
    unknown: u32,
    shut: Option<i64>,
    /// From when the cloud itself says that a call will do, however the window is shared out.
    told: Option<i64>,
    /// The most that is sent in a window; none as long as nothing was ever refused.
    budget: Option<u32>,
    /// The most that was let through in a window.
    proven: u32,
    /// What was let through when the cloud refused more.
    ceiling: u32,
    /// Windows that were used in full since the budget has changed, and how many it takes.
    clean: u32,
    patience: u32,
    /// How many are not answered yet, and when the last of them went.
    out: u32,
    last: i64,
    /// The next call goes alone.
    proving: bool,
    guard: i64,
    free: u32,
    /// Whether urgent calls come here at all.
    urgent: bool,
}

impl Lane {
    /// The limit of an API.
    pub(super) fn of_api() -> Self {
        Self {
            window: None,
            whole: false,
            sent: 0,
            idle: 0,
            run: 0,
            refused: false,
            unknown: 0,
            shut: None,
            told: None,
            budget: None,
            proven: 0,
            ceiling: u32::MAX,
            clean: 0,
            patience: 1,
            out: 0,
            last: 0,
            proving: false,
            guard: GUARD,
            free: UNPROVEN,
            urgent: false,
        }
    }

    /// The limit of the account: the APIs try out theirs, so this one lets go what it does not know.
    pub(super) fn of_account() -> Self {
        Self {
            free: u32::MAX,
            ..Self::of_api()
        }
    }

    /// The start of the window in which the last call went.
    pub(super) fn window(&self) -> i64 {
        self.window.unwrap_or_default()
    }

    /// Whether a call may go now, and else why not.
    pub(super) fn ready(&mut self, now: i64, urgent: bool) -> Result<(), Blocked> {
        let start = self.roll(now);
        if let Some(shut) = self.shut.filter(|shut| now < *shut) {
            return Err(Blocked::Until(shut));
        }
        // Whether it is let through shows only when those before it have been.
        if self.out > 0 && self.is_alone() && now < self.last + LEASE {
            return Err(Blocked::Answer(self.last + LEASE));
        }
        if self.told.is_some_and(|told| now >= told) {
            return Ok(());
        }
        let Some(budget) = self.budget else {
            return Ok(());
        };
        // The cloud may still count for the window before.
        if now < start + self.guard {
            return Err(Blocked::Until(start + self.guard));
        }
        let mut at = self.opens(self.sent + 1, budget);
        if !urgent && self.urgent {
            let share = self.opens_share(self.idle + 1);
            at = at.max(
                self.opens(self.sent + 1 + self.reserve(), budget)
                    .min(share),
            );
        }
        if now >= start + at {
            return Ok(());
        }
        Err(Blocked::Until(start + at))
    }

    /// Whether it is the turn of a call that is not urgent, though urgent ones wait.
    pub(super) fn owes(&self) -> bool {
        self.run >= 3
    }

    /// Lets a call go that is ready. True when others wait for its answer.
    pub(super) fn send(&mut self, now: i64, urgent: bool) -> bool {
        self.roll(now);
        self.told = None;
        let alone = self.is_alone();
        self.out += 1;
        self.last = now;
        self.sent += 1;
        if urgent {
            self.urgent = true;
            self.run += 1;
        } else {
            self.idle += 1;
            self.run = 0;
        }
        alone
    }

    /// Whether the next call tries something that is not known to be let through.
    fn is_alone(&self) -> bool {
        let known = match self.budget {
            Some(_) => self.proven,
            None => self.free.max(self.proven),
        };
        self.proving || self.sent >= known
    }

    /// A call was let through, whatever became of it; `alone` is what [`Lane::send`] said of it.
    pub(super) fn passed(&mut self, alone: bool) {
        self.out = self.out.saturating_sub(1);
        if alone {
            self.proving = false;
        }
    }

    /// Nobody will know what became of a call of this window: it may have used the limit up, and
    /// proves nothing.
    pub(super) fn lost(&mut self, window: i64) {
        self.out = self.out.saturating_sub(1);
        if self.window == Some(window) {
            self.unknown = (self.unknown + 1).min(self.sent);
        }
    }

    /// A call of this window never reached the cloud.
    pub(super) fn unsent(&mut self, window: i64, urgent: bool) {
        self.out = self.out.saturating_sub(1);
        if self.window != Some(window) {
            return;
        }
        self.sent = self.sent.saturating_sub(1);
        if !urgent {
            self.idle = self.idle.saturating_sub(1);
        }
    }

    /// A call of this window was refused; `wait` is how long the cloud asks to wait.
    pub(super) fn refuse(&mut self, now: i64, window: i64, wait: Option<i64>) {
        let start = self.roll(now);
        self.out = self.out.saturating_sub(1);
        self.proving = true;
        let until = wait.map(|wait| now + wait);
        self.told = until;
        if window != start {
            // Of the window before: nothing is known of this one.
            self.shut = until.max(self.shut);
            return;
        }
        let before = std::mem::replace(&mut self.refused, true);
        let through = self.sent.saturating_sub(1 + self.unknown);
        let end = start + WINDOW;
        if before {
            // It was on its way when another was refused.
            self.budget = self.budget.map(|budget| (budget - 1).max(1));
            self.proven = self.proven.min(self.budget.unwrap_or(1));
            self.shut = until.max(self.shut).max(Some(end + self.guard));
            return;
        }
        if through == 0 {
            // Others have used the window up, or the cloud's clock is behind ours.
            let known = self.budget.unwrap_or(self.proven);
            self.budget = Some((known / 2).max(1));
            self.guard = (self.guard * 2).min(MOST_GUARD);
            self.shut = until.or_else(|| {
                let soon = start + self.guard;
                Some(if soon > now { soon } else { end + self.guard })
            });
        } else {
            if self.whole && through >= self.proven {
                self.ceiling = through;
                self.patience = (self.patience * 2).min(8);
            }
            self.budget = Some(through);
            self.shut = until.or(Some(end + self.guard));
        }
        self.proven = self.budget.unwrap_or(1);
        self.clean = 0;
    }

    /// Goes on to the window of this time, and returns where it begins.
    fn roll(&mut self, now: i64) -> i64 {
        let start = now.div_euclid(WINDOW) * WINDOW;
        let Some(window) = self.window else {
            self.window = Some(start);
            return start;
        };
        if window == start {
            return start;
        }
        let known = self.sent.saturating_sub(self.unknown);
        let full = known > 0 && known.saturating_mul(6) >= self.proven.saturating_mul(5);
        if !self.refused {
            if known > self.proven {
                self.proven = known;
                self.patience = 1;
            }
            self.grow(full);
        }
        // The first of a window tries the limit, where the one before may have been used up by us.
        self.proving |= self.budget.is_some() && full;
        // A clock that was set back must not shut a limit for hours.
        self.shut = self.shut.filter(|shut| *shut <= now + 60 * WINDOW);
        self.window = Some(start);
        self.whole = window + WINDOW == start;
        (self.sent, self.idle, self.unknown, self.refused) = (0, 0, 0, false);
        start
    }

    /// Allows more after windows that were used in full without a refusal.
    fn grow(&mut self, full: bool) {
        let Some(budget) = self.budget.filter(|_| full) else {
            return;
        };
        self.clean += 1;
        if self.clean < self.patience {
            return;
        }
        self.clean = 0;
        let proven = self.proven;
        self.ceiling = self.ceiling.max(proven);
        let more = match proven {
            // What was possible once is taken up again fast.
            _ if proven < self.ceiling => proven.saturating_mul(2).min(self.ceiling),
            _ => proven + (proven / 8).max(1),
        };
        self.budget = Some(more.max(budget.min(more)));
    }

    /// When so many calls may have gone, counted from the start of the window: some at once, the
    /// others evenly, and what is not proven at the end.
    fn opens(&self, calls: u32, budget: u32) -> i64 {
        let proven = self.proven.min(budget);
        let burst = (proven / 6).max(1);
        if calls <= burst {
            0
        } else if calls <= proven {
            spread(calls - burst, proven - burst)
        } else if calls <= budget {
            PACED
        } else {
            WINDOW + self.guard
        }
    }

    /// When so many calls that are not urgent may have gone in any case.
    fn opens_share(&self, calls: u32) -> i64 {
        let share = self.proven / 4;
        if calls <= share {
            spread(calls, share)
        } else {
            WINDOW + self.guard
        }
    }

    /// What is kept back for urgent calls.
    fn reserve(&self) -> u32 {
        self.proven / 6
    }

    /// How many calls of the window may have been sent, and how many were let through for certain.
    #[cfg(test)]
    pub(super) fn tally(&self) -> (u32, u32) {
        (self.sent, self.sent - self.unknown)
    }

    /// What it may send in a window, once that is known.
    #[cfg(test)]
    pub(super) fn budget(&self) -> Option<u32> {
        self.budget
    }
}

/// The time of the nth of so many calls.
fn spread(nth: u32, of: u32) -> i64 {
    (i64::from(nth) * PACED).div_euclid(i64::from(of.max(1)))
}

#[cfg(test)]
mod tests;

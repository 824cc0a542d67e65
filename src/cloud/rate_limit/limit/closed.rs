//! A limit that is closed, and when it is probed.

use std::time::Duration;

use tokio::time::Instant;

use super::super::tally::Now;

/// The skew guard at the start.
pub(super) const FIRST_GUARD: Duration = Duration::from_millis(300);

/// A limit that has refused a call, or may do so because a full minute has just ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Closed {
    /// When the refused call was sent, and how many calls per second passed then.
    pub(super) sent: Now,
    pub(super) rate: Option<f64>,
    /// The minute that is used up, if it is a matter of minutes.
    pub(super) minute: i64,
    pub(super) since: Instant,
    pub(super) until: Instant,
    /// The skew guard comes on top of `until`.
    pub(super) is_guarded: bool,
    pub(super) is_certain: bool,
    pub(super) pause: Duration,
    /// Refused probes, and those of them after the minute ended.
    pub(super) probes: u32,
    pub(super) late: u32,
    /// When the probe in flight was sent.
    pub(super) probe: Option<Instant>,
}

impl Closed {
    /// The limit of a minute that has ended by our clock.
    pub(super) fn until_minute(ended: i64, now: Now) -> Self {
        let began = now.at.checked_sub(now.since_minute());
        Self {
            sent: now,
            rate: None,
            minute: ended,
            since: now.at,
            until: began.unwrap_or(now.at),
            is_guarded: true,
            is_certain: false,
            pause: FIRST_GUARD,
            probes: 0,
            late: 0,
            probe: None,
        }
    }

    /// A limit that refused this call.
    pub(super) fn by(sent: Now, now: Now, pause: Duration) -> Self {
        Self {
            sent,
            minute: sent.minute(),
            pause,
            ..Self::until_minute(0, now)
        }
    }

    /// A limit that refused a probe, too.
    pub(super) fn again(self, now: Now) -> Self {
        let is_late = now.minute() != self.minute;
        let is_first = is_late && self.late == 0;
        Self {
            probe: None,
            probes: self.probes + 1,
            late: self.late + u32::from(is_late),
            pause: if is_first {
                FIRST_GUARD
            } else {
                self.pause * 2
            },
            ..self
        }
    }

    /// When a probe may be sent.
    pub(super) fn opens(&self, guard: Duration) -> Instant {
        self.until
            + if self.is_guarded {
                guard
            } else {
                Duration::ZERO
            }
    }
}

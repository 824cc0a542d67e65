//! Whether one resource exists: states and transitions, without I/O.

use jiff::Timestamp;
use tokio::time::Instant;

use super::{ACCEPTED_TTL, CONFIRM_AFTER};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Existence {
    /// It exists, or nothing shows that it does not.
    #[default]
    Possible,
    /// The call that had to act on it named it as missing.
    NamedMissing,
    /// Reads with a canary lack it since this time.
    Missing {
        since: Instant,
    },
    Absent,
    /// The response to its deletion was lost.
    Deleting,
    /// This process deleted it. Its ID is never used again, so later rows are stale.
    Deleted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fact {
    Row,
    Missing,
    /// The call that had to act on the resource names it as missing.
    NamedMissing,
    /// The response to the deletion of a resource that this process has read was lost.
    DeletionLost,
    /// The cloud refused the deletion, so the resource exists.
    DeletionRefused,
    /// The cloud accepted the deletion of a resource that this process has read.
    Deleted,
}

/// The state of one resource, and when the cloud accepted its creation by this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Record {
    pub(super) existence: Existence,
    pub(super) accepted: Option<Instant>,
    /// The cloud's time when the request for its creation was sent.
    pub(super) requested: Option<Timestamp>,
}

impl Record {
    /// Whether the cloud accepted the creation so recently that every index may lack the resource.
    pub(super) fn may_be_hidden(self, now: Instant) -> bool {
        self.accepted.is_some_and(|at| now < at + ACCEPTED_TTL)
    }

    /// Whether a resource with this creation time, which has whole seconds, was created by the request of this process.
    /// Its token could also return one that an earlier process has created and deleted.
    pub(super) fn is_created_by(self, created: Option<Timestamp>) -> bool {
        let (created, requested) = (created.map(Timestamp::as_second), self.requested);
        created.is_some_and(|at| requested.is_some_and(|sent| at >= sent.as_second()))
    }

    pub(super) fn after(self, fact: Fact, now: Instant) -> Self {
        use Existence::{Absent, Deleted, Deleting, Missing, NamedMissing, Possible};
        let existence = match (self.existence, fact) {
            (Deleted, _) | (_, Fact::Deleted) => Deleted,
            (_, Fact::DeletionLost) => Deleting,
            (_, Fact::DeletionRefused) => Possible,
            // A row can be older than the deletion.
            (Deleting, Fact::Row) => Deleting,
            // Reads may lack a new resource.
            (Deleting, Fact::Missing) if self.may_be_hidden(now) => Deleting,
            (Deleting, Fact::Missing | Fact::NamedMissing) => Deleted,
            (_, Fact::Row) => Possible,
            (_, Fact::Missing | Fact::NamedMissing) if self.may_be_hidden(now) => Possible,
            (Absent, _) => Absent,
            (Possible, Fact::Missing) => Missing { since: now },
            (Possible | NamedMissing, Fact::NamedMissing) => NamedMissing,
            (NamedMissing, Fact::Missing) | (Missing { .. }, Fact::NamedMissing) => Absent,
            (Missing { since }, Fact::Missing) if now >= since + CONFIRM_AFTER => Absent,
            (Missing { since }, Fact::Missing) => Missing { since },
        };
        Self { existence, ..self }
    }

    pub(super) fn is_absent(self) -> bool {
        matches!(self.existence, Existence::Absent | Existence::Deleted)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn facts() -> impl Strategy<Value = Vec<(Fact, u64)>> {
        let fact = prop_oneof![
            6 => Just(Fact::Row),
            12 => Just(Fact::Missing),
            6 => Just(Fact::NamedMissing),
            1 => Just(Fact::DeletionLost),
            1 => Just(Fact::DeletionRefused),
            1 => Just(Fact::Deleted),
        ];
        proptest::collection::vec((fact, 0_u64..400), 0..12)
    }

    proptest! {
        /// The rules of the module page, written over the whole history instead of as transitions.
        #[test]
        fn absence_follows_from_the_history_of_facts(facts in facts(), is_accepted: bool) {
            let start = Instant::now();
            let accepted = is_accepted.then_some(start);
            let mut record = Record { accepted, ..Record::default() };
            let mut history: Vec<(Fact, u64)> = Vec::new();
            let mut second = 0;
            for (fact, pause) in facts {
                second += pause;
                record = record.after(fact, start + Duration::from_secs(second));
                history.push((fact, second));
                prop_assert_eq!(record.is_absent(), is_absent(&history, is_accepted), "{:?}", history);
            }
        }
    }

    /// The same rules over the whole history.
    fn is_absent(history: &[(Fact, u64)], is_accepted: bool) -> bool {
        let at = |wanted: Fact| history.iter().position(|(fact, _)| *fact == wanted);
        let names = |(fact, at): &(Fact, u64)| match fact {
            Fact::Missing => !is_accepted || *at >= 600,
            fact => *fact == Fact::NamedMissing,
        };
        if at(Fact::Deleted).is_some() {
            return true;
        }
        // Once missing after a lost deletion, it stays deleted.
        let mut is_lost = false;
        for (position, (fact, _)) in history.iter().enumerate() {
            match fact {
                Fact::DeletionLost => is_lost = true,
                Fact::DeletionRefused => is_lost = false,
                _ if is_lost && names(&history[position]) => return true,
                _ => {}
            }
        }
        if is_lost {
            return false;
        }
        let exists = |fact| matches!(fact, Fact::Row | Fact::DeletionRefused);
        let last_row = history.iter().rposition(|(fact, _)| exists(*fact));
        let since_row = &history[last_row.map_or(0, |at| at + 1)..];
        let times = |wanted: Fact| {
            let of = since_row
                .iter()
                .filter(|(fact, at)| *fact == wanted && (!is_accepted || *at >= 600));
            of.map(|(_, at)| *at).collect::<Vec<_>>()
        };
        let (missing, named) = (times(Fact::Missing), times(Fact::NamedMissing));
        let is_confirmed = missing.first().zip(missing.last()).is_some_and(|(a, b)| b - a >= 60);
        is_confirmed || !named.is_empty() && !missing.is_empty()
    }

    #[tokio::test(start_paused = true)]
    async fn accepted_resource_is_not_absent_for_ten_minutes_whatever_the_cloud_says() {
        let start = Instant::now();
        let mut record = Record {
            accepted: Some(start),
            ..Record::default()
        };
        for second in (0..600).step_by(61) {
            let now = start + Duration::from_secs(second);
            record = record.after(Fact::Missing, now).after(Fact::NamedMissing, now);
            assert!(!record.is_absent(), "{second} s");
        }
        let later = start + ACCEPTED_TTL;
        record = record.after(Fact::Missing, later);
        assert!(!record.is_absent());
        assert!(record.after(Fact::Missing, later + CONFIRM_AFTER).is_absent());
    }
}

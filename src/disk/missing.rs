//! When to believe that something which descriptions do not show is really not there.

use std::fmt::{Debug, Display};
use std::sync::Arc;
use std::time::Duration;

use crate::base::Deadline;
use crate::cloud::poll::{Seen, WaitError, Watch};

/// So many looks in a row must agree: a single one may come from a replica that lags.
pub(super) const LOOKS_TO_BELIEVE: u32 = 4;

/// How long what is new may be missing from a description (eventual consistency). Believing "not
/// there" any sooner would leave something behind that nobody deletes.
const LAG: Duration = Duration::from_secs(3);

/// How long what the cloud says it made may be missing from every description. Believing that it is
/// gone any sooner would make a second one.
const UNSEEN: Duration = Duration::from_secs(10);

/// The looks after something that the cloud says it made.
#[derive(Debug)]
pub(super) struct Missing {
    unseen: Deadline,
    /// How many looks in a row have missed what was seen before.
    looks: Option<u32>,
}

impl Missing {
    pub(super) fn new() -> Self {
        Self {
            unseen: Deadline::after(UNSEEN),
            looks: None,
        }
    }

    /// A look has shown it.
    pub(super) fn shown(&mut self) {
        self.looks = Some(0);
    }

    /// A look has not; true once it can be believed that it is gone.
    pub(super) fn missed(&mut self) -> bool {
        self.looks = self.looks.map(|looks| looks + 1);
        match self.looks {
            Some(looks) => looks >= LOOKS_TO_BELIEVE,
            None => self.unseen.is_over(),
        }
    }
}

/// The row, or none once that can be believed.
pub(super) async fn settled<K, V>(
    watch: &Watch<K, V>,
    key: &K,
    deadline: Deadline,
) -> Result<Option<Arc<V>>, WaitError>
where
    K: Clone + Ord + Debug + Send + Sync + 'static,
    V: Display + Send + Sync + 'static,
{
    let row = watch.look(key, deadline).await?;
    if row.is_some() {
        return Ok(row);
    }
    let believed = Deadline::after(LAG);
    let until = |seen| match seen {
        Seen::Row(row) => Some(Some(row)),
        Seen::Nothing => believed.is_over().then_some(None),
        Seen::Failed(_) => None,
    };
    watch.until(key, deadline, until).await
}

//! Reads by tags: the tag index lags behind the resources.

use std::future::Future;
use std::time::Duration;

use super::Result;
use crate::base::Deadline;
use crate::cloud::{self, Kind, Page};

/// How often the tags are looked at before a token that was used otherwise is given up.
const LOOKS_FOR_LAGGING_TAGS: u32 = 5;

/// Looks again until the tag index has had time to catch up.
pub(super) async fn lagging<T, F>(
    deadline: Deadline,
    mut find: impl FnMut() -> F,
) -> Result<Option<T>>
where
    F: Future<Output = Result<Option<T>>>,
{
    for look in 0..LOOKS_FOR_LAGGING_TAGS {
        let found = find().await?;
        if found.is_some() {
            return Ok(found);
        }
        let pause = Duration::from_millis(500) * (look + 1);
        let _ = deadline.bound(tokio::time::sleep(pause)).await;
    }
    Ok(None)
}

/// A row that carries the tags and makes no sense is still what the name has: making another one
/// would leave this one behind.
pub(super) fn readable<T>(page: &Page<T>, action: &'static str) -> cloud::Result<()> {
    match page.unreadable.first() {
        None => Ok(()),
        Some(row) => Err(cloud::Error::new(Kind::Ambiguous, action).with_source(row.clone())),
    }
}

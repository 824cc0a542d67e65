//! One describe call for many ids, and the calls that replace it when the cloud rejects one of them.

use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::base::Deadline;
use crate::cloud::Result;
use crate::cloud::action::{Page, Unreadable};
use crate::cloud::error::{Error, Kind};

/// Most rejected calls of one poll. A batch that is still rejected then fails as a whole.
const REJECTIONS: usize = 16;

type Describe<K, V> = dyn Fn(Vec<K>, Deadline) -> BoxFuture<Result<Found<K, V>>> + Send + Sync;
pub(super) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// How resources of one kind are described.
pub(super) struct Source<K, V> {
    /// Resolves when a call would be sent at once, to the time between two calls that the quota permits.
    pub(super) ready: Box<dyn Fn(Deadline) -> BoxFuture<Duration> + Send + Sync>,
    pub(super) describe: Box<Describe<K, V>>,
    /// Most ids of a call.
    pub(super) ids: usize,
}

/// What one response says of the ids in the request.
#[derive(Debug)]
pub(super) struct Found<K, V> {
    pub(super) rows: Vec<(K, V)>,
    /// Rows that cannot be parsed, each with its action.
    pub(super) unreadable: Vec<(&'static str, Unreadable)>,
}

impl<K, V> Found<K, V> {
    pub(super) fn new(action: &'static str, page: Page<V>, key: impl Fn(&V) -> K) -> Self {
        let rows = page.rows.into_iter().map(|row| (key(&row), row));
        let unreadable = page.unreadable.into_iter().map(|row| (action, row));
        Self {
            rows: rows.collect(),
            unreadable: unreadable.collect(),
        }
    }

    /// The error for an id that has no row because its row, or one without an id, cannot be parsed.
    pub(super) fn unreadable(&self, key: &impl Display) -> Option<Error> {
        let key = key.to_string();
        let mut rows = self.unreadable.iter();
        let (action, row) = rows.find(|(_, row)| row.id.as_ref().is_none_or(|id| *id == key))?;
        Some(Error::new(Kind::Ambiguous, action).with_source(row.clone()))
    }
}

impl<K: Clone, V> Source<K, V> {
    /// Describes the ids. If the cloud rejects a batch because of one of them, halves are described, so that the others
    /// have their answer.
    pub(super) async fn describe(
        &self,
        keys: Vec<K>,
        deadline: Deadline,
        mut deliver: impl FnMut(&[K], Result<Found<K, V>>),
    ) {
        let mut batches = vec![keys];
        let mut rejections = 0;
        while let Some(mut keys) = batches.pop() {
            let outcome = (self.describe)(keys.clone(), deadline).await;
            let is_rejected = outcome.as_ref().is_err_and(is_about_ids);
            if is_rejected && keys.len() > 1 && rejections < REJECTIONS {
                rejections += 1;
                batches.push(keys.split_off(keys.len() / 2));
                batches.push(keys);
            } else {
                deliver(&keys, outcome);
            }
        }
    }
}

/// Whether the cloud may have rejected the request because of a single id.
fn is_about_ids(error: &Error) -> bool {
    let kinds = [
        Kind::Bug,
        Kind::Invalid,
        Kind::NotFound,
        Kind::OutOfRange,
        Kind::Precondition,
    ];
    error.is_about_value() && kinds.contains(&error.kind())
}

//! The describe calls for resources of one kind: one call for many ids, and smaller calls if the cloud rejects one id.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::Result;
use crate::action::Page;
use crate::base::Deadline;
use crate::error::{Error, Kind};

/// Most rejected calls of one poll. A batch that is still rejected then fails as a whole.
const REJECTIONS: usize = 64;

pub(super) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
/// A call of the cloud with the first parameter.
pub(super) type DescribePage<P, T> = Box<dyn Fn(P, Deadline) -> BoxFuture<T> + Send + Sync>;

/// The shortest and the longest time between two observations of [`super::PollMode::Change`].
pub(super) type Interval = (Duration, Duration);
pub(super) const INTERVAL: Interval = (Duration::from_millis(400), Duration::from_secs(2));

/// The calls for resources of one kind.
pub(super) struct Source<K, V> {
    /// The describe action, which is also the name of its permission.
    pub(super) action: &'static str,
    pub(super) max_ids: usize,
    pub(super) interval: Interval,
    pub(super) id: fn(&V) -> K,
    /// Resolves when a call would be sent immediately, to the time between two calls that the quota permits; to none if
    /// no call can be sent before the deadline.
    pub(super) ready: Box<dyn Fn(Deadline) -> BoxFuture<Option<Duration>> + Send + Sync>,
    pub(super) page: DescribePage<Vec<K>, Result<Page<V>>>,
    /// Whether the row must be visible to every access key of this cluster.
    pub(super) is_canary: Box<dyn Fn(&V) -> bool + Send + Sync>,
    /// A number that changes with the access key.
    pub(super) key: Box<dyn Fn() -> u64 + Send + Sync>,
}

impl<K: Clone, V> Source<K, V> {
    /// Describes the ids. If the cloud rejects a batch because of one of them, the batch is split
    /// in halves, so that the others are described.
    pub(super) async fn describe(
        &self,
        ids: Vec<K>,
        deadline: Deadline,
        mut deliver: impl FnMut(&[K], Result<Page<V>>),
    ) {
        let mut batches = vec![ids];
        let mut rejections = 0;
        while let Some(mut ids) = batches.pop() {
            let page = (self.page)(ids.clone(), deadline).await;
            let is_rejected = page.as_ref().is_err_and(is_about_ids);
            if is_rejected && ids.len() > 1 && rejections < REJECTIONS {
                rejections += 1;
                batches.push(ids.split_off(ids.len() / 2));
                batches.push(ids);
            } else {
                deliver(&ids, page);
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

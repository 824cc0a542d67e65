//! Following all objects of a kind, for as long as the process runs.

use std::fmt::Debug;
use std::pin::pin;

use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio_stream::StreamExt;

use super::error::code;
use crate::base::error_chain;

/// Objects per page of a list, which limits the memory of parsing.
const PAGE: u32 = 200;

#[derive(Debug)]
pub(super) enum WatchEvent<K> {
    /// All objects: others no longer exist.
    All(Vec<(String, K)>),
    /// A new or changed object.
    Applied(String, K),
    Deleted(String),
}

impl<K> WatchEvent<K> {
    /// An object without the required fields counts as deleted.
    pub(super) fn applied(name: String, kept: Option<K>) -> Self {
        match kept {
            Some(kept) => Self::Applied(name, kept),
            None => Self::Deleted(name),
        }
    }
}

/// Reports all objects, then each change. `keep` extracts the required fields; the rest is dropped immediately. An
/// unavailable API server is retried with backoff up to 30 s; start and end of the outage are logged once.
pub(super) async fn follow<K, T>(
    what: &'static str,
    api: Api<K>,
    keep: impl Fn(&K) -> Option<T> + Send,
    mut apply: impl FnMut(WatchEvent<T>) + Send,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    T: Send,
{
    let config = watcher::Config::default().page_size(PAGE);
    let mut events = pin!(watcher(api, config).default_backoff());
    let mut all = Vec::new();
    let mut lost = false;
    while let Some(event) = events.next().await {
        match event {
            Err(error) => {
                if !std::mem::replace(&mut lost, true) {
                    tracing::warn!(
                        what,
                        "{}: using the last known state until they can be watched again{}",
                        error_chain(&error),
                        advice(&error)
                    );
                }
                continue;
            }
            Ok(Event::Init) => {
                all.clear();
                // The list is not complete yet.
                continue;
            }
            Ok(Event::InitApply(object)) => {
                all.extend(keep(&object).map(|kept| (object.name_any(), kept)));
                continue;
            }
            Ok(Event::InitDone) => apply(WatchEvent::All(std::mem::take(&mut all))),
            Ok(Event::Apply(object)) => apply(WatchEvent::applied(object.name_any(), keep(&object))),
            Ok(Event::Delete(object)) => apply(WatchEvent::Deleted(object.name_any())),
        }
        if std::mem::replace(&mut lost, false) {
            tracing::info!(what, "they can be watched again");
        }
    }
}

/// Advice; none for failures that only the API server can resolve.
fn advice(error: &watcher::Error) -> &'static str {
    let refused = match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => code(error),
        watcher::Error::WatchError(status) => Some(status.code),
        watcher::Error::NoResourceVersion => None,
    };
    match refused {
        Some(401) => {
            "; the API server does not accept the token: check the node's clock, and that the pod's ServiceAccount exists"
        }
        Some(403) => "; grant the ServiceAccount list and watch of them (docs/reference/kubernetes-rights.md)",
        Some(_) => "",
        None => "; check that the API server is reachable from this pod (`networkPolicy.apiPorts` of the chart)",
    }
}

//! Following all objects of a kind, for as long as the process runs.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::pin::pin;

use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio_stream::StreamExt;

use super::error::code;
use crate::base::error_chain;

/// Objects per page of a list, which limits the memory of parsing.
const PAGE: u32 = 200;

/// The required fields of all objects of a kind, by name; none until the first list is complete.
pub(super) type Objects<T> = Option<BTreeMap<String, T>>;

/// Keeps the objects up to date. `keep` extracts the required fields; the rest is dropped immediately, and an object
/// without them counts as deleted. An unavailable API server is retried with backoff up to 30 s; start and end of the
/// outage are logged once.
pub(super) async fn follow<K, T>(
    what: &'static str,
    api: Api<K>,
    keep: impl Fn(&K) -> Option<T> + Send,
    known: watch::Sender<Objects<T>>,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    T: PartialEq + Send + Sync,
{
    let config = watcher::Config::default().page_size(PAGE);
    let mut events = pin!(watcher(api, config).default_backoff());
    let mut all = BTreeMap::new();
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
            Ok(Event::InitDone) => replace(&known, std::mem::take(&mut all)),
            Ok(Event::Apply(object)) => set(&known, object.name_any(), keep(&object)),
            Ok(Event::Delete(object)) => set(&known, object.name_any(), None),
        }
        if std::mem::replace(&mut lost, false) {
            tracing::info!(what, "they can be watched again");
        }
    }
}

/// Replaces all objects, and notifies subscribers if that changes them.
pub(super) fn replace<T: PartialEq>(known: &watch::Sender<Objects<T>>, all: BTreeMap<String, T>) {
    known.send_if_modified(|known| known.replace(all) != *known);
}

/// Replaces or removes an object, and notifies subscribers if that changes it.
pub(super) fn set<T: PartialEq>(known: &watch::Sender<Objects<T>>, name: String, object: Option<T>) {
    known.send_if_modified(|known| {
        let known = known.get_or_insert_default();
        let is_new = known.get(&name) != object.as_ref();
        match object {
            Some(object) => known.insert(name, object),
            None => known.remove(&name),
        };
        is_new
    });
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

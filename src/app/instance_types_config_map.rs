//! Publishes the attachment limits of the instance types of the cluster's nodes in the ConfigMap that node pods mount.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::base::error_chain;
use crate::base::{Clock, Deadline};
use crate::cluster::instance_types::{InstanceTypesConfigMap, PublishedLimits};
use crate::cluster::nodes::Nodes;
use crate::disk::DiskServices;
use crate::model::InstanceId;
use crate::model::instance_types::InstanceTypes;

/// Interval of checks without a change of nodes.
const CHECK_INTERVAL: Duration = Duration::from_mins(10);

/// First pause after a failure; it doubles with each further failure, up to [`CHECK_INTERVAL`].
const RETRY_PAUSE: Duration = Duration::from_secs(15);

/// How long to collect further changes: nodes usually appear in groups.
const BATCH_WINDOW: Duration = Duration::from_millis(500);

/// Timeout of a cloud request.
const CLOUD_TIMEOUT: Duration = Duration::from_mins(2);

/// Maximum age of published limits: types rarely change, and a restart of the controller requests nothing.
const MAX_AGE: SignedDuration = SignedDuration::from_hours(12);

/// Keeps the ConfigMap up to date while the process runs.
pub(super) async fn publish(
    disks: Arc<DiskServices>,
    clock: Arc<dyn Clock>,
    mut nodes: Nodes,
    facts: InstanceTypesConfigMap,
) {
    let mut publisher = Publisher {
        disks,
        clock,
        instance_types: BTreeMap::new(),
        unknown: BTreeMap::new(),
    };
    let mut failures = 0;
    loop {
        match publisher.round(&nodes, &facts).await {
            Ok(()) => {
                if std::mem::take(&mut failures) > 0 {
                    tracing::info!("attachment limits of instance types are published again");
                }
            }
            Err(error) => {
                if failures == 0 {
                    tracing::warn!("attachment limits of some instance types are not published, retrying: {error}");
                }
                failures += 1;
            }
        }
        tokio::select! {
            // After a failure an immediate retry would probably fail too.
            () = nodes.changed() => tokio::time::sleep(if failures > 0 { RETRY_PAUSE } else { BATCH_WINDOW }).await,
            () = tokio::time::sleep(pause(failures)) => {}
        }
    }
}

/// The pause after this number of consecutive failures.
fn pause(failures: u32) -> Duration {
    match failures {
        0 => CHECK_INTERVAL,
        more => CHECK_INTERVAL.min(RETRY_PAUSE.saturating_mul(2_u32.saturating_pow(more - 1))),
    }
}

struct Publisher {
    disks: Arc<DiskServices>,
    clock: Arc<dyn Clock>,
    /// Types of instances whose Node has no instance type label.
    instance_types: BTreeMap<InstanceId, String>,
    /// Types and instances for which the cloud has not reported limits, categories or a type, with the time of the
    /// request: the next one is due after [`CHECK_INTERVAL`].
    unknown: BTreeMap<String, Instant>,
}

impl Publisher {
    /// Requests the limits that are not published, or all of them if they are outdated. The results of successful
    /// requests are published even if others fail.
    async fn round(&mut self, nodes: &Nodes, facts: &InstanceTypesConfigMap) -> Result<(), String> {
        let (mut wanted, untyped) = (nodes.types(), nodes.untyped());
        wanted.extend(self.instance_types.values().cloned());
        prune(&mut self.unknown, &wanted, &untyped);
        let described = self.describe_instances(&untyped).await;
        wanted.extend(self.instance_types.values().cloned());
        let published = match wanted.is_empty() {
            true => Ok(()),
            false => self.publish(wanted, facts).await,
        };
        published.and(described)
    }

    async fn publish(&mut self, wanted: BTreeSet<String>, facts: &InstanceTypesConfigMap) -> Result<(), String> {
        let published = facts.read().await.map_err(|error| error_chain(&error))?;
        let is_outdated = is_outdated(&published, self.clock.now());
        let names = match is_outdated {
            true => wanted
                .into_iter()
                .chain(published.document.types().0.keys().cloned())
                .collect(),
            false => self.missing(wanted, published.document.types()),
        };
        if names.is_empty() {
            return Ok(());
        }
        let deadline = Deadline::after(CLOUD_TIMEOUT);
        let (types, error) = self.disks.instance_types.attach_limits(deadline, &names).await;
        self.note_unknown(&names, &types, error.is_some());
        let failed = error.map_or(Ok(()), |error| Err(error_chain(&error)));
        let now = (is_outdated && failed.is_ok()).then(|| self.clock.now());
        if types.0.is_empty() && now.is_none() {
            return failed;
        }
        let published = facts.add(&types, now).await.map_err(|error| error_chain(&error))?;
        let names: Vec<&str> = types.0.keys().map(String::as_str).collect();
        tracing::info!(
            requested = names.join(","),
            known = published.document.types().0.len(),
            "attachment limits of instance types published"
        );
        failed
    }

    /// Requests the types of instances, once for each instance.
    async fn describe_instances(&mut self, untyped: &BTreeSet<InstanceId>) -> Result<(), String> {
        self.instance_types.retain(|id, _| untyped.contains(id));
        let new = untyped.iter().filter(|id| !self.instance_types.contains_key(*id));
        let new: BTreeSet<InstanceId> = new
            .filter(|id| !self.unknown.contains_key(id.as_str()))
            .cloned()
            .collect();
        if new.is_empty() {
            return Ok(());
        }
        let deadline = Deadline::after(CLOUD_TIMEOUT);
        let (types, error) = self.disks.instance_types.types_of_instances(deadline, &new).await;
        self.instance_types.extend(types);
        if let Some(error) = error {
            return Err(error_chain(&error));
        }
        let missing = new.iter().filter(|id| !self.instance_types.contains_key(*id));
        let now = Instant::now();
        self.unknown.extend(missing.map(|id| (id.to_string(), now)));
        Ok(())
    }

    /// Types that are not published, or only without categories, and due for a request.
    fn missing(&self, mut wanted: BTreeSet<String>, published: &InstanceTypes) -> BTreeSet<String> {
        wanted.retain(|name| !has_categories(published, name) && !self.unknown.contains_key(name));
        wanted
    }

    /// `failed`: some requests had no response.
    fn note_unknown(&mut self, queried: &BTreeSet<String>, types: &InstanceTypes, failed: bool) {
        let now = Instant::now();
        for name in queried.iter().filter(|name| !has_categories(types, name)) {
            match types.0.contains_key(name) {
                false if failed => continue,
                false => tracing::warn!(
                    instance_type = name,
                    "the cloud reports no disk limit for this instance type"
                ),
                true => {}
            }
            self.unknown.insert(name.clone(), now);
        }
    }
}

fn has_categories(types: &InstanceTypes, name: &str) -> bool {
    types.0.get(name).is_some_and(|limits| !limits.categories.is_empty())
}

/// Removes entries that are not needed any more or are due again.
fn prune(unknown: &mut BTreeMap<String, Instant>, types: &BTreeSet<String>, instances: &BTreeSet<InstanceId>) {
    unknown.retain(|name, queried_at| {
        let is_wanted = types.contains(name) || instances.iter().any(|id| id.as_str() == name);
        is_wanted && queried_at.elapsed() < CHECK_INTERVAL
    });
}

/// Whether all limits must be requested again. Times in the future, of a wrong clock, are outdated too.
fn is_outdated(published: &PublishedLimits, now: Timestamp) -> bool {
    let age = published.queried_at.map(|queried_at| now.duration_since(queried_at));
    age.is_none_or(|age| age >= MAX_AGE || age.is_negative())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::instance_types::Document;

    #[tokio::test(start_paused = true)]
    async fn entries_that_are_unneeded_or_due_again_are_removed() {
        let now = Instant::now();
        let names = ["ecs.a", "ecs.gone", "i-1", "i-gone"];
        let mut unknown = names.map(|name| (name.to_owned(), now)).into();
        let types = BTreeSet::from(["ecs.a".to_owned(), "ecs.b".to_owned()]);
        let instances = BTreeSet::from(["i-1".parse().unwrap()]);
        prune(&mut unknown, &types, &instances);
        assert_eq!(unknown.keys().collect::<Vec<_>>(), ["ecs.a", "i-1"]);
        tokio::time::advance(CHECK_INTERVAL).await;
        prune(&mut unknown, &types, &instances);
        assert!(unknown.is_empty());
    }

    #[test]
    fn the_pause_grows_with_failures_up_to_the_check_interval() {
        let seconds = [1, 2, 3, 6, 7, 40, u32::MAX, 0].map(|failures| pause(failures).as_secs());
        assert_eq!(seconds, [15, 30, 60, 480, 600, 600, 600, 600]);
    }

    #[test]
    fn limits_older_than_12_hours_or_from_the_future_are_outdated() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        for (queried_at, old) in [
            (None, true),
            (Some(now), false),
            (Some(now - SignedDuration::from_hours(11)), false),
            (Some(now - SignedDuration::from_hours(13)), true),
            (Some(now + SignedDuration::from_hours(1)), true),
        ] {
            let document = Document::default();
            assert_eq!(
                is_outdated(&PublishedLimits { document, queried_at }, now),
                old,
                "{queried_at:?}"
            );
        }
    }
}

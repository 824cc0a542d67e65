//! What the instance types of the cluster's nodes take, from the cloud into the ConfigMap that their pods mount.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::base::chain::chain;
use crate::base::{Clock, Deadline};
use crate::cluster::facts::{Facts, Said};
use crate::cluster::nodes::Nodes;
use crate::disk::DiskServices;
use crate::disk::Partly;
use crate::model::InstanceId;
use crate::model::instance_types::InstanceTypes;

/// How often it is looked whether all is still there, when nothing happens.
const PERIOD: Duration = Duration::from_mins(10);

/// How soon it is tried again after a failure, twice as late after each further one, up to [`PERIOD`].
const AGAIN: Duration = Duration::from_secs(15);

/// How long further changes are waited for: nodes come in groups.
const GATHER: Duration = Duration::from_millis(500);

/// How long one question to the cloud may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// How old the answers may be: types hardly ever change, and a restart of the controller asks nothing anew.
const OLD: SignedDuration = SignedDuration::from_hours(12);

/// Keeps the ConfigMap as it should be, for as long as the process runs.
pub(super) async fn keep(
    disks: Arc<DiskServices>,
    clock: Arc<dyn Clock>,
    mut nodes: Nodes,
    facts: Facts,
) {
    let mut asker = Asker {
        disks,
        clock,
        of: BTreeMap::new(),
        unknown: BTreeMap::new(),
    };
    let mut failures = 0;
    loop {
        match asker.round(&nodes, &facts).await {
            Ok(()) => {
                if std::mem::take(&mut failures) > 0 {
                    tracing::info!("what instance types take is published again");
                }
            }
            Err(error) => {
                if failures == 0 {
                    tracing::warn!(
                        "what instance types take is not published, or not all: {error}; it is tried again"
                    );
                }
                failures += 1;
            }
        }
        tokio::select! {
            // After a failure the same may only fail again.
            () = nodes.changed() => tokio::time::sleep(if failures > 0 { AGAIN } else { GATHER }).await,
            () = tokio::time::sleep(pause(failures)) => {}
        }
    }
}

/// How long to wait after so many failures in a row.
fn pause(failures: u32) -> Duration {
    match failures {
        0 => PERIOD,
        more => PERIOD.min(AGAIN.saturating_mul(2_u32.saturating_pow(more - 1))),
    }
}

struct Asker {
    disks: Arc<DiskServices>,
    clock: Arc<dyn Clock>,
    /// The types of instances whose Node does not say it.
    of: BTreeMap<InstanceId, String>,
    /// Types and instances of which the cloud says nothing, or not all, and when it was asked.
    unknown: BTreeMap<String, Instant>,
}

impl Asker {
    /// Asks the cloud for what is not published yet, and for all of it where that is old. What one question gives is published
    /// also where another fails.
    async fn round(&mut self, nodes: &Nodes, facts: &Facts) -> Result<(), String> {
        let mut wanted = nodes.types();
        let untyped = nodes.untyped();
        let unasked = self.ask_for(&untyped).await;
        wanted.extend(self.of.values().cloned());
        prune(&mut self.unknown, &wanted, &untyped);
        let published = match wanted.is_empty() {
            true => Ok(()),
            false => self.publish(wanted, facts).await,
        };
        published.and(unasked)
    }

    async fn publish(&mut self, wanted: BTreeSet<String>, facts: &Facts) -> Result<(), String> {
        let said = facts.read().await.map_err(|error| chain(&error))?;
        let old = is_old(&said, self.clock.now());
        let names = match old {
            true => wanted
                .into_iter()
                .chain(said.document.types().0.keys().cloned())
                .collect(),
            false => self.missing(wanted, said.document.types()),
        };
        if names.is_empty() {
            return Ok(());
        }
        let deadline = Deadline::after(PATIENCE);
        let Partly {
            found: types,
            failed,
        } = self.disks.instance_types.limits_of(deadline, &names).await;
        self.note_unknown(&names, &types, failed.is_some());
        let failed = failed.map_or(Ok(()), |error| Err(chain(&error)));
        let now = (old && failed.is_ok()).then(|| self.clock.now());
        if types.0.is_empty() && now.is_none() {
            return failed;
        }
        let said = facts
            .add(&types, now)
            .await
            .map_err(|error| chain(&error))?;
        let names: Vec<&str> = types.0.keys().map(String::as_str).collect();
        tracing::info!(
            asked = names.join(","),
            known = said.document.types().0.len(),
            "what instance types take is published"
        );
        failed
    }

    /// Asks for the types of instances, for each once.
    async fn ask_for(&mut self, untyped: &BTreeSet<InstanceId>) -> Result<(), String> {
        self.of.retain(|id, _| untyped.contains(id));
        let new = untyped.iter().filter(|id| !self.of.contains_key(*id));
        let new: BTreeSet<InstanceId> =
            new.filter(|id| self.is_due(id.as_str())).cloned().collect();
        if new.is_empty() {
            return Ok(());
        }
        let types = self
            .disks
            .instance_types
            .of_instances(Deadline::after(PATIENCE), &new)
            .await;
        self.of.extend(types.found);
        if let Some(error) = types.failed {
            return Err(chain(&error));
        }
        let silent = new.iter().filter(|id| !self.of.contains_key(*id));
        let now = Instant::now();
        self.unknown.extend(silent.map(|id| (id.to_string(), now)));
        Ok(())
    }

    /// Those that are not published, or not with all that there is to know. What the cloud could not say is asked again
    /// after a while.
    fn missing(&self, wanted: BTreeSet<String>, published: &InstanceTypes) -> BTreeSet<String> {
        let is_missing = |name: &String| {
            let takes = published.0.get(name);
            takes.is_none_or(|takes| takes.categories.is_empty())
        };
        let wanted = wanted.into_iter();
        let missing = wanted.filter(|name| is_missing(name) && self.is_due(name));
        missing.collect()
    }

    /// Whether it may be asked for; not when the cloud has just had no answer.
    fn is_due(&self, about: &str) -> bool {
        let asked = self.unknown.get(about);
        asked.is_none_or(|asked| asked.elapsed() >= PERIOD)
    }

    /// `failed` says that not all were answered.
    fn note_unknown(&mut self, asked: &BTreeSet<String>, types: &InstanceTypes, failed: bool) {
        let now = Instant::now();
        for name in asked {
            match types.0.get(name) {
                Some(takes) if !takes.categories.is_empty() => {
                    self.unknown.remove(name);
                }
                Some(_) => {
                    self.unknown.insert(name.clone(), now);
                }
                None if failed => {}
                None => {
                    tracing::warn!(
                        instance_type = name,
                        "the cloud does not say how many disks it takes"
                    );
                    self.unknown.insert(name.clone(), now);
                }
            }
        }
    }
}

/// Forgets what nobody wants to know any more, or may be asked for again anyway.
fn prune(
    unknown: &mut BTreeMap<String, Instant>,
    types: &BTreeSet<String>,
    instances: &BTreeSet<InstanceId>,
) {
    unknown.retain(|about, asked| {
        let is_wanted = types.contains(about) || instances.iter().any(|id| id.as_str() == about);
        is_wanted && asked.elapsed() < PERIOD
    });
}

/// Whether the cloud should be asked for all of it again. Times of a clock that was wrong are old too.
fn is_old(said: &Said, now: Timestamp) -> bool {
    let age = said.asked.map(|asked| now.duration_since(asked));
    age.is_none_or(|age| age >= OLD || age.is_negative())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::instance_types::Document;

    #[tokio::test(start_paused = true)]
    async fn what_nobody_wants_or_may_be_asked_again_is_forgotten() {
        let now = Instant::now();
        let names = ["ecs.a", "ecs.gone", "i-1", "i-gone"];
        let mut unknown = names.map(|name| (name.to_owned(), now)).into();
        let types = BTreeSet::from(["ecs.a".to_owned(), "ecs.b".to_owned()]);
        let instances = BTreeSet::from(["i-1".parse().unwrap()]);
        prune(&mut unknown, &types, &instances);
        assert_eq!(unknown.keys().collect::<Vec<_>>(), ["ecs.a", "i-1"]);
        tokio::time::advance(PERIOD).await;
        prune(&mut unknown, &types, &instances);
        assert!(unknown.is_empty());
    }

    #[test]
    fn the_pause_grows_with_failures_up_to_that_without_any() {
        let seconds = [1, 2, 3, 6, 7, 40, u32::MAX, 0].map(|failures| pause(failures).as_secs());
        assert_eq!(seconds, [15, 30, 60, 480, 600, 600, 600, 600]);
    }

    #[test]
    fn answers_of_half_a_day_ago_or_of_the_future_are_old() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        for (asked, old) in [
            (None, true),
            (Some(now), false),
            (Some(now - SignedDuration::from_hours(11)), false),
            (Some(now - SignedDuration::from_hours(13)), true),
            (Some(now + SignedDuration::from_hours(1)), true),
        ] {
            let document = Document::default();
            assert_eq!(is_old(&Said { document, asked }, now), old, "{asked:?}");
        }
    }
}

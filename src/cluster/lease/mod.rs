//! Leader election: a Lease decides which replica of the controller is active.
//!
//! A replica takes the Lease if it has no holder, or if it has not changed for the duration that its holder stated.
//! This duration is measured with the machine's monotonic clock from the moment that the change was read: wall clocks,
//! which differ between machines, are written for operators and never compared. The holder stops when it could not
//! renew for the renew deadline, which is shorter, so that there are never two holders. Each write names the version
//! that it replaces. This is the protocol of client-go, whose tools can show the Lease.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::error::code;
use super::{Cluster, Error, Result};
use crate::base::{Clock, Deadline, SystemClock, error_chain};

/// Timeout of the release of the Lease. Without a release, the next holder waits until the Lease expires.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Debug, Clone)]
pub struct LeaseConfig {
    pub namespace: String,
    pub name: String,
    /// The name of this replica: no other replica has it.
    pub identity: String,
    /// How long an unchanged Lease is respected.
    pub duration: Duration,
    /// How long the holder remains active without a successful renewal. Shorter than `duration`.
    pub renew_deadline: Duration,
    /// The time between two attempts to take or renew the Lease.
    pub retry_period: Duration,
}

/// The role of this replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leadership {
    /// Waiting for the Lease: who holds it, or why it could not be read or written.
    Standby(std::result::Result<Option<String>, String>),
    Leader,
}

/// The Lease is held by another replica, or may be soon.
#[derive(Debug, thiserror::Error)]
#[error("leader election lost, so this replica exits: Lease {0}")]
pub struct LeaseLost(String);

/// A replica that waits for the Lease.
#[derive(Debug)]
pub struct Candidate {
    api: Api<Lease>,
    config: LeaseConfig,
    /// The version of the Lease that was read last, and until when it is respected.
    observed: Option<(Option<String>, Instant)>,
    leadership: watch::Sender<Leadership>,
}

#[derive(Debug)]
pub struct HeldLease {
    candidate: Candidate,
    lease: Lease,
    /// The start of the last successful write.
    renewed: Instant,
}

impl Candidate {
    pub fn new(cluster: &Cluster, config: LeaseConfig) -> Self {
        Self::of(cluster.client(), config)
    }

    fn of(client: Client, config: LeaseConfig) -> Self {
        Self {
            api: Api::namespaced(client, &config.namespace),
            config,
            observed: None,
            leadership: watch::Sender::new(Leadership::Standby(Ok(None))),
        }
    }

    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.leadership.subscribe()
    }

    /// Waits until this replica holds the Lease.
    pub async fn acquire(mut self) -> HeldLease {
        loop {
            let start = Instant::now();
            match self.attempt().await {
                Ok(Some(lease)) => {
                    tracing::info!(lease = self.display(), "this replica is the leader");
                    self.leadership.send_replace(Leadership::Leader);
                    return HeldLease {
                        candidate: self,
                        lease,
                        renewed: start,
                    };
                }
                Ok(None) => {}
                Err(error) => self.wait_as(Err(error_chain(&error))),
            }
            let retry = start + self.config.retry_period;
            let expiry = self.observed.as_ref().map(|(_, expiry)| *expiry);
            let expiry = expiry.filter(|expiry| *expiry > Instant::now());
            sleep_until(expiry.map_or(retry, |expiry| expiry.min(retry))).await;
        }
    }

    /// Takes the Lease if it is free.
    async fn attempt(&mut self) -> Result<Option<Lease>> {
        let found = self.call("read", self.api.get(&self.config.name)).await?;
        let Some(found) = found else {
            // The holder of a deleted Lease may not have noticed.
            return match self.is_respected() {
                true => Ok(None),
                false => self.write(self.claimed(Lease::default())).await,
            };
        };
        let spec = found.spec.clone().unwrap_or_default();
        let version = &found.metadata.resource_version;
        if self.observed.as_ref().is_none_or(|(observed, _)| observed != version) {
            let seconds = spec.lease_duration_seconds.and_then(|s| s.try_into().ok());
            let respected = seconds.map_or(self.config.duration, Duration::from_secs);
            self.observed = Some((version.clone(), Instant::now() + respected));
        }
        // An earlier process of this pod has ended.
        let other = spec
            .holder_identity
            .filter(|holder| !holder.is_empty() && *holder != self.config.identity);
        if other.is_some() && self.is_respected() {
            self.wait_as(Ok(other));
            return Ok(None);
        }
        self.write(self.claimed(found)).await
    }

    fn is_respected(&self) -> bool {
        let observed = self.observed.as_ref();
        observed.is_some_and(|(_, expiry)| Instant::now() < *expiry)
    }

    /// The Lease with this replica as its holder from now on.
    fn claimed(&self, mut lease: Lease) -> Lease {
        let is_new = lease.metadata.name.replace(self.config.name.clone()).is_none();
        let spec = lease.spec.get_or_insert_default();
        let identity = &self.config.identity;
        let changes = !is_new && spec.holder_identity.as_ref() != Some(identity);
        spec.lease_transitions = Some(spec.lease_transitions.unwrap_or(0) + i32::from(changes));
        spec.holder_identity = Some(identity.clone());
        let seconds = self.config.duration.as_secs();
        spec.lease_duration_seconds = Some(seconds.try_into().unwrap_or(i32::MAX));
        spec.acquire_time = Some(now());
        spec.renew_time = spec.acquire_time.clone();
        lease
    }

    /// Writes the Lease; `None` if it has changed meanwhile.
    async fn write(&self, lease: Lease) -> Result<Option<Lease>> {
        let (params, name) = (PostParams::default(), &self.config.name);
        match lease.metadata.resource_version {
            Some(_) => {
                let replace = self.api.replace(name, &params, &lease);
                self.call("update", replace).await
            }
            None => self.call("create", self.api.create(&params, &lease)).await,
        }
    }

    /// The response of the API server; `None` if the Lease does not exist or has changed.
    async fn call<T>(&self, verb: &str, call: impl Future<Output = kube::Result<T>>) -> Result<Option<T>> {
        let step = format!("{verb} the Lease {}", self.display());
        // A request without a response leaves time for another one.
        match Deadline::after(self.config.renew_deadline / 2).bound(call).await {
            Ok(Ok(value)) => Ok(Some(value)),
            Ok(Err(error)) if matches!(code(&error), Some(404 | 409)) => Ok(None),
            Ok(Err(error)) => Err(Error::of(&step, Ok(error))),
            Err(elapsed) => Err(Error::of(&step, Err(elapsed))),
        }
    }

    /// Records why this replica waits, and logs it if it has changed.
    fn wait_as(&self, reason: std::result::Result<Option<String>, String>) {
        let standby = Leadership::Standby(reason);
        self.leadership.send_if_modified(|known| {
            let is_new = *known != standby;
            if is_new {
                let lease = self.display();
                match &standby {
                    Leadership::Standby(Err(error)) => tracing::warn!(lease, "standby: {error}"),
                    Leadership::Standby(Ok(holder)) => {
                        tracing::info!(lease, holder, "standby: another replica is the leader");
                    }
                    Leadership::Leader => {}
                }
                *known = standby;
            }
            is_new
        });
    }

    fn display(&self) -> String {
        format!("{}/{}", self.config.namespace, self.config.name)
    }
}

impl HeldLease {
    /// Renews the Lease until it is lost.
    pub async fn hold(&mut self) -> LeaseLost {
        let config = self.candidate.config.clone();
        let mut failure = None;
        let mut next = self.renewed + config.retry_period;
        loop {
            let deadline = self.renewed + config.renew_deadline;
            sleep_until(next.min(deadline)).await;
            let start = Instant::now();
            if start >= deadline {
                let limit = config.renew_deadline.as_secs();
                let failure = failure.unwrap_or_else(|| "no response".to_owned());
                return self.lost(&format!("could not be renewed for {limit} s: {failure}"));
            }
            next = start + config.retry_period;
            match Deadline::after(deadline - start).bound(self.renew()).await {
                Ok(Ok(None)) => {
                    self.renewed = start;
                    if failure.take().is_some() {
                        tracing::info!("the Lease is renewed again");
                    }
                }
                Ok(Ok(Some(reason))) => return self.lost(&reason),
                Ok(Err(error)) => {
                    let error = error_chain(&error);
                    if failure.is_none() {
                        tracing::warn!("{error}");
                    }
                    failure = Some(error);
                }
                Err(_) => {}
            }
        }
    }

    /// Renews the Lease, or returns why it is lost.
    async fn renew(&mut self) -> Result<Option<String>> {
        loop {
            let mut lease = self.lease.clone();
            lease.spec.get_or_insert_default().renew_time = Some(now());
            if let Some(renewed) = self.candidate.write(lease).await? {
                self.lease = renewed;
                return Ok(None);
            }
            // Another writer changed it, or an earlier renewal took effect without a response.
            if let Err(reason) = self.reload().await? {
                return Ok(Some(reason));
            }
        }
    }

    /// Reads the Lease; fails if this process does not hold it.
    async fn reload(&mut self) -> Result<std::result::Result<(), String>> {
        let name = self.candidate.config.name.clone();
        let found = self.candidate.api.get(&name);
        let Some(found) = self.candidate.call("read", found).await? else {
            return Ok(Err("was deleted".to_owned()));
        };
        let term = |lease: &Lease| {
            let spec = lease.spec.clone().unwrap_or_default();
            (spec.holder_identity, spec.acquire_time)
        };
        let (holder, acquired) = term(&found);
        if (holder.clone(), acquired) != term(&self.lease) {
            let holder = holder.unwrap_or_default();
            return Ok(Err(format!("was taken by {holder:?}")));
        }
        self.lease = found;
        Ok(Ok(()))
    }

    fn lost(&self, reason: &str) -> LeaseLost {
        LeaseLost(format!("{} {reason}", self.candidate.display()))
    }

    /// Releases the Lease, so that another replica takes it at its next attempt. Must be called after the last
    /// response was sent.
    pub async fn release(mut self) {
        let release = async {
            loop {
                if let Err(reason) = self.reload().await? {
                    return Ok(Some(reason));
                }
                let mut lease = self.lease.clone();
                let spec = lease.spec.get_or_insert_default();
                spec.holder_identity = Some(String::new());
                spec.lease_duration_seconds = Some(1);
                spec.renew_time = Some(now());
                if self.candidate.write(lease).await?.is_some() {
                    return Ok::<_, Error>(None);
                }
            }
        };
        let outcome = Deadline::after(RELEASE_TIMEOUT).bound(release).await;
        match outcome {
            Ok(Ok(None)) => tracing::info!("the Lease is released"),
            Ok(Ok(Some(reason))) => tracing::warn!("the Lease was not released: it {reason}"),
            Ok(Err(error)) => {
                tracing::warn!("{}; another replica waits until it expires", error_chain(&error));
            }
            Err(_) => {
                tracing::warn!("the Lease was not released; another replica waits until it expires");
            }
        }
    }
}

/// For operators: no decision depends on it.
fn now() -> MicroTime {
    MicroTime(SystemClock.now())
}

#[cfg(test)]
mod tests;

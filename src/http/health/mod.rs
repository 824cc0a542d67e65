//! Liveness and readiness checks. Each unhealthy check has advice on what to do.

use std::sync::Arc;
use std::time::Duration;

use ecs::api_health::{CONNECTIVITY_ADVICE, RECENT, Rejection, Report};
use ecs::credential::CredentialProvider;
use ecs::rate_limit::RateLimiter;
use ecs::{ApiHealth, Client};
use serde::Serialize;
use tokio::sync::watch;

pub(crate) use self::check::Check;
use self::check::TIMEOUT;
pub(crate) use self::node::NodeChecks;
use crate::base::error_chain;
use crate::base::{Clock, Deadline};
use crate::cluster::lease::Leadership;
use crate::csi::probe::{ProbeError, probe};
use crate::csi::registration::{Registration, RegistrationState};
use crate::csi::socket::Endpoint;
use crate::model::Failure;

mod check;
mod node;

/// How long calls must have failed before the cloud is reported as unreachable.
const UNREACHABLE_AFTER: Duration = Duration::from_mins(1);

#[derive(Debug, Clone)]
pub(crate) struct Health {
    pub(crate) endpoint: Endpoint,
    /// Set for roles that call the cloud.
    pub(crate) cloud: Option<CloudAccess>,
    /// Set for roles that serve the Node service.
    pub(crate) node: Option<NodeChecks>,
    /// Set if this process registers with kubelet.
    pub(crate) registration: Option<Registration>,
    /// Set if replicas elect a leader.
    pub(crate) leadership: Option<watch::Receiver<Leadership>>,
    /// Why the instance of a node is unknown. Until then it serves no socket.
    pub(crate) unknown_location: Option<String>,
}

/// The cloud API and the credentials for it.
#[derive(Debug, Clone)]
pub(crate) struct CloudAccess {
    pub(crate) api_health: ApiHealth,
    pub(crate) rate_limiter: Arc<RateLimiter>,
    pub(crate) provider: Arc<dyn CredentialProvider>,
    /// The wall clock, for the lifetime of credentials.
    pub(crate) clock: Arc<dyn Clock>,
}

impl CloudAccess {
    pub(crate) fn new(client: &Client, provider: Arc<dyn CredentialProvider>) -> Self {
        Self {
            api_health: client.api_health(),
            rate_limiter: client.rate_limiter(),
            provider,
            clock: Arc::new(client.server_clock()),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Readiness {
    /// Whether all checks passed.
    pub(crate) ready: bool,
    pub(crate) checks: Vec<Check>,
}

impl Health {
    /// The health of a role with this socket and nothing else.
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            cloud: None,
            node: None,
            registration: None,
            leadership: None,
            unknown_location: None,
        }
    }

    /// Whether the process responds on its own socket; true also during shutdown.
    pub(crate) async fn alive(&self) -> Check {
        match self.unknown_location {
            Some(_) => Check::new("socket", Ok("not served yet".to_owned())),
            None => self.socket(Ok).await,
        }
    }

    /// Whether it can serve requests.
    pub(crate) async fn ready(&self) -> Readiness {
        if let Some(problem) = &self.unknown_location {
            return Readiness {
                ready: false,
                checks: vec![Check::new("location", Err(problem.clone()))],
            };
        }
        let node = async {
            match &self.node {
                Some(node) => node.run().await,
                None => Vec::new(),
            }
        };
        let (socket, credentials, node) = tokio::join!(self.socket(Err), self.credentials(), node);
        let report = self.cloud.as_ref().map(|cloud| cloud.api_health.report());
        let reachable = report.map(|report| Check::new("cloud", reachable(&report)));
        let registration = self.registration.as_ref().map(registration_check);
        let leader = self.leadership().map(leader_check);
        let own = [Some(socket), leader, credentials, reachable];
        let checks: Vec<Check> = own.into_iter().flatten().chain(node).chain(registration).collect();
        Readiness {
            ready: checks.iter().all(|check| check.ok),
            checks,
        }
    }

    /// `stopping` decides whether a process that shuts down is ok.
    async fn socket(&self, stopping: fn(String) -> Result<String, String>) -> Check {
        // A standby that responds to HTTP is alive. Its socket does not exist, or does not serve yet.
        if matches!(self.leadership(), Some(Leadership::Standby(_))) {
            return Check::new("socket", Ok("served by the leader only".to_owned()));
        }
        let outcome = match probe(&self.endpoint, TIMEOUT).await {
            Ok(()) => Ok("it responds".to_owned()),
            Err(ProbeError::Stopping) => stopping("the driver is shutting down".to_owned()),
            Err(ProbeError::Unresponsive(message)) => Err(message),
        };
        Check::new("socket", outcome)
    }

    fn leadership(&self) -> Option<Leadership> {
        let leadership = self.leadership.as_ref()?;
        Some(leadership.borrow().clone())
    }

    async fn credentials(&self) -> Option<Check> {
        let cloud = self.cloud.as_ref()?;
        let todo = Failure::NoCredentials.advice();
        let provided = Deadline::after(TIMEOUT).bound(cloud.provider.provide());
        let outcome = match provided.await {
            Ok(Ok(found)) => match rejection(&cloud.api_health.report(), false) {
                Some(rejection) => Err(rejection),
                None => Ok(format!("from {}", found.origin)),
            },
            Ok(Err(error)) => Err(format!("{}; {todo}", error_chain(&error))),
            Err(_) => Err(format!(
                "their source has not responded within {} s; {todo}",
                TIMEOUT.as_secs()
            )),
        };
        Some(Check::new("credentials", outcome))
    }
}

/// The message about a recent rejection of the region, or else of the credentials, which fails every call.
fn rejection(report: &Report, of_region: bool) -> Option<String> {
    let (at, Rejection { condition, error }) = report.rejected.as_ref()?;
    let (ago, failure) = (at.elapsed(), Failure::from(*condition));
    let (subject, is_of_it) = match failure {
        Failure::UnknownRegion => ("the region", of_region),
        _ => ("them", !of_region),
    };
    let (seconds, todo) = (ago.as_secs(), failure.advice());
    let is_current = is_of_it && ago < RECENT;
    is_current.then(|| format!("the cloud rejected {subject} {seconds} s ago: {error}; {todo}"))
}

/// The time of the last response, or an error if the cloud is unreachable or rejects the region.
fn reachable(report: &Report) -> Result<String, String> {
    if let Some(rejection) = rejection(report, true) {
        return Err(rejection);
    }
    if let Some(outage) = report.outage.as_ref()
        && outage.last_failure.elapsed() < RECENT
    {
        let [since, last] = [outage.since, outage.last_failure].map(|at| at.elapsed().as_secs());
        let text = format!("no response for {since} s, last attempt {last} s ago: {}", outage.error);
        return match Duration::from_secs(since.saturating_sub(last)) < UNREACHABLE_AFTER {
            true => Ok(text),
            false => Err(format!("{text}; {CONNECTIVITY_ADVICE} (--network, --ecs-endpoint)")),
        };
    }
    Ok(match report.last_response {
        Some(at) => format!("last response {} s ago", at.elapsed().as_secs()),
        None => "not called yet".to_owned(),
    })
}

/// A standby is ready if there is a leader, or if it will be the leader soon.
fn leader_check(leadership: Leadership) -> Check {
    let outcome = match leadership {
        Leadership::Leader => Ok("this replica is the leader".to_owned()),
        Leadership::Standby(Ok(None)) => Ok("standby: reading the Lease".to_owned()),
        Leadership::Standby(Ok(Some(holder))) => Ok(format!("standby: {holder} is the leader")),
        Leadership::Standby(Err(error)) => Err(format!("standby: {error}")),
    };
    Check::new("leader", outcome)
}

fn registration_check(registration: &Registration) -> Check {
    let outcome = match registration.state() {
        RegistrationState::Registered => Ok("kubelet has registered the driver".to_owned()),
        RegistrationState::Pending => Err(
            "kubelet has not registered the driver yet; if this persists, check that kubelet runs and that \
             --registration-dir is its directory plugins_registry"
                .to_owned(),
        ),
        RegistrationState::Rejected(error) => Err(registration.rejection_message(&error)),
    };
    Check::new("registration", outcome)
}

#[cfg(test)]
mod tests {
    use ecs::api_health::Outage;
    use tokio::time::Instant;

    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    /// The instant so many seconds ago.
    async fn ago(count: u64) -> Instant {
        let then = Instant::now();
        tokio::time::advance(seconds(count)).await;
        then
    }

    async fn outage(first: u64, last: u64) -> Report {
        let (since, last) = (ago(first - last).await, ago(last).await);
        let error = "no response from http://h".to_owned();
        let outage = Some(Outage {
            since,
            last_failure: last,
            error,
            is_logged: false,
        });
        Report {
            outage,
            ..Report::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_client_is_healthy() {
        assert!(reachable(&Report::default()).is_ok());
        let idle = Report {
            last_response: Some(ago(86_400).await),
            ..Report::default()
        };
        assert_eq!(reachable(&idle).unwrap(), "last response 86400 s ago");
    }

    #[tokio::test(start_paused = true)]
    async fn the_cloud_is_unreachable_after_a_minute_of_failed_calls() {
        assert!(reachable(&outage(3, 3).await).is_ok());
        assert!(reachable(&outage(400, 380).await).is_ok());
        let message = reachable(&outage(75, 2).await).unwrap_err();
        for part in ["75 s", "http://h", "--ecs-endpoint"] {
            assert!(message.contains(part), "{message}");
        }
        // The last attempt is not recent.
        assert!(reachable(&outage(2000, 700).await).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_rejection_counts_for_ten_minutes_and_has_advice() {
        for (code, todo) in [
            ("InvalidAccessKeyId.NotFound", "check the access key"),
            ("InvalidAccessKeyId.Inactive", "enable it"),
            ("SignatureDoesNotMatch", "check the secret"),
            ("InvalidTimeStamp.Expired", "correct the clock"),
            ("InvalidRegionId.NotFound", "correct --region"),
            ("InvalidRegionId", "correct --region"),
        ] {
            let report = |at| Report {
                rejected: Some((
                    at,
                    Rejection {
                        condition: ecs::Error::from_response("X", 403, code).condition(),
                        error: format!("DescribeDisks failed with {code}"),
                    },
                )),
                ..Report::default()
            };
            let recent = report(ago(599).await);
            let is_wrong_region = code.starts_with("InvalidRegion");
            let message = rejection(&recent, is_wrong_region).unwrap();
            assert!(message.contains(code) && message.contains(todo), "{message}");
            assert!(rejection(&recent, !is_wrong_region).is_none());
            assert_eq!(reachable(&recent).is_err(), is_wrong_region, "{code}");
            assert!(rejection(&report(ago(600).await), is_wrong_region).is_none());
        }
    }
}

//! A caller that retries each call unchanged until it succeeds, as kubelet does.

use std::time::Duration;

use tokio::time::Instant;
use tonic::Status;
use tonic::transport::Channel;

use crate::common::volume::NodeVolume;
use crate::kill::counts::Counts;

/// The timeout of one attempt.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);
/// The timeout of a call with all retries.
const RETRY_TIMEOUT: Duration = Duration::from_mins(8);
const INITIAL_BACKOFF: Duration = Duration::from_millis(10);
/// The plugin was killed before it responded.
pub(crate) const INTERRUPTED: &str = "interrupted";
/// No plugin was running.
const UNAVAILABLE: &str = "unavailable";
const MAX_BACKOFF: Duration = Duration::from_millis(80);

#[derive(Debug, Clone, Copy)]
pub(crate) enum Verb {
    Stage,
    Publish,
    Unpublish,
    Unstage,
    Expand,
}

/// A call for a volume.
#[derive(Debug, Clone)]
pub(crate) struct NodeCall {
    pub(crate) verb: Verb,
    pub(crate) volume: NodeVolume,
    /// The required size in bytes of an expansion.
    pub(crate) size: u64,
}

impl NodeCall {
    async fn send(&self) -> Result<(), Status> {
        match self.verb {
            Verb::Stage => self.volume.stage().await,
            Verb::Publish => self.volume.publish().await,
            Verb::Unpublish => self.volume.unpublish().await,
            Verb::Unstage => self.volume.unstage().await,
            Verb::Expand => self.volume.expand(self.size).await.map(drop),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Succeeded,
    /// The retries ended, with this result of the last attempt.
    Failed(String),
}

/// When the retries of a call end.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RetryPolicy {
    UntilSuccess,
    /// After this number of attempts.
    MaxAttempts(u32),
    /// After this number of consecutive failures with this error name.
    MaxFailuresWith(u32, &'static str),
    /// After this number of failures that are not caused by a kill.
    MaxFailures(u32),
}

#[derive(Debug, Clone)]
pub(crate) struct Kubelet {
    pub(crate) channel: Channel,
    /// The number of attempts by call and `OK` or error name.
    pub(crate) counts: Counts,
}

impl Kubelet {
    /// Retries the call until it succeeds.
    pub(crate) async fn call_until_success(&self, call: &NodeCall) {
        self.call(call, RetryPolicy::UntilSuccess).await;
    }

    /// Retries the call according to the policy.
    pub(crate) async fn call(&self, call: &NodeCall, policy: RetryPolicy) -> Outcome {
        let start = Instant::now();
        let mut pause = INITIAL_BACKOFF;
        let (mut attempts, mut failures) = (0, 0);
        loop {
            let Err(status) = call.send().await else {
                self.counts.increment(&format!("{:?}:OK", call.verb));
                return Outcome::Succeeded;
            };
            let name = error_name(&status);
            self.counts.increment(&format!("{:?}:{name}", call.verb));
            attempts += 1;
            let ends = match policy {
                RetryPolicy::UntilSuccess => false,
                RetryPolicy::MaxAttempts(max) => attempts >= max,
                RetryPolicy::MaxFailuresWith(max, expected) => {
                    failures = if name == expected { failures + 1 } else { 0 };
                    failures >= max
                }
                RetryPolicy::MaxFailures(max) => {
                    let is_transient =
                        [INTERRUPTED, UNAVAILABLE, "OPERATION_PENDING", "SHUTTING_DOWN"].contains(&name.as_str());
                    failures += u32::from(!is_transient);
                    failures >= max
                }
            };
            if ends {
                return Outcome::Failed(name);
            }
            assert!(
                start.elapsed() < RETRY_TIMEOUT,
                "{:?} does not succeed: {status}",
                call.verb
            );
            tokio::time::sleep(pause).await;
            pause = MAX_BACKOFF.min(pause * 2);
        }
    }
}

/// The error name, or the state of the plugin if the connection failed.
fn error_name(status: &Status) -> String {
    let first = status.message().split(':').next().unwrap_or_default();
    let is_name = |c: char| c.is_ascii_uppercase() || c == '_';
    if !first.is_empty() && first.chars().all(is_name) {
        return first.to_owned();
    }
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        let text = error.to_string();
        if text.contains("No such file") || text.contains("refused") {
            return UNAVAILABLE.to_owned();
        }
        cause = error.source();
    }
    INTERRUPTED.to_owned()
}

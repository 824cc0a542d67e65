//! A caller that retries each call unchanged until it succeeds, as kubelet does.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use diskplugin::csi::proto::node_client::NodeClient;
use diskplugin::csi::proto::{
    NodeExpandVolumeRequest, NodePublishVolumeRequest, NodeStageVolumeRequest, NodeUnpublishVolumeRequest,
    NodeUnstageVolumeRequest,
};
use tokio::time::Instant;
use tonic::Status;
use tonic::transport::Channel;

use crate::common::csi::within;

/// The timeout of one attempt.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The timeout of a call with all retries.
const RETRY_TIMEOUT: Duration = Duration::from_mins(8);
const INITIAL_BACKOFF: Duration = Duration::from_millis(10);
/// The plugin was killed before it responded.
pub(crate) const INTERRUPTED: &str = "interrupted";
/// No plugin was running.
const UNAVAILABLE: &str = "unavailable";
const MAX_BACKOFF: Duration = Duration::from_millis(80);

#[derive(Clone)]
pub(crate) enum NodeCall {
    Stage(NodeStageVolumeRequest),
    Publish(NodePublishVolumeRequest),
    Unpublish(NodeUnpublishVolumeRequest),
    Unstage(NodeUnstageVolumeRequest),
    Expand(NodeExpandVolumeRequest),
}

impl NodeCall {
    fn name(&self) -> &'static str {
        match self {
            Self::Stage(_) => "stage",
            Self::Publish(_) => "publish",
            Self::Unpublish(_) => "unpublish",
            Self::Unstage(_) => "unstage",
            Self::Expand(_) => "expand",
        }
    }

    async fn send(self, channel: &Channel) -> Result<(), Status> {
        let mut node = NodeClient::new(channel.clone());
        match self {
            Self::Stage(request) => node.node_stage_volume(within(TIMEOUT, request)).await.map(drop),
            Self::Publish(request) => node.node_publish_volume(within(TIMEOUT, request)).await.map(drop),
            Self::Unpublish(request) => node.node_unpublish_volume(within(TIMEOUT, request)).await.map(drop),
            Self::Unstage(request) => node.node_unstage_volume(within(TIMEOUT, request)).await.map(drop),
            Self::Expand(request) => node.node_expand_volume(within(TIMEOUT, request)).await.map(drop),
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

/// The number of attempts by call and error name.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallCounts(Arc<Mutex<BTreeMap<(&'static str, String), u32>>>);

impl CallCounts {
    fn record(&self, call: &'static str, result: &str) {
        let mut all = self.0.lock().unwrap();
        *all.entry((call, result.to_owned())).or_default() += 1;
    }

    /// The number of attempts that match the predicate.
    pub(crate) fn count(&self, is_counted: impl Fn(&str, &str) -> bool) -> u32 {
        let all = self.0.lock().unwrap();
        all.iter()
            .filter(|((call, result), _)| is_counted(call, result))
            .map(|(_, count)| count)
            .sum()
    }
}

impl fmt::Display for CallCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((call, result), count) in self.0.lock().unwrap().iter() {
            write!(f, " {call}:{result}={count}")?;
        }
        Ok(())
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Kubelet {
    pub(crate) channel: Channel,
    pub(crate) counts: CallCounts,
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
            let Err(status) = call.clone().send(&self.channel).await else {
                self.counts.record(call.name(), "OK");
                return Outcome::Succeeded;
            };
            let name = error_name(&status);
            self.counts.record(call.name(), &name);
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
                "{} does not succeed: {status}",
                call.name()
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

//! kubelet, as far as a node can tell it: each call repeated unchanged until it does well, whatever
//! the code was.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use diskplugin::csi::proto::node_client::NodeClient;
use diskplugin::csi::proto::{
    NodeExpandVolumeRequest, NodePublishVolumeRequest, NodeStageVolumeRequest,
    NodeUnpublishVolumeRequest, NodeUnstageVolumeRequest,
};
use tokio::time::Instant;
use tonic::transport::Channel;
use tonic::{Request, Status};

/// Of one call.
const TIMEOUT: Duration = Duration::from_secs(20);
/// With all repetitions: a call that takes longer has failed.
const WHOLE: Duration = Duration::from_mins(8);
const FIRST: Duration = Duration::from_millis(10);
/// The plugin was killed before it answered.
pub(crate) const CUT: &str = "cut";
/// There was no plugin.
const DOWN: &str = "down";
const LONGEST: Duration = Duration::from_millis(80);

/// One call.
#[derive(Clone)]
pub(crate) enum Ask {
    Stage(NodeStageVolumeRequest),
    Publish(NodePublishVolumeRequest),
    Unpublish(NodeUnpublishVolumeRequest),
    Unstage(NodeUnstageVolumeRequest),
    Expand(NodeExpandVolumeRequest),
}

impl Ask {
    fn name(&self) -> &'static str {
        match self {
            Self::Stage(_) => "stage",
            Self::Publish(_) => "publish",
            Self::Unpublish(_) => "unpublish",
            Self::Unstage(_) => "unstage",
            Self::Expand(_) => "expand",
        }
    }

    async fn once(self, channel: &Channel) -> Result<(), Status> {
        fn timed<T>(message: T) -> Request<T> {
            let mut request = Request::new(message);
            request.set_timeout(TIMEOUT);
            request
        }
        let mut node = NodeClient::new(channel.clone());
        match self {
            Self::Stage(ask) => node.node_stage_volume(timed(ask)).await.map(drop),
            Self::Publish(ask) => node.node_publish_volume(timed(ask)).await.map(drop),
            Self::Unpublish(ask) => node.node_unpublish_volume(timed(ask)).await.map(drop),
            Self::Unstage(ask) => node.node_unstage_volume(timed(ask)).await.map(drop),
            Self::Expand(ask) => node.node_expand_volume(timed(ask)).await.map(drop),
        }
    }
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// It was not repeated as often as it might have been: the last answer.
    GivenUp(String),
}

/// How long a call is repeated.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Patience {
    /// Until it does well.
    Whole,
    /// At most so often.
    Times(u32),
    /// Until it was refused so often in a row by this name.
    Refused(u32, &'static str),
    /// Until it has failed so often in a row by itself.
    Stuck(u32),
}

/// What all calls of a lane have answered: by call and name of the failure.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answers(Arc<Mutex<BTreeMap<(&'static str, String), u32>>>);

impl Answers {
    fn note(&self, ask: &'static str, answer: &str) {
        let mut all = self.0.lock().unwrap();
        *all.entry((ask, answer.to_owned())).or_default() += 1;
    }

    /// How many answers this test accepts.
    pub(crate) fn count(&self, is: impl Fn(&str, &str) -> bool) -> u32 {
        let all = self.0.lock().unwrap();
        all.iter()
            .filter(|((ask, answer), _)| is(ask, answer))
            .map(|(_, count)| count)
            .sum()
    }
}

impl fmt::Display for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((ask, answer), count) in self.0.lock().unwrap().iter() {
            write!(f, " {ask}:{answer}={count}")?;
        }
        Ok(())
    }
}

/// The caller of one node.
#[derive(Debug, Clone)]
pub(crate) struct Kubelet {
    pub(crate) channel: Channel,
    pub(crate) answers: Answers,
}

impl Kubelet {
    /// Makes the call until it does well.
    pub(crate) async fn done(&self, ask: &Ask) {
        self.call(ask, Patience::Whole).await;
    }

    /// Makes the call as long as patience lasts.
    pub(crate) async fn call(&self, ask: &Ask, patience: Patience) -> Outcome {
        let start = Instant::now();
        let mut pause = FIRST;
        let (mut times, mut refused) = (0, 0);
        loop {
            let Err(status) = ask.clone().once(&self.channel).await else {
                self.answers.note(ask.name(), "OK");
                return Outcome::Done;
            };
            let name = name(&status);
            self.answers.note(ask.name(), &name);
            times += 1;
            let enough = match patience {
                Patience::Whole => false,
                Patience::Times(most) => times >= most,
                Patience::Refused(most, wanted) => {
                    refused = if name == wanted { refused + 1 } else { 0 };
                    refused >= most
                }
                Patience::Stuck(most) => {
                    let passing =
                        [CUT, DOWN, "OPERATION_PENDING", "SHUTTING_DOWN"].contains(&name.as_str());
                    refused = if passing { 0 } else { refused + 1 };
                    refused >= most
                }
            };
            if enough {
                return Outcome::GivenUp(name);
            }
            assert!(
                start.elapsed() < WHOLE,
                "{} does not do well: {status}",
                ask.name()
            );
            tokio::time::sleep(pause).await;
            pause = LONGEST.min(pause * 2);
        }
    }
}

/// The name of a failure. A broken connection has none: the call was cut off, or nobody served.
fn name(status: &Status) -> String {
    let first = status.message().split(':').next().unwrap_or_default();
    let is_name = |c: char| c.is_ascii_uppercase() || c == '_';
    if !first.is_empty() && first.chars().all(is_name) {
        return first.to_owned();
    }
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        let text = error.to_string();
        if text.contains("No such file") || text.contains("refused") {
            return DOWN.to_owned();
        }
        cause = error.source();
    }
    CUT.to_owned()
}

//! One run: a cloud, a controller, its callers, and the judge.

use std::sync::Arc;
use std::time::Duration;

use diskplugin::base::{Clock, Tasks};
use diskplugin::csi::controller::{DriverLocation, Service};
use diskplugin::csi::proto::controller_server::ControllerServer;
use diskplugin::disk::DiskServices;
use ecs::Client;
use fake_ecs::Cloud;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::chaos::lists;
use crate::common::expected::Recorder;
use crate::common::findings::{CloudCall, Findings};
use crate::common::lifecycle::{Callers, StateReader};
use crate::common::plan::Plan;
use crate::common::sidecar::{Port, RetryPolicy, Sidecar};

/// The nodes of every run.
pub(crate) const NODES: usize = 10;

/// Lives at the same time.
pub(crate) const AT_A_TIME: usize = 50;

/// Faults of the cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weather {
    Calm,
    /// Of all calls, 5 % fail with a 5xx, 2 % by a 500 though they took effect, 2 % find their
    /// connection reset, and of 2 % the answer is lost.
    Faults,
    /// Of all lists, 30 % are up to 2 s old, each by an age of its own.
    Stale,
    Both,
}

impl Weather {
    fn faults(self) -> Value {
        let share = |percent: u8, kind: &str| json!({"action": "*", "percent": percent, "kind": kind});
        match self {
            Self::Calm | Self::Stale => json!([]),
            Self::Faults | Self::Both => json!([
                share(3, "internal-error"),
                share(2, "service-unavailable"),
                share(2, "internal-error-after"),
                share(2, "reset-before"),
                share(2, "reset-after"),
            ]),
        }
    }

    /// How old a list may be.
    pub(crate) fn lag(self) -> Duration {
        match self {
            Self::Calm | Self::Faults => Duration::ZERO,
            Self::Stale | Self::Both => Duration::from_secs(2),
        }
    }

    fn stale(self) -> Value {
        match self {
            Self::Calm | Self::Faults => json!({}),
            Self::Stale | Self::Both => json!({"lag": "0s..2s", "jumping": true, "percent": 30}),
        }
    }

    /// The configuration of the fake cloud.
    pub(crate) fn config(self) -> Value {
        json!({
            "faults": self.faults(),
            "stale": self.stale(),
            // The judge reads all of it.
            "rules": {"log_length": 1_000_000},
        })
    }
}

/// The outcome of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) wall: Duration,
    pub(crate) calls: u64,
    pub(crate) refused: u64,
    pub(crate) codes: String,
    pub(crate) findings: Findings,
}

/// Leads so many lives over this cloud.
pub(crate) async fn run(
    cloud: &Cloud,
    ecs: Arc<Client>,
    clock: Arc<dyn Clock>,
    (volumes, weather, patience): (usize, Weather, RetryPolicy),
) -> Outcome {
    cloud.configure(&weather.config()).unwrap();
    let tasks = Tasks::default();
    let disks = DiskServices::new(ecs, "test".parse().unwrap(), &tasks);
    let location = DriverLocation {
        region: "cn-beijing".parse().unwrap(),
        zone: Some("cn-beijing-a".parse().unwrap()),
    };
    let service = Service::new(Arc::new(disks), location, tasks.clone());
    let port = Port::InProcess(ControllerServer::new(service));
    let state = {
        let cloud = cloud.clone();
        move || cloud.state()
    };
    let state_reader: StateReader = Arc::new(move || Box::pin(std::future::ready(state())));
    let callers = Callers {
        sidecar: Sidecar::new(port, patience),
        recorder: Recorder::new(clock),
        state_reader,
    };
    let nodes: Vec<String> = cloud.nodes().iter().map(|n| n.id.to_string()).collect();
    let plans = (0..volumes).map(|number| Plan::of(number, &nodes)).collect();
    let start = Instant::now();
    let looking = lists::look(&callers, weather.lag());
    let living = callers.run_all(plans, AT_A_TIME);
    tokio::select! {
        biased;
        () = living => {}
        () = looking => unreachable!("it looks for ever"),
    }
    let wall = start.elapsed();
    tasks.wait().await;
    // Accepted operations complete.
    tokio::time::sleep(weather.lag() + Duration::from_secs(1)).await;
    let counts = cloud.counts();
    let calls = cloud.calls().into_iter().map(|entry| CloudCall {
        at: entry.at,
        action: entry.action,
        params: entry.params,
    });
    let calls: Vec<CloudCall> = calls.collect();
    let findings = Findings::of(&callers.recorder.expected(), &cloud.state(), &calls);
    Outcome {
        wall,
        calls: counts.values().map(|count| count.calls).sum(),
        refused: counts.values().map(|count| count.refused).sum(),
        codes: callers.sidecar.codes(),
        findings,
    }
}

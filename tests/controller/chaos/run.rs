//! One run: a cloud, a controller, its callers, and the comparison with the expected state.

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

/// Parallel lifecycles.
pub(crate) const PARALLEL: usize = 50;

/// Faults of the cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Faults {
    None,
    /// Of all calls, 5 % fail with a 5xx, 2 % fail with a 500 after they took effect, the connections of 2 % are reset,
    /// and the responses to 2 % are lost.
    Calls,
    /// Of all reads, 30 % are up to 2 s old.
    StaleReads,
    Both,
}

impl Faults {
    fn calls(self) -> Value {
        let share = |percent: u8, kind: &str| json!({"action": "*", "percent": percent, "kind": kind});
        match self {
            Self::None | Self::StaleReads => json!([]),
            Self::Calls | Self::Both => json!([
                share(3, "internal-error"),
                share(2, "service-unavailable"),
                share(2, "internal-error-after"),
                share(2, "reset-before"),
                share(2, "reset-after"),
            ]),
        }
    }

    /// The maximum age of a read.
    pub(crate) fn lag(self) -> Duration {
        match self {
            Self::None | Self::Calls => Duration::ZERO,
            Self::StaleReads | Self::Both => Duration::from_secs(2),
        }
    }

    fn stale(self) -> Value {
        match self {
            Self::None | Self::Calls => json!({}),
            Self::StaleReads | Self::Both => json!({"lag": "0s..2s", "jumping": true, "percent": 30}),
        }
    }

    /// The configuration of the fake cloud.
    pub(crate) fn config(self) -> Value {
        json!({
            "faults": self.calls(),
            "stale": self.stale(),
            // All calls are compared.
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

/// Runs the lifecycles of this number of volumes.
pub(crate) async fn run(
    cloud: &Cloud,
    ecs: Arc<Client>,
    clock: Arc<dyn Clock>,
    (volumes, faults, retries): (usize, Faults, RetryPolicy),
) -> Outcome {
    cloud.configure(&faults.config()).unwrap();
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
        sidecar: Sidecar::new(port, retries),
        recorder: Recorder::new(clock),
        state_reader,
    };
    let nodes: Vec<String> = cloud.nodes().iter().map(|n| n.id.to_string()).collect();
    let plans = (0..volumes).map(|number| Plan::of(number, &nodes)).collect();
    let start = Instant::now();
    let listing = lists::list_continuously(&callers, faults.lag());
    let lifecycles = callers.run_all(plans, PARALLEL);
    tokio::select! {
        biased;
        () = lifecycles => {}
        () = listing => unreachable!("the listing does not end"),
    }
    let wall = start.elapsed();
    tasks.wait().await;
    // Accepted operations complete.
    tokio::time::sleep(faults.lag() + Duration::from_secs(1)).await;
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

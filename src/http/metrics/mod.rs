//! `/metrics`: the measurements of calls, and the state of the services at the time of the scrape.

use std::fmt::Debug;

use async_trait::async_trait;
use prometheus_client::encoding::text::{encode, encode_registry};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use tokio::sync::Mutex;

pub(crate) use self::controller::{ControllerGauges, LeaderGauge};
pub(crate) use self::inventory::{InventoryMetrics, UnhealthyDisks, refresh};
pub(crate) use self::node::NodeGauges;
pub(crate) use self::orphans::{OrphanMetrics, count_orphans};
use self::samples::Samples;
use crate::telemetry::CallMetrics;
use crate::telemetry::catalog::{PREFIX, register};

mod controller;
mod inventory;
mod node;
mod orphans;
mod samples;

/// The content type of OpenMetrics 1.0.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics of this process.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    /// The state of the services, read at each scrape.
    gauges: Mutex<Vec<Box<dyn Gauges>>>,
}

/// Gauges that are read at each scrape. A trait, so that the linker leaves those of the controller out of the program
/// of the node.
#[async_trait]
pub(crate) trait Gauges: Debug + Send + Sync {
    async fn read(&self, to: &mut Samples);
}

impl Metrics {
    /// The metrics of a role with these services.
    pub(crate) fn new(role: &'static str, calls: &CallMetrics, gauges: Vec<Box<dyn Gauges>>) -> Self {
        let mut registry = Registry::with_prefix(PREFIX);
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION")), ("role", role)]);
        register(&mut registry, "build", build);
        calls.register(&mut registry);
        Self {
            registry,
            gauges: Mutex::new(gauges),
        }
    }

    /// The metrics in the OpenMetrics format. Scrapes wait for each other.
    pub(crate) async fn encode(&self) -> String {
        let mut samples = Samples::default();
        for one in self.gauges.lock().await.iter() {
            one.read(&mut samples).await;
        }
        let mut read = Registry::with_prefix(PREFIX);
        read.register_collector(Box::new(samples));
        let mut text = String::new();
        let encoded = encode_registry(&mut text, &self.registry).and_then(|()| encode(&mut text, &read));
        encoded.expect("writing into memory does not fail");
        text
    }
}

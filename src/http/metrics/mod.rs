//! `/metrics`: the measurements of calls, and the state of the services at the time of the scrape.

use std::fmt::Debug;

use async_trait::async_trait;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use tokio::sync::Mutex;

pub(crate) use self::controller::ControllerGauges;
pub(crate) use self::node::NodeGauges;
use crate::telemetry::CallMetrics;
use crate::telemetry::catalog::{PREFIX, register};

mod controller;
mod inventory;
mod leader;
mod node;
mod orphans;

pub(crate) use self::inventory::{InventoryMetrics, UnhealthyDisks, refresh};
pub(crate) use self::leader::LeaderGauge;
pub(crate) use self::orphans::{OrphanMetrics, count_orphans};

/// The content type of OpenMetrics 1.0.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics of this process.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    /// The state of the services, read at each scrape.
    gauges: Mutex<Vec<Box<dyn Gauges>>>,
}

/// Gauges that are set at each scrape. A trait, so that the linker leaves those of the controller out of the program of
/// the node.
#[async_trait]
pub(crate) trait Gauges: Debug + Send + Sync {
    fn register(&self, registry: &mut Registry);

    async fn update(&self);
}

impl Metrics {
    /// The metrics of a role with these services.
    pub(crate) fn new(role: &'static str, calls: &CallMetrics, gauges: Vec<Box<dyn Gauges>>) -> Self {
        let mut registry = Registry::with_prefix(PREFIX);
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION")), ("role", role)]);
        register(&mut registry, "build", build);
        calls.register(&mut registry);
        for one in &gauges {
            one.register(&mut registry);
        }
        Self {
            registry,
            gauges: Mutex::new(gauges),
        }
    }

    /// Adds the counts of unused disks and snapshots.
    pub(crate) fn with_orphans(mut self, orphans: &OrphanMetrics) -> Self {
        orphans.register(&mut self.registry);
        self
    }

    /// The metrics in the OpenMetrics format. Scrapes wait for each other.
    pub(crate) async fn encode(&self) -> String {
        let gauges = self.gauges.lock().await;
        for one in gauges.iter() {
            one.update().await;
        }
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing into memory does not fail");
        text
    }
}

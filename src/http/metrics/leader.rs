//! Whether this replica is the leader.

use async_trait::async_trait;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::sync::watch;

use super::Gauges;
use crate::cluster::lease::Leadership;
use crate::telemetry::catalog::register;

#[derive(Debug)]
pub(crate) struct LeaderGauge {
    leadership: watch::Receiver<Leadership>,
    is_leader: Gauge,
}

impl LeaderGauge {
    pub(crate) fn new(leadership: watch::Receiver<Leadership>) -> Self {
        Self {
            leadership,
            is_leader: Gauge::default(),
        }
    }
}

#[async_trait]
impl Gauges for LeaderGauge {
    fn register(&self, registry: &mut Registry) {
        register(registry, "leader", self.is_leader.clone());
    }

    async fn update(&self) {
        let is_leader = *self.leadership.borrow() == Leadership::Leader;
        self.is_leader.set(is_leader.into());
    }
}

//! Whether this replica is the leader.

use async_trait::async_trait;
use tokio::sync::watch;

use super::{Gauges, Samples};
use crate::cluster::lease::Leadership;

#[derive(Debug)]
pub(crate) struct LeaderGauge(pub(crate) watch::Receiver<Leadership>);

#[async_trait]
impl Gauges for LeaderGauge {
    async fn read(&self, to: &mut Samples) {
        let is_leader = *self.0.borrow() == Leadership::Leader;
        to.set("leader", [], u64::from(is_leader));
    }
}

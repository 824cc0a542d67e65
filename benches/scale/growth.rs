//! Volumes are created and attached in parallel, and stay. Nodes are tagged for parallel attachments.

use diskplugin::disk::READ_LAG;

use super::figures::{Figures, Measurement};
use super::fleet::{Fleet, Volume, each};
use super::floor;
use super::proof::conclude;
use super::sidecars::Claim;

/// Volumes per node.
const PER_NODE: usize = 20;
/// Volumes that are created at the same time.
const PARALLEL: usize = 1000;

/// A fleet of this number of volumes, and the figures.
pub(crate) async fn run(volumes: usize) -> (Fleet, Figures) {
    let mut fleet = Fleet::new(volumes.div_ceil(PER_NODE), &["--parallel-attach"]);
    // Rows that a new process reads earlier may be older than a deletion by the previous one, and are read again.
    tokio::time::sleep(READ_LAG).await;
    let measurement = Measurement::begin(&fleet.stage, &fleet.times);
    let nodes = fleet.stage.nodes.len();
    let claims = (0..volumes).map(|n| (fleet.claim(n, n % nodes), n % nodes));
    let sidecars = fleet.sidecars();
    let create = move |(claim, node): (Claim, (usize, String))| {
        let sidecars = sidecars.clone();
        async move {
            let id = sidecars.create(&claim).await;
            sidecars.publish(&id, &node.1).await;
            let node = Some(node.0);
            Volume { claim, id, node }
        }
    };
    let claims = claims.map(|(claim, node)| (claim, (node, fleet.stage.nodes[node].0.clone())));
    let claims: Vec<_> = claims.collect();
    fleet.volumes = each(claims, PARALLEL, create).await;
    let mut figures = measurement.end(&fleet.stage, &fleet.times, |rpc| floor::of(rpc, 1));
    figures.volumes = volumes;
    figures.scenario = format!("fleet-{volumes}");
    figures.about = format!("create and attach, {PARALLEL} at a time");
    figures.idle_mib = Some(fleet.restart().await);
    conclude(&fleet, &mut figures).await;
    (fleet, figures)
}

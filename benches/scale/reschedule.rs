//! Volumes are detached and attached to other nodes in parallel. An instance executes one attach and one detach at a
//! time.

use serde_json::json;

use super::figures::{Figures, Measurement};
use super::fleet::{Fleet, Volume, each};
use super::floor;
use super::proof::conclude;
use super::sidecars::Sidecars;

/// Moves volumes of the fleet, the same number from each node.
pub(crate) async fn run(fleet: &mut Fleet, volumes: usize) -> Figures {
    serial(fleet).await;
    let sidecars = fleet.sidecars();
    let measurement = Measurement::begin(&fleet.stage, &fleet.times);
    let moves = moves(fleet, volumes);
    let work = move |(volume, from, to): Move| {
        let sidecars = sidecars.clone();
        async move { relocate(&sidecars, &volume.id, &from, &to).await }
    };
    each(moves, volumes, work).await;
    let per_node = volumes.div_ceil(fleet.stage.nodes.len());
    let floor = |rpc: &str| floor::moved(rpc, per_node);
    let mut figures = measurement.end(&fleet.stage, &fleet.times, floor);
    figures.scenario = "reschedule".to_owned();
    figures.about = format!("detach and attach elsewhere, {per_node} of each node, in parallel");
    figures.volumes = volumes;
    conclude(fleet, &mut figures).await;
    figures
}

/// A volume, and the IDs of its old and new node.
pub(crate) type Move = (Volume, String, String);

/// Plans to move the oldest volumes to other nodes of their zones, which the fleet has as their nodes from now on.
pub(crate) fn moves(fleet: &mut Fleet, volumes: usize) -> Vec<Move> {
    let nodes = &fleet.stage.nodes;
    let other = |from: usize| {
        let same_zone = (1..nodes.len()).map(|step| (from + step) % nodes.len());
        let mut same_zone = same_zone.filter(|to| nodes[*to].1 == nodes[from].1);
        same_zone.next().expect("a zone has several nodes")
    };
    fleet.volumes.sort_by_key(number);
    let moved = fleet.volumes.iter_mut().take(volumes);
    let moves = moved.filter_map(|volume| {
        let from = volume.node?;
        let to = other(from);
        volume.node = Some(to);
        Some((volume.clone(), nodes[from].0.clone(), nodes[to].0.clone()))
    });
    moves.collect()
}

fn number(volume: &Volume) -> usize {
    let number = volume.claim.name.trim_start_matches("pvc-").parse();
    number.unwrap_or(usize::MAX)
}

/// Removes the tags for parallel attachments from all instances, and restarts the controller.
pub(crate) async fn serial(fleet: &mut Fleet) {
    let rules = json!({"rules": {"serial_attach_detach": true}});
    fleet.stage.configure(&rules);
    fleet.restart().await;
}

pub(crate) async fn relocate(sidecars: &Sidecars, volume: &str, from: &str, to: &str) {
    sidecars.unpublish(volume, from).await;
    sidecars.publish(volume, to).await;
}

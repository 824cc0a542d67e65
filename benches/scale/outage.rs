//! A zone fails: its instances stop and reject requests, and all categories are out of stock. Regional volumes move to
//! other zones, zonal ones are detached, and the other zones must not be affected.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::dice::Dice;
use super::figures::{Figures, Measurement};
use super::fleet::{Fleet, REGIONAL, Volume};
use super::floor;
use super::proof::conclude;
use super::reschedule::{relocate, serial};
use super::sidecars::Sidecars;
use super::times::Times;

const ZONE: &str = "cn-beijing-c";
/// The time in which the instances reject requests, before the cloud describes them as stopped.
const STOPPING: Duration = Duration::from_mins(10);
/// The time until the zone recovers, and the start time of its instances.
const RECOVERED: Duration = Duration::from_mins(20);
const STARTING: Duration = Duration::from_mins(1);

/// Evacuates this number of volumes of the zone; a tenth as many are created and deleted in the other zones.
pub(crate) async fn run(fleet: &mut Fleet, volumes: usize) -> Figures {
    serial(fleet).await;
    let measurement = Measurement::begin(&fleet.stage, &fleet.times);
    let start = Instant::now();
    fail(fleet);
    let mut callers = JoinSet::new();
    let (moved, detached) = evacuate(fleet, volumes, &mut callers, start);
    let claimed = claim(fleet, volumes / 100, &mut callers);
    let healthy = Times::default();
    live_elsewhere(fleet, volumes / 10, &mut callers, &healthy);
    sleep_until(start + RECOVERED).await;
    let calls = fleet.stage.calls();
    recover(fleet);
    let created = callers.join_all().await.into_iter().flatten();
    fleet.volumes.extend(created);
    let mut figures = measurement.end(&fleet.stage, &fleet.times, |rpc| floor::of(rpc, 1));
    figures.add(&healthy, "other zones", |rpc| floor::of(rpc, 1));
    let refused = |action: &str| calls.get(action).map_or(0, |(_, refused)| *refused) as f64;
    let notes = [
        (
            "refused detach calls per volume until recovery",
            refused("DetachDisk") / volumes as f64,
        ),
        ("refused attach calls until recovery", refused("AttachDisk")),
        (
            "refused creations per claim until recovery",
            refused("CreateDisk") / claimed.max(1) as f64,
        ),
        ("regional volumes that moved to other zones", moved as f64),
        ("zonal volumes that returned to their nodes", detached as f64),
    ];
    figures.notes.extend(notes);
    figures.scenario = "outage".to_owned();
    figures.about = format!(
        "the instances of a zone reject requests for {STOPPING:?}, and run again after {RECOVERED:?} and {STARTING:?}"
    );
    figures.volumes = volumes + volumes / 10 + claimed;
    conclude(fleet, &mut figures).await;
    figures
}

fn fail(fleet: &Fleet) {
    let sold_out = json!([format!("{ZONE}/*")]);
    let power = humantime::format_duration(STOPPING).to_string();
    let outage = json!({"delays": {"power": power}, "out_of_stock": sold_out});
    fleet.stage.configure(&outage);
    switch(fleet, false);
}

fn recover(fleet: &Fleet) {
    let power = humantime::format_duration(STARTING).to_string();
    let end = json!({"delays": {"power": power}, "out_of_stock": []});
    fleet.stage.configure(&end);
    switch(fleet, true);
}

fn switch(fleet: &Fleet, on: bool) {
    for (node, _) in fleet.stage.nodes.iter().filter(|(_, zone)| zone == ZONE) {
        fleet.stage.cloud.set_instance_power(node, on);
    }
}

/// Regional volumes move to nodes of other zones; zonal ones are detached, and attached again after the recovery.
/// Returns the number of each.
fn evacuate(
    fleet: &mut Fleet,
    volumes: usize,
    callers: &mut JoinSet<Option<Volume>>,
    start: Instant,
) -> (usize, usize) {
    let sidecars = fleet.sidecars();
    let nodes = &fleet.stage.nodes;
    let alive: Vec<_> = (0..nodes.len()).filter(|n| nodes[*n].1 != ZONE).collect();
    let is_in_zone = |volume: &&mut Volume| volume.node.is_some_and(|node| nodes[node].1 == ZONE);
    let (mut moved, mut detached) = (0, 0);
    for volume in fleet.volumes.iter_mut().filter(is_in_zone).take(volumes) {
        let Some(node) = volume.node else { continue };
        let is_regional = volume.claim.category == REGIONAL;
        let (id, from) = (volume.id.clone(), nodes[node].0.clone());
        let sidecars = sidecars.clone();
        if is_regional {
            let to = alive[moved % alive.len()];
            moved += 1;
            volume.node = Some(to);
            let to = nodes[to].0.clone();
            callers.spawn(async move {
                relocate(&sidecars, &id, &from, &to).await;
                None
            });
        } else {
            detached += 1;
            callers.spawn(async move {
                sidecars.unpublish(&id, &from).await;
                sleep_until(start + RECOVERED + STARTING).await;
                sidecars.publish(&id, &from).await;
                None
            });
        }
    }
    (moved, detached)
}

/// Claims whose pods must run in the zone. Returns their number.
fn claim(fleet: &Fleet, volumes: usize, callers: &mut JoinSet<Option<Volume>>) -> usize {
    let nodes = &fleet.stage.nodes;
    let node = (0..nodes.len()).find(|node| nodes[*node].1 == ZONE);
    for (n, node) in (0..volumes).zip(std::iter::repeat(node).flatten()) {
        let mut claim = fleet.claim(10 * n, node);
        claim.name = format!("pvc-claimed-{n}");
        let sidecars = fleet.sidecars();
        callers.spawn(async move {
            let id = sidecars.create(&claim).await;
            let node = None;
            Some(Volume { claim, id, node })
        });
    }
    volumes
}

/// Volumes are created and deleted in the other zones during the first ten minutes.
fn live_elsewhere(fleet: &Fleet, volumes: usize, callers: &mut JoinSet<Option<Volume>>, times: &Times) {
    let nodes = Arc::new(fleet.stage.nodes.clone());
    let alive: Vec<_> = (0..nodes.len()).filter(|n| nodes[*n].1 != ZONE).collect();
    let mut dice = Dice(2);
    for n in 0..volumes {
        let node = alive[n % alive.len()];
        let mut claim = fleet.claim(10 * n, node);
        claim.name = format!("pvc-elsewhere-{n}");
        let sidecars = Sidecars {
            times: times.clone(),
            ..fleet.sidecars()
        };
        let begin = Duration::from_secs_f64(dice.between(0.0, STOPPING.as_secs_f64()));
        let node = nodes[node].0.clone();
        callers.spawn(async move {
            sleep(begin).await;
            sidecars.live(&claim, &node, Duration::ZERO).await;
            None
        });
    }
}

//! The leader is killed while volumes move and others are created; another process takes over, and the callers repeat
//! what they were not told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::figures::{Figures, Measurement};
use crate::fleet::{Fleet, Volume};
use crate::memory;
use crate::reschedule::{moves, serial};
use crate::sidecars::{Claim, Sidecars};
use crate::times::Percentiles;

/// When the leader is killed, and how long its lease then lasts.
const KILLED: Duration = Duration::from_secs(4);
const LEASE: Duration = Duration::from_secs(15);

/// What callers were told of each volume, by its name.
#[derive(Debug, Clone, Default)]
struct Told(Arc<Mutex<BTreeMap<String, Step>>>);

#[derive(Debug, Clone)]
enum Step {
    /// On its old node, or not created.
    Begun,
    /// A disk without a node.
    Detached(String),
    Attached(String),
}

/// A volume's way, as its callers know it.
#[derive(Debug, Clone)]
struct Way {
    claim: Claim,
    /// The id and the old node of a volume that moves; a new one has none.
    old: Option<(String, String)>,
    to: String,
}

/// Moves so many volumes and creates a tenth as many, through the death of the leader.
pub(crate) async fn run(fleet: &mut Fleet, volumes: usize) -> Figures {
    serial(fleet).await;
    let measurement = Measurement::begin(&fleet.stage, &fleet.times);
    let (told, created) = (Told::default(), volumes / 10);
    let ways = ways(fleet, volumes, created);
    let (done, in_flight) = first_leader(fleet, &ways, &told).await;
    sleep(LEASE).await;
    // The services of the successor begin when it becomes active.
    fleet.service = fleet.stage.start();
    let mut second = JoinSet::new();
    for way in &ways {
        second.spawn(lead(way.clone(), fleet.sidecars(), told.clone()));
    }
    second.join_all().await;
    // What was under way may be done when it is repeated: there is no floor.
    let floor = |_: &str| Percentiles::default();
    let mut figures = measurement.end(&fleet.stage, &fleet.times, floor);
    for volume in &mut fleet.volumes {
        if let Some(Step::Attached(id)) = told.lock().get(&volume.claim.name) {
            volume.id.clone_from(id);
        }
    }
    figures.scenario = "leader".to_owned();
    figures.about = format!(
        "{volumes} volumes move and {created} are created; the leader is killed after {KILLED:?}, \
         and another one starts {LEASE:?} later"
    );
    figures.volumes = volumes + created;
    figures
        .notes
        .insert("volumes that had made a step by then", done as f64);
    figures.notes.insert("MiB that its end freed", in_flight);
    fleet.conclude(&mut figures).await;
    figures
}

/// Runs the first leader until it is killed. How many steps it completed, and the memory that its death freed, in MiB.
async fn first_leader(fleet: &mut Fleet, ways: &[Way], told: &Told) -> (usize, f64) {
    let mut first = JoinSet::new();
    for way in ways {
        first.spawn(lead(way.clone(), fleet.sidecars(), told.clone()));
    }
    sleep(KILLED).await;
    let before = memory::live();
    // Nothing of the process runs any more, and calls that it has sent take effect or not.
    first.abort_all();
    while first.join_next().await.is_some() {}
    drop(first);
    fleet.restart().await;
    let freed = memory::mib(before, memory::live());
    (told.lock().len(), freed)
}

fn ways(fleet: &mut Fleet, volumes: usize, created: usize) -> Vec<Way> {
    let moves = moves(fleet, volumes).into_iter();
    let mut ways: Vec<_> = moves
        .map(|(volume, from, to)| Way {
            claim: volume.claim,
            old: Some((volume.id, from)),
            to,
        })
        .collect();
    let (nodes, known) = (fleet.stage.nodes.len(), fleet.volumes.len());
    for n in 0..created {
        let node = n % nodes;
        let claim = fleet.claim(known + n, node);
        ways.push(Way {
            claim: claim.clone(),
            old: None,
            to: fleet.stage.nodes[node].0.clone(),
        });
        fleet.volumes.push(Volume {
            claim,
            id: String::new(),
            node: Some(node),
        });
    }
    ways
}

/// Leads a volume on from what was told of it.
async fn lead(way: Way, sidecars: Sidecars, told: Told) {
    let name = &way.claim.name;
    loop {
        let step = told.lock().get(name).cloned().unwrap_or(Step::Begun);
        let next = match (step, &way.old) {
            (Step::Begun, Some((id, from))) => {
                sidecars.unpublish(id, from).await;
                Step::Detached(id.clone())
            }
            (Step::Begun, None) => Step::Detached(sidecars.create(&way.claim).await),
            (Step::Detached(id), _) => {
                sidecars.publish(&id, &way.to).await;
                Step::Attached(id)
            }
            (Step::Attached(_), _) => return,
        };
        told.lock().insert(name.clone(), next);
    }
}

impl Told {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Step>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The leader is killed while volumes move and others are created; another process takes over, and the callers repeat
//! calls without a response.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::figures::{Figures, Measurement};
use super::fleet::{Fleet, Volume};
use super::memory;
use super::proof::conclude;
use super::reschedule::{moves, serial};
use super::sidecars::{Claim, Sidecars};
use super::times::Percentiles;

/// The time until the leader is killed, and the remaining duration of its lease.
const KILLED: Duration = Duration::from_secs(4);
const LEASE: Duration = Duration::from_secs(15);

/// The last completed step of each volume, by name.
#[derive(Debug, Clone, Default)]
struct Progress(Arc<Mutex<BTreeMap<String, Step>>>);

#[derive(Debug, Clone)]
enum Step {
    /// On its old node, or not created.
    Initial,
    /// A disk without a node.
    Detached(String),
    Attached(String),
}

/// The intended change of a volume.
#[derive(Debug, Clone)]
struct Plan {
    claim: Claim,
    /// The ID and the old node of a volume that moves; none for a new one.
    old: Option<(String, String)>,
    to: String,
}

/// Moves volumes and creates a tenth as many, while the leader is killed.
pub(crate) async fn run(fleet: &mut Fleet, volumes: usize) -> Figures {
    serial(fleet).await;
    let measurement = Measurement::begin(&fleet.stage, &fleet.times);
    let (progress, created) = (Progress::default(), volumes / 10);
    let plans = plans(fleet, volumes, created);
    let (done, in_flight) = first_leader(fleet, &plans, &progress).await;
    sleep(LEASE).await;
    // The next leader starts its services.
    fleet.service = fleet.stage.start();
    let mut second = JoinSet::new();
    for plan in &plans {
        second.spawn(execute(plan.clone(), fleet.sidecars(), progress.clone()));
    }
    second.join_all().await;
    // A repeated call can find its operation complete, so its duration has no lower bound.
    let floor = |_: &str| Percentiles::default();
    let mut figures = measurement.end(&fleet.stage, &fleet.times, floor);
    for volume in &mut fleet.volumes {
        if let Some(Step::Attached(id)) = progress.lock().get(&volume.claim.name) {
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
        .insert("volumes with a completed step at the kill", done as f64);
    figures.notes.insert("MiB that the kill freed", in_flight);
    conclude(fleet, &mut figures).await;
    figures
}

/// Runs the first leader until it is killed. Returns the number of volumes with a completed step, and the memory that
/// the kill freed in MiB.
async fn first_leader(fleet: &mut Fleet, plans: &[Plan], progress: &Progress) -> (usize, f64) {
    let mut first = JoinSet::new();
    for plan in plans {
        first.spawn(execute(plan.clone(), fleet.sidecars(), progress.clone()));
    }
    sleep(KILLED).await;
    let before = memory::live();
    // All tasks of the process end; calls that it has sent may take effect.
    first.abort_all();
    while first.join_next().await.is_some() {}
    drop(first);
    fleet.restart().await;
    let freed = memory::mib(before, memory::live());
    (progress.lock().len(), freed)
}

fn plans(fleet: &mut Fleet, volumes: usize, created: usize) -> Vec<Plan> {
    let moves = moves(fleet, volumes).into_iter();
    let mut plans: Vec<_> = moves
        .map(|(volume, from, to)| Plan {
            claim: volume.claim,
            old: Some((volume.id, from)),
            to,
        })
        .collect();
    let (nodes, known) = (fleet.stage.nodes.len(), fleet.volumes.len());
    for n in 0..created {
        let node = n % nodes;
        let claim = fleet.claim(known + n, node);
        plans.push(Plan {
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
    plans
}

/// Executes the remaining steps of a volume.
async fn execute(plan: Plan, sidecars: Sidecars, progress: Progress) {
    let name = &plan.claim.name;
    loop {
        let step = progress.lock().get(name).cloned().unwrap_or(Step::Initial);
        let next = match (step, &plan.old) {
            (Step::Initial, Some((id, from))) => {
                sidecars.unpublish(id, from).await;
                Step::Detached(id.clone())
            }
            (Step::Initial, None) => Step::Detached(sidecars.create(&plan.claim).await),
            (Step::Detached(id), _) => {
                sidecars.publish(&id, &plan.to).await;
                Step::Attached(id)
            }
            (Step::Attached(_), _) => return,
        };
        progress.lock().insert(name.clone(), next);
    }
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Step>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

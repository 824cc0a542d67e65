//! A day under a quota of 60 calls per minute for each API: volumes are created and deleted continuously at 60 % of it,
//! and every four hours twice as many at the same time as the quota allows in a minute.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::dice::Dice;
use super::figures::{Figures, Measurement};
use super::fleet::Fleet;
use super::floor;
use super::proof::conclude;
use super::times::Times;

const QUOTA: usize = 60;
const NODES: usize = 200;
/// Volumes per second.
const RATE: f64 = 0.6 * QUOTA as f64 / 60.0;
/// How long a volume is attached.
const USED: Duration = Duration::from_mins(5);
/// The start of the first burst, in the middle of a minute, and the time between two bursts.
const FIRST_BURST: Duration = Duration::from_secs(10 * 60 + 20);
const BURSTS: Duration = Duration::from_hours(4);

/// Runs for this time.
pub(crate) async fn run(day: Duration) -> Figures {
    let fleet = Fleet::new(NODES, &["--parallel-attach", &format!("--throttle={QUOTA}")]);
    let measurement = Measurement::begin(&fleet.stage, &fleet.times);
    let (mut volumes, bursts) = (JoinSet::new(), Times::default());
    let (mut dice, start) = (Dice(3), Instant::now());
    let (mut number, mut next_burst) = (0, FIRST_BURST);
    while start.elapsed() < day {
        if start.elapsed() >= next_burst {
            next_burst += BURSTS;
            for _ in 0..2 * QUOTA {
                number += 1;
                volumes.spawn(live(&fleet, number, bursts.clone()));
            }
        }
        number += 1;
        volumes.spawn(live(&fleet, number, fleet.times.clone()));
        let pause = Duration::from_secs_f64(dice.exponential(RATE));
        sleep(pause).await;
        while volumes.try_join_next().is_some() {}
    }
    sleep_until(start + day).await;
    let left = volumes.len();
    volumes.join_all().await;
    let mut figures = measurement.end(&fleet.stage, &fleet.times, |rpc| floor::of(rpc, 1));
    figures.add(&bursts, "bursts", |rpc| floor::of(rpc, 1));
    figures.scenario = "day".to_owned();
    figures.about = format!(
        "{} under {QUOTA} calls per minute and API: {:.0} volumes per minute, and bursts of {}",
        humantime::format_duration(day),
        RATE * 60.0,
        2 * QUOTA
    );
    figures.volumes = number;
    figures.notes.insert("volumes in progress at the end", left as f64);
    conclude(&fleet, &mut figures).await;
    figures
}

/// A volume from its creation to its deletion.
fn live(fleet: &Fleet, number: usize, times: Times) -> impl Future<Output = ()> + Send + 'static {
    let node = number % NODES;
    let claim = fleet.claim(number, node);
    let node = fleet.stage.nodes[node].0.clone();
    let sidecars = super::sidecars::Sidecars {
        times,
        ..fleet.sidecars()
    };
    async move { sidecars.live(&claim, &node, USED).await }
}

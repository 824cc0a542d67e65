//! Compares the node with a model on a real kernel. Random calls and external events run against both; after each step,
//! the mount table, the content of the disks and the outcome must match the model.
//!
//! `NODE_MODEL_SEED=7 cargo test --test node_model` generates other steps, `NODE_MODEL_CASES=10` runs fewer cases.

mod call;
mod machine;
mod preconditions;
mod reference;
mod verbs;
mod verify;
mod world;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};

use crate::common::machine::has_devices;
use crate::common::rng::env_number;
use machine::Machine;
use reference::Model;
use world::{Event, Outcome, World};

const CASES: u64 = 105;
const STEPS: usize = 50;

/// Started cases of both tests.
static STARTED_CASES: AtomicU64 = AtomicU64::new(0);
/// The number of occurrences of each event and outcome.
static OUTCOMES: Mutex<BTreeMap<(String, Option<Outcome>), u64>> = Mutex::new(BTreeMap::new());

/// A node that handles all calls of a case.
#[derive(Debug)]
struct LongRunning;
/// A node that restarts before each call.
#[derive(Debug)]
struct Restarted;

macro_rules! test {
    ($name:ty, $restarts:literal) => {
        impl StateMachineTest for $name {
            type SystemUnderTest = Machine;
            type Reference = Model;

            fn init_test(world: &World) -> Machine {
                Machine::new(world, STARTED_CASES.fetch_add(1, Ordering::SeqCst), $restarts)
            }

            fn apply(mut machine: Machine, world: &World, event: Event) -> Machine {
                machine.apply(event, world);
                record(event, world);
                machine
            }
        }
    };
}

test!(LongRunning, false);
test!(Restarted, true);

fn record(event: Event, world: &World) {
    let text = match event {
        Event::Call(call) => format!("{call:?}"),
        event => format!("{event:?}"),
    };
    let name = text.split([' ', '(']).next().unwrap_or_default().to_owned();
    let mut outcomes = OUTCOMES.lock().unwrap();
    *outcomes.entry((name, world.outcome)).or_default() += 1;
}

/// Runs all cases and returns the number of their steps.
fn run<T>(salt: u64) -> u64
where
    T: StateMachineTest<Reference = Model>,
{
    let (seed, cases) = (env_number("NODE_MODEL_SEED", 1), env_number("NODE_MODEL_CASES", CASES));
    let config = Config {
        cases: u32::try_from(cases).unwrap(),
        max_shrink_iters: 300,
        failure_persistence: None,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&salt.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config.clone(), rng);
    let steps = AtomicU64::new(0);
    let result = runner.run(&Model::sequential_strategy(STEPS), |(world, events, seen_counter)| {
        steps.fetch_add(u64::try_from(events.len()).unwrap(), Ordering::SeqCst);
        T::test_sequential(config.clone(), world, events, seen_counter);
        Ok(())
    });
    if let Err(error) = result {
        panic!("seed {seed} (NODE_MODEL_SEED): {error}");
    }
    steps.into_inner()
}

async fn test<T>(name: &str, salt: u64)
where
    T: StateMachineTest<Reference = Model> + 'static,
{
    if !has_devices("node::model").await {
        return;
    }
    let start = tokio::time::Instant::now();
    let result = tokio::task::spawn_blocking(move || run::<T>(salt)).await;
    let steps = result.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
    println!("{name}: {steps} steps in {:.0} s", start.elapsed().as_secs_f64());
    for ((event, outcome), count) in OUTCOMES.lock().unwrap().iter() {
        println!("  {event} {outcome:?}: {count}");
    }
}

#[tokio::test]
async fn a_long_running_node_matches_the_model() {
    test::<LongRunning>("long-running", 1).await;
}

#[tokio::test]
async fn a_node_that_restarts_before_each_call_matches_the_model() {
    test::<Restarted>("restarted", 2).await;
}

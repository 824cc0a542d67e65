//! The node against a model, on a real kernel: calls and what an outside world does, at random; after each
//! step the mount table, the disks' content and the answer are those of the model.
//!
//! `NODE_MODEL_SEED=7 cargo test --test node_model` draws other steps, `NODE_MODEL_CASES=10` fewer of them.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod call;
#[path = "../common/mod.rs"]
#[expect(
    dead_code,
    reason = "each file of tests uses its own part of the harness"
)]
mod common;
#[path = "../common/loop_device.rs"]
mod loop_device;
mod machine;
mod model;
mod see;
mod verbs;
mod world;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};

use common::machine::has_devices;
use machine::Machine;
use model::Model;
use world::{Answer, Event, World};

/// Cases of each test.
const CASES: u64 = 105;
/// Steps of a case.
const STEPS: usize = 50;

/// Cases that have begun, in both tests.
static BEGUN: AtomicU64 = AtomicU64::new(0);
/// How often each event had each answer.
static SEEN: Mutex<BTreeMap<(String, Option<Answer>), u64>> = Mutex::new(BTreeMap::new());

/// A node that goes on living, or one that starts anew before each call.
#[derive(Debug)]
struct Lasting;
#[derive(Debug)]
struct Restarted;

macro_rules! test {
    ($name:ty, $restarts:literal) => {
        impl StateMachineTest for $name {
            type SystemUnderTest = Machine;
            type Reference = Model;

            fn init_test(world: &World) -> Machine {
                Machine::new(world, BEGUN.fetch_add(1, Ordering::SeqCst), $restarts)
            }

            fn apply(mut machine: Machine, world: &World, event: Event) -> Machine {
                machine.apply(event, world);
                note(event, world);
                machine
            }
        }
    };
}

test!(Lasting, false);
test!(Restarted, true);

fn note(event: Event, world: &World) {
    let text = match event {
        Event::Call(call) => format!("{call:?}"),
        event => format!("{event:?}"),
    };
    let name = text.split(' ').next().unwrap_or_default().to_owned();
    let mut seen = SEEN.lock().unwrap();
    *seen.entry((name, world.answer)).or_default() += 1;
}

fn number(variable: &str, default: u64) -> u64 {
    let given = std::env::var(variable).ok();
    given.map_or(default, |text| text.parse().expect("a whole number"))
}

/// Leads as many cases as there are, each with its steps; how many steps these were.
fn run<T>(salt: u64) -> u64
where
    T: StateMachineTest<Reference = Model>,
{
    let (seed, cases) = (
        number("NODE_MODEL_SEED", 1),
        number("NODE_MODEL_CASES", CASES),
    );
    let config = Config {
        cases: u32::try_from(cases).unwrap(),
        max_shrink_iters: 300,
        failure_persistence: None,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&salt.to_le_bytes());
    let dice = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config.clone(), dice);
    let steps = AtomicU64::new(0);
    let led = runner.run(
        &Model::sequential_strategy(STEPS),
        |(world, events, seen)| {
            steps.fetch_add(u64::try_from(events.len()).unwrap(), Ordering::SeqCst);
            T::test_sequential(config.clone(), world, events, seen);
            Ok(())
        },
    );
    if let Err(error) = led {
        panic!("seed {seed} (NODE_MODEL_SEED): {error}");
    }
    steps.into_inner()
}

async fn test<T>(name: &str, salt: u64)
where
    T: StateMachineTest<Reference = Model> + 'static,
{
    if !has_devices("node_model").await {
        return;
    }
    let start = tokio::time::Instant::now();
    let led = tokio::task::spawn_blocking(move || run::<T>(salt)).await;
    let steps = led.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
    println!(
        "{name}: {steps} steps in {:.0} s",
        start.elapsed().as_secs_f64()
    );
    for ((event, answer), count) in SEEN.lock().unwrap().iter() {
        println!("  {event} {answer:?}: {count}");
    }
}

#[tokio::test]
async fn a_node_that_lives_on_does_what_the_model_does() {
    test::<Lasting>("lasting", 1).await;
}

#[tokio::test]
async fn a_node_that_starts_anew_before_each_call_does_what_the_model_does() {
    test::<Restarted>("restarted", 2).await;
}

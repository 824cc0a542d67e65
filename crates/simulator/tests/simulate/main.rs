//! A few schedules without violations, histories that repeat, and planted violations that are noticed.

use simulator::{Plant, Schedule, run, shrink};

/// Seeds of schedules that failed once.
const REGRESSIONS: &str = include_str!("../../seeds.txt");

#[test]
fn schedules_have_no_violations() {
    let regressions = REGRESSIONS
        .lines()
        .filter_map(|line| line.split(' ').next()?.parse().ok());
    for seed in regressions.chain(0..100) {
        let report = run(&Schedule::of(seed), None);
        assert_eq!(report.violations, [], "seed {seed}");
    }
}

#[test]
fn the_same_seed_has_the_same_history() {
    for seed in 0..30 {
        let [first, second] = [0, 1].map(|_| run(&Schedule::of(seed), None).history.lines());
        let difference = first.iter().zip(&second).find(|(one, other)| one != other);
        assert_eq!(difference, None, "seed {seed}");
        assert_eq!(first.len(), second.len(), "seed {seed}");
    }
}

#[test]
fn every_invariant_notices_a_planted_violation() {
    for plant in Plant::ALL {
        let noticed = (0..40).find(|seed| {
            let violations = run(&Schedule::of(*seed), Some(plant)).violations;
            violations.iter().any(|one| one.invariant == plant.violates())
        });
        assert!(noticed.is_some(), "{plant:?}");
    }
}

#[test]
fn a_failing_schedule_is_shortened() {
    let (schedule, plant) = (Schedule::of(1), Plant::FalseRefusal);
    let shortest = shrink(&schedule, Some(plant), plant.violates());
    assert!(shortest.events.is_empty(), "{shortest:#?}");
    assert_eq!(shortest.claims.len(), 1, "{shortest:#?}");
}

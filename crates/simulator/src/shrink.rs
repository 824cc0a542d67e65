//! Finds a shorter schedule that violates the same invariant.

use crate::history::Invariant;
use crate::plant::Plant;
use crate::run;
use crate::schedule::{Claim, Schedule, Source};

/// Leaves out events, claims and steps as long as the run still violates the invariant.
#[must_use]
pub fn shrink(schedule: &Schedule, plant: Option<Plant>, invariant: Invariant) -> Schedule {
    let mut shortest = schedule.clone();
    loop {
        let next = shorter(&shortest).into_iter().find(|shorter| {
            run(shorter, plant)
                .violations
                .iter()
                .any(|one| one.invariant == invariant)
        });
        match next {
            Some(next) => shortest = next,
            None => return shortest,
        }
    }
}

/// All schedules with one part less.
fn shorter(schedule: &Schedule) -> Vec<Schedule> {
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut Schedule)| {
        let mut next = schedule.clone();
        change(&mut next);
        all.push(next);
    };
    // The last claim, so that the numbers of the others do not change.
    if schedule.claims.len() > 1 {
        add(&|next| {
            next.claims.pop();
            let count = next.claims.len();
            next.events
                .retain(|event| event.kind.claim().is_none_or(|claim| claim < count));
        });
    }
    for number in 0..schedule.events.len() {
        add(&|next| drop(next.events.remove(number)));
    }
    for number in 0..schedule.claims.len() {
        let claim = &schedule.claims[number];
        let mut simplify = |is_possible: bool, change: fn(&mut Claim)| {
            if is_possible {
                add(&|next| change(&mut next.claims[number]));
            }
        };
        simplify(!claim.nodes.is_empty(), |claim| _ = claim.nodes.pop());
        simplify(claim.snapshot, |claim| claim.snapshot = false);
        simplify(claim.expand, |claim| claim.expand = false);
        simplify(claim.abandoned.is_some(), |claim| claim.abandoned = None);
        simplify(claim.source != Source::Blank, |claim| claim.source = Source::Blank);
    }
    all
}

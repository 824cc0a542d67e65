use super::*;

/// Somebody who calls whenever it is let, at a cloud that lets so many through in each minute.
struct Eager {
    lane: Lane,
    limit: u32,
    through: u32,
    /// When each call was refused.
    refused: Vec<i64>,
    /// How many were let through in each window.
    windows: Vec<u32>,
}

impl Eager {
    fn new(limit: u32) -> Self {
        Self {
            lane: Lane::of_api(),
            limit,
            through: 0,
            refused: vec![],
            windows: vec![],
        }
    }

    /// Calls in each tenth of a second of these windows; each answer comes at once.
    fn run(&mut self, windows: i64) {
        let first = i64::try_from(self.windows.len()).unwrap();
        for window in first..first + windows {
            self.through = 0;
            for now in (window * WINDOW..(window + 1) * WINDOW).step_by(100) {
                while self.lane.ready(now, true).is_ok() {
                    let alone = self.lane.send(now, true);
                    if self.through < self.limit {
                        self.through += 1;
                        self.lane.passed(alone);
                    } else {
                        self.refused.push(now);
                        self.lane.refuse(now, window * WINDOW, None);
                    }
                    // An API without a known limit takes any number at once.
                    if self.lane.budget().is_none() && self.through > self.limit.min(500) {
                        break;
                    }
                }
            }
            self.windows.push(self.through);
        }
    }

    fn refusals_of(&self, window: i64) -> usize {
        let of = |at: &&i64| at.div_euclid(WINDOW) == window;
        self.refused.iter().filter(of).count()
    }
}

#[test]
fn a_window_is_refused_once_and_later_ones_get_what_it_let_through() {
    let mut eager = Eager::new(60);
    eager.run(30);
    assert_eq!(eager.lane.budget().map(|n| n >= 60), Some(true));
    for window in 0..30 {
        assert!(eager.refusals_of(window) <= 1, "window {window}");
    }
    assert!(
        eager.windows.iter().all(|n| *n == 60),
        "{:?}",
        eager.windows
    );
    // Trying for more becomes rare.
    assert!(eager.refused.len() <= 12, "{:?}", eager.refused);
}

#[test]
fn a_refusal_that_tries_for_more_comes_when_the_window_is_nearly_over() {
    let mut eager = Eager::new(60);
    eager.run(30);
    for at in &eager.refused[1..] {
        assert!(at.rem_euclid(WINDOW) >= PACED, "{at}");
    }
}

#[test]
fn a_limit_that_was_raised_is_found_step_by_step() {
    let mut eager = Eager::new(10);
    eager.run(5);
    eager.limit = 100;
    eager.run(60);
    assert!(eager.windows[64] >= 90, "{:?}", eager.windows);
}

#[test]
fn a_limit_that_was_lowered_costs_one_refusal_a_window() {
    let mut eager = Eager::new(100);
    eager.run(10);
    eager.limit = 7;
    eager.run(30);
    for window in 0..40 {
        assert!(eager.refusals_of(window) <= 1, "window {window}");
    }
    assert!(
        eager.windows[20..].iter().all(|n| *n == 7),
        "{:?}",
        eager.windows
    );
}

#[test]
fn where_nothing_is_let_through_two_calls_a_window_are_the_most() {
    let mut eager = Eager::new(0);
    eager.run(20);
    for window in 0..20 {
        assert!(eager.refusals_of(window) <= 2, "window {window}");
    }
    assert!(eager.refused.len() <= 26, "{:?}", eager.refused);
}

#[test]
fn the_wait_that_the_cloud_asks_for_is_kept_and_so_is_what_is_left_of_the_window() {
    let mut lane = Lane::of_api();
    for _ in 0..10 {
        lane.send(1_000, true);
    }
    lane.refuse(1_000, 0, Some(70_000));
    assert_eq!(lane.ready(1_100, true), Err(Blocked::Until(71_000)));
    assert_eq!(lane.ready(71_000, true), Ok(()));
}

#[test]
fn beyond_what_is_proven_one_call_waits_for_the_answer_to_the_other() {
    let mut lane = Lane::of_api();
    for _ in 0..UNPROVEN {
        assert!(lane.ready(0, true).is_ok());
        assert!(!lane.send(0, true));
    }
    assert_eq!(lane.ready(10, true), Err(Blocked::Answer(LEASE)));
    for _ in 0..UNPROVEN {
        lane.passed(false);
    }
    assert!(lane.ready(20, true).is_ok());
    assert!(lane.send(20, true));
    assert_eq!(lane.ready(30, true), Err(Blocked::Answer(20 + LEASE)));
    lane.passed(true);
    assert!(lane.ready(40, true).is_ok());
}

#[test]
fn urgent_calls_keep_a_part_that_others_cannot_use_up_and_others_have_their_share() {
    let mut lane = Lane::of_api();
    lane.send(0, true);
    for _ in 0..60 {
        lane.send(0, false);
    }
    lane.refuse(0, 0, None);
    let mut now = WINDOW + 10 * GUARD;
    assert!(lane.ready(now, true).is_ok());
    let go = |lane: &mut Lane, now, urgent| {
        let alone = lane.send(now, urgent);
        lane.passed(alone);
    };
    go(&mut lane, now, true);
    while lane.ready(now, false).is_ok() {
        go(&mut lane, now, false);
    }
    assert!(lane.ready(now, true).is_ok());
    while lane.ready(now, true).is_ok() {
        go(&mut lane, now, true);
    }
    // However greedy the urgent ones are, the share of the others comes.
    let mut idle = 0;
    while now < 2 * WINDOW - 1_000 {
        now += 100;
        if lane.ready(now, false).is_ok() {
            go(&mut lane, now, false);
            idle += 1;
        }
        if lane.ready(now, true).is_ok() && !lane.owes() {
            go(&mut lane, now, true);
        }
    }
    assert!(idle >= 10, "{idle}");
}

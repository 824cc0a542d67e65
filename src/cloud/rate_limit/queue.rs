//! The calls that wait for one API, by class and deadline.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Notify;

use super::Class;
use crate::base::Deadline;

/// Position within a class: the earliest deadline first, then the order of arrival.
pub(super) type Position = (Deadline, u64);

/// A waiting call.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) wake: Arc<Notify>,
    /// Waits for the possibility of a call only.
    pub(super) is_ready_only: bool,
}

/// Waiting calls of one API.
#[derive(Debug, Default)]
pub(super) struct Queue {
    classes: [BTreeMap<Position, Waiter>; Class::ALL.len()],
    /// For each class the call that was woken to wait for the limit on behalf of the others.
    heads: [Option<u64>; Class::ALL.len()],
    pub(super) shares: Shares,
}

/// How often each class was passed over, so that none starves.
#[derive(Debug, Default)]
pub(super) struct Shares([u32; Class::ALL.len()]);

impl Queue {
    pub(super) fn push(&mut self, class: Class, position: Position, waiter: Waiter) {
        self.classes[class as usize].insert(position, waiter);
    }

    pub(super) fn remove(&mut self, class: Class, position: Position) -> Option<Waiter> {
        self.classes[class as usize].remove(&position)
    }

    pub(super) fn first(&self, class: Class) -> Option<Position> {
        self.classes[class as usize].keys().next().copied()
    }

    pub(super) fn has(&self, class: Class) -> bool {
        !self.classes[class as usize].is_empty()
    }

    /// Records that a call of the class is sent.
    pub(super) fn record(&mut self, sent: Class) {
        let classes = &self.classes;
        let waits = |class: Class| !classes[class as usize].is_empty();
        self.shares.record(sent, waits);
    }

    /// Wakes the first call of each class.
    pub(super) fn wake_first(&self) {
        let firsts = self.classes.iter().filter_map(BTreeMap::first_key_value);
        firsts.for_each(|(_, waiter)| waiter.wake.notify_one());
    }

    /// Wakes calls that have become the first of their class: the first one waits for the limit.
    pub(super) fn wake_heads(&mut self) {
        for (head, class) in self.heads.iter_mut().zip(&self.classes) {
            let first = class.first_key_value();
            let id = first.map(|(position, _)| position.1);
            if *head != id {
                *head = id;
                if let Some((_, waiter)) = first {
                    waiter.wake.notify_one();
                }
            }
        }
    }
}

impl Shares {
    /// Whether the class goes first because others went before it several times.
    pub(super) fn is_owed(&self, class: Class) -> bool {
        let most = if class == Class::List { 7 } else { 3 };
        self.0[class as usize] >= most
    }

    /// Records that a call of a class is sent while others may wait.
    pub(super) fn record(&mut self, sent: Class, waits: impl Fn(Class) -> bool) {
        for class in Class::ALL {
            let passed_over = &mut self.0[class as usize];
            if class == sent || !waits(class) {
                *passed_over = 0;
            } else {
                *passed_over += 1;
            }
        }
    }
}

//! How often an order that is refused for now is tried again: at first after each look, then more and
//! more seldom, because what stands in its way may last for minutes, and each attempt is a call that
//! nobody shares.

use crate::cloud::view::Observation;

/// Most looks between two attempts.
const MOST: u32 = 6;

/// The looks between two attempts at one order.
#[derive(Debug, Default)]
pub(super) struct BackOff(u32);

impl BackOff {
    /// What to wait for before the next attempt.
    pub(super) fn looks<V>(&mut self) -> impl FnMut(Observation<V>) -> Option<()> + use<V> {
        self.0 = (self.0 * 2).clamp(1, MOST);
        let mut left = self.0;
        move |_| {
            left = left.saturating_sub(1);
            (left == 0).then_some(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_become_rarer_up_to_a_bound() {
        let mut patience = BackOff::default();
        let looks = |mut done: Box<dyn FnMut(Observation<()>) -> Option<()>>| {
            (1..)
                .find(|_| done(Observation::Missing { witnessed: true }).is_some())
                .unwrap()
        };
        let mut pauses = Vec::new();
        for _ in 0..5 {
            pauses.push(looks(Box::new(patience.looks())));
        }
        assert_eq!(pauses, [1, 2, 4, 6, 6]);
    }
}

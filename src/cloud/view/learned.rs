//! The learned durations of all kinds of operations.

use std::collections::BTreeMap;

use super::durations::Durations;
use super::operation::{Operation, OperationKind};
use super::prior;

/// Durations by kind of operation.
#[derive(Debug, Default)]
pub(super) struct Learned {
    kinds: BTreeMap<OperationKind, usize>,
    durations: Vec<Durations>,
}

impl Learned {
    /// The number of this kind's durations. A new kind starts with those of the most similar known one.
    pub(super) fn number(&mut self, kind: &OperationKind) -> usize {
        if let Some(number) = self.kinds.get(kind) {
            return *number;
        }
        let durations = match self.similar(kind) {
            Some(number) => self.durations[number].borrowed(),
            None => Durations::new(prior::of(kind.operation)),
        };
        self.durations.push(durations);
        let number = self.durations.len() - 1;
        self.kinds.insert(kind.clone(), number);
        number
    }

    /// The same operation on another category, or for a detachment the attachment.
    fn similar(&self, kind: &OperationKind) -> Option<usize> {
        let rank = |other: &OperationKind| match (other.operation, kind.operation) {
            (other, kind) if other == kind => 2,
            (Operation::Attach, Operation::Detach) => 1,
            _ => 0,
        };
        let known = self.kinds.iter();
        let known = known.map(|(other, number)| {
            let samples = self.durations[*number].samples();
            let same = other.category == kind.category;
            ((rank(other), same, samples), *number)
        });
        let known = known.filter(|((rank, _, samples), _)| *rank > 0 && *samples > 0);
        known.max().map(|(_, number)| number)
    }

    pub(super) fn get_mut(&mut self, number: usize) -> &mut Durations {
        &mut self.durations[number]
    }

    pub(super) fn get(&self, number: usize) -> &Durations {
        &self.durations[number]
    }

    /// Takes in the samples since the last time.
    pub(super) fn refresh(&mut self) {
        self.durations.iter_mut().for_each(Durations::refresh);
    }
}

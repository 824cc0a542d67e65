//! The durations that operations of the cloud have had.

use std::collections::BTreeMap;

use super::durations::Durations;
use super::operation::{Operation, OperationKind};

pub(super) type Learned = BTreeMap<OperationKind, Durations>;

/// A category starts with the durations of another category, and detaching with those of attaching.
pub(super) fn get_or_start<'a>(learned: &'a mut Learned, kind: &OperationKind) -> &'a mut Durations {
    if !learned.contains_key(kind) {
        let is_similar = |known: Operation| {
            known == kind.operation || (kind.operation, known) == (Operation::Detach, Operation::Attach)
        };
        let similar = learned.iter_mut().find(|(known, _)| is_similar(known.operation));
        let density = similar.map_or_else(|| kind.operation.prior(), |(_, durations)| durations.density());
        learned.insert(kind.clone(), Durations::new(density));
    }
    learned.get_mut(kind).expect("inserted if it was missing")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Category;

    #[test]
    fn a_category_starts_with_the_durations_of_another_category() {
        let mut learned = Learned::default();
        let (slow, fast) = (
            Operation::Create.for_category(&Category::CloudEssd),
            Operation::Create.for_category(&Category::CloudAuto),
        );
        for _ in 0..16 {
            get_or_start(&mut learned, &slow).add(7.9, 8.0);
        }
        learned.values_mut().for_each(Durations::refresh);
        assert!(get_or_start(&mut learned, &fast).survival(4.0) > 0.9);
        for _ in 0..16 {
            get_or_start(&mut learned, &fast).add(0.9, 1.0);
        }
        learned.values_mut().for_each(Durations::refresh);
        let survival = |kind| learned.get(kind).unwrap().survival(4.0);
        assert!(survival(&fast) < 0.1, "{}", survival(&fast));
        assert!(survival(&slow) > 0.9, "{}", survival(&slow));
    }
}

//! Numbers of events.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

/// The number of events by name. Clones share the state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts(Arc<Mutex<BTreeMap<String, u64>>>);

impl Counts {
    pub(crate) fn increment(&self, name: &str) {
        *self.0.lock().unwrap().entry(name.to_owned()).or_default() += 1;
    }

    /// The number of events whose names match the predicate.
    pub(crate) fn count(&self, is_counted: impl Fn(&str) -> bool) -> u64 {
        let all = self.0.lock().unwrap();
        let counted = all.iter().filter(|(name, _)| is_counted(name));
        counted.map(|(_, count)| count).sum()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in self.0.lock().unwrap().iter() {
            write!(f, " {name}={count}")?;
        }
        Ok(())
    }
}

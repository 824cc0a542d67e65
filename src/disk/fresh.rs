//! When a token alone keeps a name from being used twice.
//!
//! The cloud forgets tokens, nobody says when; a day is what others have seen. A name that may be older
//! than the memory of its token is looked for by its tags before anything is bought under it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Well below the time for which the cloud remembers a token, and well above the minutes within which
/// a caller comes back with a name that a process before this one has tried.
const FRESH: Duration = Duration::from_secs(3600);

/// How many names are remembered; beyond that all are forgotten, which is as safe as a restart.
const MOST: usize = 10_000;

/// Since when this process knows which names.
#[derive(Debug)]
pub(super) struct Fresh(Mutex<Known>);

#[derive(Debug)]
struct Known {
    since: Instant,
    tried: HashMap<String, Instant>,
}

impl Default for Fresh {
    fn default() -> Self {
        Self(Mutex::new(Known {
            since: Instant::now(),
            tried: HashMap::new(),
        }))
    }
}

impl Fresh {
    /// The name is tried now. True when its token is certainly remembered, if it was ever used.
    pub(super) fn token_suffices(&self, name: &str) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.tried.len() >= MOST && !known.tried.contains_key(name) {
            known.since = Instant::now();
            known.tried.clear();
        }
        let since = known.since;
        let first = known.tried.entry(name.to_owned());
        let first = *first.or_insert_with(Instant::now);
        since.elapsed() >= FRESH && first.elapsed() < FRESH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_token_suffices_for_an_hour_in_a_process_that_is_an_hour_old() {
        let fresh = Fresh::default();
        assert!(!fresh.token_suffices("pvc-1"));
        tokio::time::advance(FRESH).await;
        assert!(!fresh.token_suffices("pvc-1"));
        assert!(fresh.token_suffices("pvc-2"));
        tokio::time::advance(FRESH).await;
        assert!(!fresh.token_suffices("pvc-2"));
    }

    #[tokio::test(start_paused = true)]
    async fn too_many_names_are_forgotten_as_by_a_restart() {
        let fresh = Fresh::default();
        tokio::time::advance(FRESH).await;
        for n in 0..MOST {
            assert!(fresh.token_suffices(&format!("pvc-{n}")));
        }
        assert!(!fresh.token_suffices("pvc-more"));
        assert_eq!(fresh.0.lock().unwrap().tried.len(), 1);
    }
}

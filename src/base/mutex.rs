//! Locks of state that a panic cannot leave inconsistent.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex even after a panic under it. No code under such a lock may panic between two changes.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

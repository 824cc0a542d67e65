use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the mutex, also after a panic of another holder: every holder leaves its data consistent.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

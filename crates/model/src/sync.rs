//! Locks whose data is whole at every step.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose data is whole at every step, so that a panic of another thread
/// that held it does not matter.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

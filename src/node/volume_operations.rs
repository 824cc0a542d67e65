//! Runs at most one operation of a volume at a time, to its end even if the caller gives up.

use std::future::Future;

use super::request::Volume;
use super::{Error, Result};
use crate::base::{KeyedLocks, Tasks};

/// The running operations. Clones share the state.
#[derive(Debug, Clone, Default)]
pub(super) struct VolumeOperations {
    locks: KeyedLocks,
    tasks: Tasks,
}

impl VolumeOperations {
    /// Runs an operation that changes the volume's state on this node.
    ///
    /// # Errors
    /// [`Error::OperationPending`] if another operation of the volume is running.
    pub(super) async fn run<F, T>(&self, volume: &Volume, operation: F) -> Result<T>
    where
        F: Future<Output = Result<T>> + Send + 'static,
        T: Send + 'static,
    {
        let guard = self.locks.try_lock(volume.id.as_str());
        let guard = guard.ok_or_else(|| Error::OperationPending {
            volume: volume.id.clone(),
        })?;
        let locked = async move {
            let _guard = guard;
            operation.await
        };
        self.tasks.run(locked).await
    }

    /// The tasks that the operations run on. Shutdown waits for them.
    pub(super) fn tasks(&self) -> &Tasks {
        &self.tasks
    }
}

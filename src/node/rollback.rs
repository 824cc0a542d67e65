//! Rolls back the changes of a failed call, and nothing else.

use std::path::PathBuf;
use std::sync::Arc;

use super::observe::{CallContext, quick};
use super::plan::{DeviceStep, PathStep, Step};
use crate::host::Host;

/// The actions that revert the completed steps. They run in reverse order.
#[derive(Debug)]
pub(super) struct Rollback {
    host: Arc<dyn Host>,
    actions: Vec<Action>,
}

#[derive(Debug)]
enum Action {
    Unmount(PathBuf),
    Remove(PathBuf),
}

impl Rollback {
    pub(super) fn new(host: Arc<dyn Host>) -> Self {
        Self {
            host,
            actions: Vec::new(),
        }
    }

    /// Records a completed step. A filesystem that was created, checked or grown is kept for the retry. The next stage
    /// or publish sets the read-only flag of the device again.
    pub(super) fn record(&mut self, step: &Step) {
        let action = match step {
            Step::Path(PathStep::MakeDirectory(path) | PathStep::MakeFile(path)) => {
                Action::Remove(path.clone())
            }
            Step::Path(PathStep::Bind { target, .. })
            | Step::Device(DeviceStep::Mount { target, .. } | DeviceStep::Bind(target)) => {
                Action::Unmount(target.clone())
            }
            Step::Path(_) | Step::Device(_) => return,
        };
        self.actions.push(action);
    }

    /// Failures are logged only: the caller receives the original error, and its retry starts from the current state.
    pub(super) async fn run(self, call: CallContext<'_>) {
        for action in self.actions.into_iter().rev() {
            let done = match &action {
                Action::Unmount(path) => self.host.unmount(quick(), path).await,
                Action::Remove(path) => self.host.remove_empty(quick(), path).await,
            };
            if let Err(error) = done {
                tracing::error!(
                    disk.id = %call.id(),
                    error = crate::base::error_chain(&error),
                    "cannot roll back a step of {}", call.operation,
                );
                return;
            }
        }
    }
}

//! Rolls back the changes of a failed call, and nothing else.

use std::path::PathBuf;

use super::Node;
use super::observe::quick;
use super::plan::Step;
use super::run::StepContext;

/// The actions that revert the completed steps. They run in reverse order.
#[derive(Debug, Default)]
pub(super) struct Rollback(Vec<Action>);

#[derive(Debug)]
enum Action {
    Unmount(PathBuf),
    Remove(PathBuf),
}

impl Rollback {
    /// Records a completed step.
    pub(super) fn record(&mut self, step: &Step) {
        let action = match step {
            Step::MakeDirectory(path) | Step::MakeFile(path) => Action::Remove(path.clone()),
            Step::Mount { target, .. } | Step::Bind { target, .. } | Step::BindDevice(target) => {
                Action::Unmount(target.clone())
            }
            // A filesystem that was created, checked or grown is kept for the retry. The next stage or publish sets
            // the read-only flag of the device again.
            Step::SetDeviceReadOnly(_)
            | Step::Wipe
            | Step::Format { .. }
            | Step::RemoveFormatRecord
            | Step::Check(..)
            | Step::GrowUnmounted(..)
            | Step::GrowMounted { .. }
            | Step::RemountReadOnly(_)
            | Step::Restrict { .. }
            | Step::Unmount(_)
            | Step::UnmountDead(_)
            | Step::Flush
            | Step::WaitReleased
            | Step::Remove(_) => return,
        };
        self.0.push(action);
    }
}

impl Node {
    /// Failures are logged only: the caller receives the original error, and its retry starts from the current state.
    pub(super) async fn roll_back(&self, context: StepContext<'_>, rollback: Rollback) {
        for action in rollback.0.into_iter().rev() {
            let done = match &action {
                Action::Unmount(path) => self.host.unmount(quick(), path).await,
                Action::Remove(path) => self.host.remove_empty(quick(), path).await,
            };
            if let Err(error) = done {
                tracing::error!(
                    disk.id = %context.volume.id,
                    error = crate::base::error_chain(&error),
                    "cannot roll back a step of {}", context.operation,
                );
                return;
            }
        }
    }
}

//! Taking back what a failed call has done, and nothing else.

use std::path::PathBuf;

use super::Node;
use super::observe::quick;
use super::plan::Step;
use super::run::Subject;

/// What to do to take back the steps done so far, the last one first.
#[derive(Debug, Default)]
pub(super) struct Undo(Vec<Back>);

#[derive(Debug)]
enum Back {
    Unmount(PathBuf),
    Remove(PathBuf),
}

impl Undo {
    /// A step has been done.
    pub(super) fn note(&mut self, step: &Step) {
        let back = match step {
            Step::MakeDirectory(path) | Step::MakeFile(path) => Back::Remove(path.clone()),
            Step::Mount { target, .. } | Step::Bind { target, .. } | Step::BindDevice(target) => {
                Back::Unmount(target.clone())
            }
            // A filesystem that was made, checked or grown is good to have next time; the device's
            // access is set anew by whoever publishes next.
            Step::SetDeviceReadOnly(_)
            | Step::Wipe
            | Step::Format { .. }
            | Step::ForgetFormat
            | Step::Check(..)
            | Step::GrowUnmounted(..)
            | Step::GrowMounted { .. }
            | Step::RemountReadOnly(_)
            | Step::Restrict { .. }
            | Step::Unmount(_)
            | Step::Detach(_)
            | Step::Flush
            | Step::Release
            | Step::Remove(_) => return,
        };
        self.0.push(back);
    }
}

impl Node {
    /// Takes back. What cannot be taken back is logged: the caller gets the first error, and its
    /// retry starts from what is there.
    pub(super) async fn undo(&self, subject: Subject<'_>, undo: Undo) {
        for back in undo.0.into_iter().rev() {
            let done = match &back {
                Back::Unmount(path) => self.host.unmount(quick(), path).await,
                Back::Remove(path) => self.host.remove_empty(quick(), path).await,
            };
            if let Err(error) = done {
                tracing::error!(
                    disk.id = %subject.volume.id,
                    error = crate::base::chain::chain(&error),
                    "cannot take back a step of {}", subject.verb,
                );
                return;
            }
        }
    }
}

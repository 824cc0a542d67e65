//! Runs filesystem tools.

use std::sync::Arc;
use std::time::Duration;

use super::observe::CallContext;
use super::{Error, Result};
use crate::base::Deadline;
use crate::host::{Command, Exec, Output};

/// Timeout of filesystem tools and of unmounts. The caller's deadline does not stop them: an interrupted mkfs leaves an
/// incomplete filesystem. Meanwhile, retries fail with [`Error::OperationPending`].
pub(super) const TOOL_TIMEOUT: Duration = Duration::from_secs(3600);

#[derive(Debug, Clone)]
pub(super) struct Tools {
    pub(super) exec: Arc<dyn Exec>,
}

impl Tools {
    /// Runs a tool whose exit code must be 0. `step` is the purpose of the tool.
    pub(super) async fn run(
        &self,
        call: CallContext<'_>,
        step: &'static str,
        command: &Command,
    ) -> Result<()> {
        let output = self.output(call, step, command).await?;
        match command.check_exit_code(output) {
            Ok(_) => Ok(()),
            Err(source) => Err(Error::Tool {
                volume: call.id().clone(),
                step,
                source,
            }),
        }
    }

    /// Runs a tool, and returns its output with any exit code.
    pub(super) async fn output(
        &self,
        call: CallContext<'_>,
        step: &'static str,
        command: &Command,
    ) -> Result<Output> {
        let output = self.exec.run(command, Deadline::after(TOOL_TIMEOUT)).await;
        output.map_err(|source| Error::Tool {
            volume: call.id().clone(),
            step,
            source,
        })
    }
}

//! Runs filesystem tools.

use std::sync::Arc;

use super::observe::CallContext;
use super::volume_operations::VolumeOperations;
use super::{Error, Result};
use crate::base::Deadline;
use crate::linux::{Command, Exec, ExecError, Output};
use crate::model::{Bytes, Failure};

/// No tool is killed for taking long: an interrupted mkfs leaves an incomplete filesystem, and a check that is repeated
/// from its beginning takes as long again. Meanwhile, calls of the volume fail with [`Failure::OperationPending`].
#[derive(Debug, Clone)]
pub(super) struct Tools {
    pub(super) exec: Arc<dyn Exec>,
    pub(super) operations: VolumeOperations,
    /// The address space of each tool. A tool that needs more fails instead of exhausting the memory of the container.
    pub(super) memory: Option<Bytes>,
}

impl Tools {
    /// Runs a tool whose exit code must be 0. `step` is the purpose of the tool.
    pub(super) async fn run(&self, call: CallContext<'_>, step: &'static str, command: &Command) -> Result<()> {
        let output = self.output(call, step, command).await?;
        let checked = command.check_exit_code(output);
        checked.map(drop).map_err(failed(call, step))
    }

    /// Runs a tool, and returns its output with any exit code.
    pub(super) async fn output(&self, call: CallContext<'_>, step: &'static str, command: &Command) -> Result<Output> {
        let _step = self.operations.step(call.id(), command.to_string());
        let command = command.clone().with_memory(self.memory);
        let output = self.exec.run(&command, Deadline::never()).await;
        output.map_err(failed(call, step))
    }
}

pub(super) fn failed(call: CallContext<'_>, step: &'static str) -> impl FnOnce(ExecError) -> Error {
    move |source| {
        let error = call.error(Failure::ToolFailed, format!("cannot {step}"));
        error.with_source(source)
    }
}

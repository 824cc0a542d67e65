//! The process of a role: its log, its runtime and its exit code.

use std::future::Future;
use std::io::Write;
use std::process::ExitCode;

use tokio::runtime::{Builder, Runtime};

use super::{InvalidSettings, telemetry};
use crate::cli::LogFormat;

/// Exit code of a missing or invalid setting: `EX_USAGE` of sysexits.h, as for an invalid flag.
const INVALID_SETTING: u8 = 64;

/// Stack size of threads for system calls. Only touched pages use memory.
const STACK: usize = 512 << 10;

#[derive(Debug, Clone, Copy)]
pub(super) struct Process {
    pub(super) format: LogFormat,
    /// Log only errors: for roles that print their own results.
    pub(super) quiet: bool,
    /// Name of the program.
    pub(super) program: &'static str,
}

impl Process {
    pub(super) fn new(format: LogFormat) -> Self {
        Self {
            format,
            quiet: false,
            program: "diskplugin",
        }
    }

    pub(super) fn run(self, role: impl Future<Output = anyhow::Result<()>>) -> ExitCode {
        telemetry::start(self.format, self.quiet);
        let runtime = match Self::runtime() {
            Ok(runtime) => runtime,
            Err(error) => {
                let error = anyhow::Error::new(error).context("cannot start the runtime");
                return self.fail(&error);
            }
        };
        let outcome = runtime.block_on(role);
        // A system call that hangs on a dead device cannot be cancelled and must not block the exit.
        runtime.shutdown_background();
        match outcome {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => self.fail(&error),
        }
    }

    /// A single thread: every role mostly waits for the cloud, the kernel or tools. It uses less memory and CPU than several
    /// threads, and memory does not grow with the number of CPUs.
    fn runtime() -> std::io::Result<Runtime> {
        Builder::new_current_thread()
            // System calls need little; each thread keeps the stack pages that it has touched.
            .thread_stack_size(STACK)
            .enable_all()
            .build()
    }

    fn fail(self, error: &anyhow::Error) -> ExitCode {
        let text = crate::base::error_chain(error.as_ref());
        match self.format {
            LogFormat::Text => {
                // The reader may be gone.
                let _ = writeln!(std::io::stderr(), "{}: {text}", self.program);
            }
            // Log collectors expect one object per line, including the last.
            LogFormat::Json => tracing::error!("{text}"),
        }
        if error.is::<InvalidSettings>() {
            ExitCode::from(INVALID_SETTING)
        } else {
            ExitCode::FAILURE
        }
    }
}

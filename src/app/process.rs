//! A role as a process: its log, its runtime, and how it ends.

use std::future::Future;
use std::io::Write;
use std::process::ExitCode;

use tokio::runtime::{Builder, Runtime};

use super::{WrongSettings, telemetry};
use crate::cli::LogFormat;

/// A setting that is missing or wrong (`EX_CONFIG` of sysexits.h is 78; the role never starts, so
/// this is `EX_USAGE`, like a wrong flag).
const WRONG_SETTING: u8 = 64;

/// The stack of a thread for system calls. Only what is touched takes memory; the rest is a bound.
const STACK: usize = 512 << 10;

/// What a role wants of its process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Process {
    /// How log lines look.
    pub(super) format: LogFormat,
    /// Whether only errors are logged: of a role that tells its story itself.
    pub(super) quiet: bool,
    /// What this program is called.
    pub(super) program: &'static str,
}

impl Process {
    /// One that logs.
    pub(super) fn new(format: LogFormat) -> Self {
        Self {
            format,
            quiet: false,
            program: "diskplugin",
        }
    }

    /// Runs the role to its end.
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
        // A system call on a dead device cannot be taken back and must not keep the process.
        runtime.shutdown_background();
        match outcome {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => self.fail(&error),
        }
    }

    /// Every role waits most of the time, for the cloud, the kernel or tools. One thread is enough for that: it uses less
    /// memory and CPU than several, and memory does not grow with the processors.
    fn runtime() -> std::io::Result<Runtime> {
        Builder::new_current_thread()
            // For system calls, which need little; each thread keeps what it has touched of it.
            .thread_stack_size(STACK)
            .enable_all()
            .build()
    }

    fn fail(self, error: &anyhow::Error) -> ExitCode {
        let text = crate::base::chain::chain(error.as_ref());
        match self.format {
            LogFormat::Text => {
                // Nobody may be reading any more.
                let _ = writeln!(std::io::stderr(), "{}: {text}", self.program);
            }
            // A collector takes one object a line, the last words too.
            LogFormat::Json => tracing::error!("{text}"),
        }
        if error.is::<WrongSettings>() {
            ExitCode::from(WRONG_SETTING)
        } else {
            ExitCode::FAILURE
        }
    }
}

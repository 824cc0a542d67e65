//! The process of a role: its log, its runtime and its exit code.

use std::future::Future;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use crate::cli::InvalidSettings;
use crate::cli::LogArgs;
use crate::cluster::lease::LeaseLost;
use crate::linux::MAX_THREADS;
use crate::telemetry::{self, LogFormat, Telemetry};

/// Exit code of a missing or invalid setting: `EX_USAGE` of sysexits.h, as for an invalid flag.
const INVALID_SETTING: u8 = 64;

/// Exit code if cloud or Kubernetes cannot be read: `EX_UNAVAILABLE` of sysexits.h. 1 is a result of these roles.
const UNAVAILABLE: u8 = 69;

/// Stack size of threads for system calls. Only touched pages use memory.
const STACK: usize = 512 << 10;

/// How long an idle thread for system calls is kept. Disks are attached in bursts, and each thread keeps memory.
const KEEP_ALIVE: Duration = Duration::from_secs(2);

/// How long the last spans may take to be exported.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Process {
    log: LogArgs,
    quiet: bool,
    /// Name of the program.
    program: &'static str,
}

impl Process {
    pub(super) fn new(program: &'static str, log: LogArgs) -> Self {
        Self {
            log,
            quiet: false,
            program,
        }
    }

    /// For a role that prints its own results: logs only errors.
    pub(super) fn quiet(self) -> Self {
        Self { quiet: true, ..self }
    }

    /// Runs a role that serves calls, which are recorded in `telemetry`.
    pub(super) fn serve(self, telemetry: &Telemetry, role: impl Future<Output = anyhow::Result<()>>) -> ExitCode {
        let role = async { role.await.map(|()| ExitCode::SUCCESS) };
        self.execute(Some(telemetry), role, ExitCode::FAILURE)
    }

    pub(super) fn run(self, role: impl Future<Output = anyhow::Result<()>>) -> ExitCode {
        let role = async { role.await.map(|()| ExitCode::SUCCESS) };
        self.execute(None, role, ExitCode::FAILURE)
    }

    /// Runs a role whose exit code is its result. Its errors have another code.
    pub(super) fn report(self, role: impl Future<Output = anyhow::Result<ExitCode>>) -> ExitCode {
        self.execute(None, role, ExitCode::from(UNAVAILABLE))
    }

    fn execute(
        self,
        telemetry: Option<&Telemetry>,
        role: impl Future<Output = anyhow::Result<ExitCode>>,
        failure: ExitCode,
    ) -> ExitCode {
        let runtime = Self::runtime();
        // The exporter of traces needs the runtime.
        let entered = runtime.as_ref().ok().map(Runtime::enter);
        let traces = telemetry::start(self.log.log_format, self.log.log_level.as_ref(), self.quiet, telemetry);
        drop(entered);
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => {
                let error = anyhow::Error::new(error).context("cannot start the runtime");
                return self.fail(&error, failure);
            }
        };
        let outcome = runtime.block_on(role);
        // Tasks of a replica that lost its Lease must end before the next leader starts, so spans are dropped.
        let is_lost = matches!(&outcome, Err(error) if error.is::<LeaseLost>());
        if is_lost {
            std::mem::forget(traces);
        } else if let Some(traces) = traces {
            // It blocks until the runtime has sent the last spans.
            let shutdown = runtime.spawn_blocking(move || traces.shutdown());
            // The timeout needs the runtime when it is created.
            let sent = async { tokio::time::timeout(EXPORT_TIMEOUT, shutdown).await };
            let _ = runtime.block_on(sent);
        }
        // A system call that hangs on a dead device cannot be cancelled and must not block the exit.
        runtime.shutdown_background();
        match outcome {
            Ok(code) => code,
            Err(error) => self.fail(&error, failure),
        }
    }

    /// A single thread: every role mostly waits for the cloud, the kernel or tools. It uses less memory and CPU than
    /// several threads, and memory does not grow with the number of CPUs.
    fn runtime() -> std::io::Result<Runtime> {
        Builder::new_current_thread()
            // System calls need little; each thread keeps the stack pages that it has touched.
            .thread_stack_size(STACK)
            // A busy machine would start more than 100: a thread that has finished its call is not idle until it is
            // scheduled again.
            .max_blocking_threads(MAX_THREADS)
            .thread_keep_alive(KEEP_ALIVE)
            .enable_all()
            .build()
    }

    fn fail(&self, error: &anyhow::Error, failure: ExitCode) -> ExitCode {
        let text = crate::base::error_chain(error.as_ref());
        match self.log.log_format {
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
            failure
        }
    }
}

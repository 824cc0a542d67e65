//! The composition roots: each role builds its parts and passes them by argument.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::process::ExitCode;

use crate::cli::{Cli, LogFormat, Role};

mod all_in_one;
mod cloud;
mod cluster;
mod controller;
mod credential;
#[cfg(feature = "mock-cloud")]
mod demo;
mod facts;
mod health;
mod http;
mod mark;
#[cfg(feature = "mock-cloud")]
mod mock_cloud;
mod node;
mod place;
mod renewal;
mod signal;
mod telemetry;
mod tools;
mod types;

/// A setting that is missing or wrong (`EX_CONFIG` of sysexits.h is 78; the role never starts, so
/// this is `EX_USAGE`, like a wrong flag).
const WRONG_SETTING: u8 = 64;

/// Threads of the other roles: the work is waiting, and memory must not grow with the processors.
const THREADS: usize = 2;

/// The stack of a thread that a node keeps for system calls. Only what is touched takes memory; the rest is a bound.
const STACK: usize = 512 << 10;

/// Settings that cannot work, all of them at once.
#[derive(Debug, thiserror::Error)]
#[error("the settings do not suffice:\n  {}", .0.join("\n  "))]
pub(crate) struct WrongSettings(pub(crate) Vec<String>);

/// Runs the role to its end.
#[must_use]
pub fn run(cli: Cli) -> ExitCode {
    let format = cli.log_format;
    telemetry::start(format, quiet(&cli.role));
    let runtime = runtime(&cli.role);
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            let error = anyhow::Error::new(error).context("cannot start the runtime");
            return fail(&error, format);
        }
    };
    let outcome = runtime.block_on(async {
        match cli.role {
            Role::Controller(args) => controller::run(*args).await,
            Role::Node(args) => node::run(*args).await,
            Role::AllInOne(args) => Box::pin(all_in_one::run(*args)).await,
            Role::Mark(args) => mark::run(args).await,
            #[cfg(feature = "mock-cloud")]
            Role::MockCloud(args) => mock_cloud::run(*args).await,
            #[cfg(feature = "mock-cloud")]
            Role::Demo(args) => demo::run(args).await,
        }
    });
    // A system call on a dead device cannot be taken back and must not keep the process.
    runtime.shutdown_background();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error, format),
    }
}

/// The runtime of a role. A node waits for the kernel and for tools: one thread is enough for that, and
/// what it holds must not grow with the processors of its machine.
fn runtime(role: &Role) -> std::io::Result<tokio::runtime::Runtime> {
    match role {
        Role::Node(_) | Role::Mark(_) => tokio::runtime::Builder::new_current_thread()
            // For system calls, which need little; each thread keeps what it has touched of it.
            .thread_stack_size(STACK)
            .enable_all()
            .build(),
        Role::Controller(_) | Role::AllInOne(_) => many_threads(),
        #[cfg(feature = "mock-cloud")]
        Role::MockCloud(_) | Role::Demo(_) => many_threads(),
    }
}

fn many_threads() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()
}

/// Whether only errors are logged: the demo tells its story itself.
fn quiet(role: &Role) -> bool {
    match role {
        Role::Controller(_) | Role::Node(_) | Role::AllInOne(_) => false,
        // It says itself what it has done.
        Role::Mark(_) => true,
        #[cfg(feature = "mock-cloud")]
        Role::MockCloud(_) => false,
        #[cfg(feature = "mock-cloud")]
        Role::Demo(_) => true,
    }
}

fn fail(error: &anyhow::Error, format: LogFormat) -> ExitCode {
    let text = crate::base::chain::chain(error.as_ref());
    match format {
        LogFormat::Text => {
            // Nobody may be reading any more.
            let _ = writeln!(std::io::stderr(), "diskplugin: {text}");
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

/// Whether this process may attach loop devices and mount: the owner of `/proc/self` is the
/// effective user.
fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

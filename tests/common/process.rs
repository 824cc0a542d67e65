//! Programs as child processes.

use std::fs::File;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use diskplugin::csi::proto::ProbeRequest;
use diskplugin::csi::proto::identity_client::IdentityClient;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::timeout;
use tonic::transport::Channel;

use super::csi;
use super::wait::until;

/// Timeout of starting and stopping, for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// A command line with an empty environment except for the variables set here.
#[derive(Debug)]
pub(crate) struct Start {
    command: Command,
}

/// A running child. Dropping it kills only this process.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    pid: Pid,
    output: TempDir,
}

/// Exit code and output of a child.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// `diskplugin` with these arguments.
pub(crate) fn diskplugin<A: AsRef<str>>(args: impl IntoIterator<Item = A>) -> Start {
    Start::of(env!("CARGO_BIN_EXE_diskplugin")).args(args)
}

impl Start {
    pub(crate) fn of(program: &str) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "the only place that starts processes under test; all waits are bounded"
        )]
        let mut command = Command::new(program);
        command.env_clear();
        for name in ["PATH", "HOME", "TMPDIR"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        // A separate process group distinguishes its children from others.
        command.stdin(Stdio::null()).process_group(0).kill_on_drop(true);
        Self { command }
    }

    /// A program that the kernel kills when the current thread ends.
    pub(crate) fn with_pdeathsig(program: &str) -> Self {
        Self::of("setpriv").args(["--pdeathsig", "KILL", "--", program])
    }

    pub(crate) fn args<A: AsRef<str>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.command.args(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// The command, which inherits standard output and error.
    pub(crate) fn command(self) -> Command {
        self.command
    }

    /// Starts it with its output in files.
    pub(crate) fn spawn(mut self) -> Process {
        let output = tempfile::tempdir().expect("a temporary directory can be created");
        let file = |name| File::create(output.path().join(name)).expect("a new file");
        self.command.stdout(file("out")).stderr(file("err"));
        let child = self.command.spawn().expect("the program can be started");
        let pid = child.id().expect("it has not been waited for");
        Process {
            child,
            pid: Pid::from_raw(i32::try_from(pid).expect("a pid is small")),
            output,
        }
    }

    pub(crate) async fn ended(self) -> Ended {
        self.spawn().ended().await
    }

    /// Runs it to its end without a runtime; true on success.
    pub(crate) fn run_blocking(mut self) -> bool {
        let status = self.command.as_std_mut().status();
        status.is_ok_and(|status| status.success())
    }

    /// Starts it and waits until it is ready.
    pub(crate) async fn ready(self, socket: &Path) -> (Process, Channel) {
        let mut process = self.spawn();
        let channel = process.ready(socket).await;
        (process, channel)
    }
}

impl Process {
    pub(crate) fn stdout(&self) -> String {
        self.read("out")
    }

    pub(crate) fn stderr(&self) -> String {
        self.read("err")
    }

    fn read(&self, name: &str) -> String {
        let bytes = std::fs::read(self.output.path().join(name)).expect("created at startup");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Sends the signal to the process, without its children.
    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid, signal).expect("the child has not been waited for");
    }

    /// Sends the signal to the process group, as a terminal does.
    pub(crate) fn signal_group(&self, signal: Signal) {
        killpg(self.pid, signal).expect("the child has not been waited for");
    }

    pub(crate) fn is_over(&mut self) -> bool {
        self.exited().is_some()
    }

    fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be waited for")
    }

    /// Waits until `Probe` reports ready.
    pub(crate) async fn ready(&mut self, socket: &Path) -> Channel {
        until("Probe reports ready", TIMEOUT, async || {
            assert!(!self.is_over(), "the process ended at startup: {}", self.stderr());
            let channel = csi::try_connect(socket).await?;
            let mut identity = IdentityClient::new(channel.clone());
            // A stopped process accepts a connection and never responds.
            let probe = timeout(PROBE_TIMEOUT, identity.probe(ProbeRequest {})).await;
            let probe = probe.ok()?.ok()?;
            (probe.into_inner().ready == Some(true)).then_some(channel)
        })
        .await
    }

    /// Waits until standard output contains the text.
    pub(crate) async fn wait_for_output(&mut self, text: &str) {
        until(&format!("it prints {text:?}"), TIMEOUT, async || {
            let printed = self.stdout().contains(text);
            assert!(
                printed || !self.is_over(),
                "the process ended before it printed {text:?}: {}{}",
                self.stdout(),
                self.stderr()
            );
            printed.then_some(())
        })
        .await;
    }

    pub(crate) async fn ended(mut self) -> Ended {
        let status = until("the process ends", TIMEOUT, async || self.exited()).await;
        Ended {
            code: status.code(),
            stdout: self.stdout(),
            stderr: self.stderr(),
        }
    }
}

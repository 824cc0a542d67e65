//! The program as a child process.

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
use tonic::transport::Channel;

use super::csi;
use super::wait::until;

/// Longer than any start or end takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A command line, with an environment that has nothing but what is given here.
#[derive(Debug)]
pub(crate) struct Start {
    command: Command,
}

/// A running child. Dropping it kills it, and nothing else.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    pid: Pid,
    prints: TempDir,
}

/// What a child that has ended said.
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
    /// Any program.
    pub(crate) fn of(program: &str) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place that starts processes under test; each wait for one is bounded"
        )]
        let mut command = Command::new(program);
        command.env_clear();
        for name in ["PATH", "HOME", "TMPDIR"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        // A group of its own: what it starts can be told from everybody else's children.
        command
            .stdin(Stdio::null())
            .process_group(0)
            .kill_on_drop(true);
        Self { command }
    }

    /// Any program; the kernel ends it when the thread ends that starts it, however that comes about.
    pub(crate) fn tied(program: &str) -> Self {
        Self::of("setpriv").args(["--pdeathsig", "KILL", "--", program])
    }

    pub(crate) fn args<A: AsRef<str>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.command
            .args(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// The command itself, whose prints go where this program's go.
    pub(crate) fn command(self) -> Command {
        self.command
    }

    /// Starts it; what it prints goes to files.
    pub(crate) fn spawn(mut self) -> Process {
        let prints = tempfile::tempdir().expect("there is a place for temporary files");
        let file = |name| File::create(prints.path().join(name)).expect("a new file");
        self.command.stdout(file("out")).stderr(file("err"));
        let child = self.command.spawn().expect("the program can be started");
        let pid = child.id().expect("it has not been waited for");
        Process {
            child,
            pid: Pid::from_raw(i32::try_from(pid).expect("a pid is small")),
            prints,
        }
    }

    /// Starts it and waits for its end.
    pub(crate) async fn ended(self) -> Ended {
        self.spawn().ended().await
    }

    /// Starts it, waits for its end, and tells whether it did well. For where nothing can be awaited.
    pub(crate) fn run_blocking(mut self) -> bool {
        let status = self.command.as_std_mut().status();
        status.is_ok_and(|status| status.success())
    }

    /// Starts it and waits until it answers on the socket.
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
        let bytes = std::fs::read(self.prints.path().join(name)).expect("made at the start");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Its number, for what the kernel tells about it.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Sends the signal to the process alone.
    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid, signal).expect("the child has not been waited for");
    }

    /// Sends the signal to the process and what it started, as a terminal does.
    pub(crate) fn signal_group(&self, signal: Signal) {
        killpg(self.pid, signal).expect("the child has not been waited for");
    }

    pub(crate) fn is_over(&mut self) -> bool {
        self.exited().is_some()
    }

    fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be waited for")
    }

    /// Waits until it answers on the socket that it is ready.
    pub(crate) async fn ready(&mut self, socket: &Path) -> Channel {
        until("the role answers that it is ready", PATIENCE, async || {
            assert!(!self.is_over(), "it ended at the start: {}", self.stderr());
            let channel = csi::try_connect(socket).await?;
            let mut identity = IdentityClient::new(channel.clone());
            let probe = identity.probe(ProbeRequest {}).await.ok()?;
            (probe.into_inner().ready == Some(true)).then_some(channel)
        })
        .await
    }

    /// Waits until its standard output has what is looked for.
    pub(crate) async fn says(&mut self, text: &str) {
        until(&format!("it prints {text:?}"), PATIENCE, async || {
            let said = self.stdout().contains(text);
            assert!(
                said || !self.is_over(),
                "it ended before it printed {text:?}: {}{}",
                self.stdout(),
                self.stderr()
            );
            said.then_some(())
        })
        .await;
    }

    /// Waits for its end.
    pub(crate) async fn ended(mut self) -> Ended {
        let status = until("the process ends", PATIENCE, async || self.exited()).await;
        Ended {
            code: status.code(),
            stdout: self.stdout(),
            stderr: self.stderr(),
        }
    }
}

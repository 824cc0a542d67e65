//! The outer process: creates the sandbox of a cluster, waits for it, and cleans up.
//!
//! The sandbox is a set of namespaces. When this process ends for any reason, the kernel terminates the first process
//! of the sandbox and with it all others, and then releases their mounts and networks. The guard, which is outside of
//! the sandbox, removes the rest: loop devices, cgroups, the directory.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, ExitCode, Stdio};

use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use crate::common::process::Start;
use crate::needs::{self, Lack};
use crate::proxy::{Proxy, Target};
use crate::{images, stay, worker};

/// The variable with the directory of the inner process, which identifies the inner process.
pub(crate) const INSIDE: &str = "CLUSTER_DIRECTORY";
/// The variable with the port on which the outer process forwards to the API server.
pub(crate) const PORT: &str = "CLUSTER_PORT";
/// The socket of the API server in the directory.
pub(crate) const SOCKET: &str = "api.sock";

/// Runs this program again in a sandbox.
pub(crate) fn enter() -> ExitCode {
    if let Some(lack) = needs::missing() {
        return skip(&lack);
    }
    let directory = directory();
    let guard = Guard::start(&directory, &create_mount_points());
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be built");
    // On the main thread: the sandbox ends with the thread that starts it.
    let code = runtime.block_on(run(&directory));
    guard.end(code)
}

async fn run(directory: &Path) -> u8 {
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a loopback address can be bound to");
    let port = listener.local_addr().expect("the listener is bound").port();
    let mut command = sandbox(directory, port).command();
    let mut sandbox = command.spawn().expect("unshare can be started");
    let handled = |kind| signal(kind).expect("a signal can be waited for");
    let mut interrupted = handled(SignalKind::interrupt());
    let mut terminated = handled(SignalKind::terminate());
    let mut hung_up = handled(SignalKind::hangup());
    let target = Target::Unix(directory.join(SOCKET));
    tokio::select! {
        ended = sandbox.wait() => {
            let code = ended.expect("a child can be waited for").code();
            code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
        }
        _ = interrupted.recv() => 130,
        _ = terminated.recv() => 143,
        _ = hung_up.recv() => 129,
        () = Proxy::Tcp(listener).run(target, None) => unreachable!("it does not end"),
    }
    // Dropping the handle terminates the sandbox.
}

/// In CI all programs must be installed; the kernel may lack features.
fn skip(lack: &Lack) -> ExitCode {
    let ci = std::env::var_os("CI").is_some_and(|ci| !ci.is_empty());
    match lack {
        Lack::Setup(reason) if ci => {
            println!("the cluster with a kubelet cannot run because {reason}, and CI must not skip");
            return ExitCode::FAILURE;
        }
        Lack::Setup(reason) => println!("SKIPPED: the cluster with a kubelet because {reason}"),
        Lack::Machine(reason) => println!("SKIPPED: this machine cannot run a kubelet: {reason}"),
    }
    ExitCode::SUCCESS
}

/// New namespaces of mounts, network, PIDs, host name and IPC; cgroups are those of the machine.
fn sandbox(directory: &Path, port: u16) -> Start {
    let own = std::env::current_exe().expect("a program has a path");
    let mut start = Start::with_pdeathsig("unshare")
        .args("--mount --net --pid --uts --ipc --fork --kill-child=KILL".split(' '))
        .args(["--mount-proc", "--propagation=private"])
        .args([concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/first")])
        .args([directory.display().to_string(), own.display().to_string()])
        .args(std::env::args().skip(1))
        .env(INSIDE, directory)
        .env("TMPDIR", directory.join("tmp"))
        .env(PORT, port.to_string());
    for name in ["CI", "RUST_BACKTRACE", "TERM", "UPDATE", images::OTHER] {
        if let Some(value) = std::env::var_os(name) {
            start = start.env(name, value);
        }
    }
    start
}

fn directory() -> PathBuf {
    let new = tempfile::Builder::new().prefix("diskplugin-e2e.").tempdir();
    // The guard removes it.
    let directory = new.expect("a temporary directory").keep();
    let directory = directory.canonicalize().expect("the directory exists");
    std::fs::create_dir(directory.join("tmp")).expect("the directory can be written");
    File::create(directory.join("lock")).expect("the directory can be written");
    directory
}

/// Creates and returns the missing mount points of the directories that the sandbox hides.
fn create_mount_points() -> Vec<PathBuf> {
    let all = worker::HIDDEN.iter().map(PathBuf::from);
    let missing = all.filter(|path| !path.exists()).collect::<Vec<_>>();
    for path in &missing {
        std::fs::create_dir_all(path).expect("root can create directories");
    }
    missing
}

/// The parent cgroup of all containers of the cluster.
pub(crate) fn cgroup(directory: &Path) -> String {
    let name = directory.file_name().expect("the directory has a name");
    name.display().to_string()
}

struct Guard {
    child: std::process::Child,
    stdin: ChildStdin,
}

impl Guard {
    fn start(directory: &Path, made: &[PathBuf]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/guard");
        #[expect(
            clippy::disallowed_methods,
            reason = "it outlives this process, and its waits have timeouts"
        )]
        let mut command = Command::new("setsid");
        // It must not receive signals of the test.
        let command = command
            .arg("--wait")
            .arg(script)
            .arg(directory)
            .arg(cgroup(directory))
            .arg(stay::link())
            .args(made);
        let mut child = command
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("setsid can be started");
        let stdin = child.stdin.take().expect("stdin is piped");
        Self { child, stdin }
    }

    /// Starts the cleanup by closing stdin, and waits for it.
    fn end(mut self, code: u8) -> ExitCode {
        drop(self.stdin);
        match self.child.wait() {
            Ok(status) if status.success() => ExitCode::from(code),
            _ => ExitCode::from(code.max(1)),
        }
    }
}

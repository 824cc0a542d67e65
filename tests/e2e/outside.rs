//! The outer process: it makes the place that a cluster lives in, waits for it, and sees to it that nothing stays.
//!
//! The place is a set of namespaces. When this process ends, however that comes about, the kernel ends the first
//! process of the place, with it all others, and then lets go of their mounts and networks. What it does not let go of
//! is the guard's, which is not in the place: loop devices, cgroups, the directory.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, ExitCode, Stdio};

use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use crate::common::process::Start;
use crate::door::{Door, Room};
use crate::needs::{self, Lack};
use crate::{images, stay, worker};

/// By what the inner process knows its directory, and that it is the inner one.
pub(crate) const INSIDE: &str = "CLUSTER_DIRECTORY";
/// Where the outer process listens for the inner API server, for whoever wants to talk to it from outside.
pub(crate) const DOOR: &str = "CLUSTER_DOOR";
/// The API server's socket, in the directory.
pub(crate) const SOCKET: &str = "api.sock";

/// Runs this program again in a place of its own.
pub(crate) fn enter() -> ExitCode {
    if let Some(lack) = needs::missing() {
        return skip(&lack);
    }
    let directory = directory();
    let guard = Guard::start(&directory, &made());
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be made");
    // On the main thread: the place ends with the thread that starts it.
    let code = runtime.block_on(run(&directory));
    guard.end(code)
}

async fn run(directory: &Path) -> u8 {
    let door = TcpListener::bind("127.0.0.1:0").await;
    let door = door.expect("a loopback address can be bound to");
    let port = door.local_addr().expect("it is bound").port();
    let mut command = place(directory, port).command();
    let mut place = command.spawn().expect("unshare can be started");
    let fine = "a signal can be waited for";
    let mut interrupted = signal(SignalKind::interrupt()).expect(fine);
    let mut terminated = signal(SignalKind::terminate()).expect(fine);
    let mut hung_up = signal(SignalKind::hangup()).expect(fine);
    let room = Room::Socket(directory.join(SOCKET));
    tokio::select! {
        ended = place.wait() => {
            let code = ended.expect("a child can be waited for").code();
            code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
        }
        _ = interrupted.recv() => 130,
        _ = terminated.recv() => 143,
        _ = hung_up.recv() => 129,
        () = Door::Tcp(door).lead(room) => unreachable!("it serves for ever"),
    }
    // What still runs ends with its handle.
}

/// CI brings all that can be installed, but no kernel.
fn skip(lack: &Lack) -> ExitCode {
    let ci = std::env::var_os("CI").is_some_and(|ci| !ci.is_empty());
    match lack {
        Lack::SetUp(why) if ci => {
            println!("the cluster with a kubelet cannot run because {why}, and CI skips nothing");
            ExitCode::FAILURE
        }
        Lack::SetUp(why) => {
            println!("SKIPPED: the cluster with a kubelet because {why}");
            ExitCode::SUCCESS
        }
        Lack::Machine(why) => {
            println!("SKIPPED: the cluster with a kubelet, which cannot be on this machine: {why}");
            ExitCode::SUCCESS
        }
    }
}

/// Everything of its own: mounts, network, process numbers, name, cgroups stay the machine's.
fn place(directory: &Path, port: u16) -> Start {
    let own = std::env::current_exe().expect("a program has a path");
    let mut start = Start::with_pdeathsig("unshare")
        .args([
            "--mount",
            "--net",
            "--pid",
            "--uts",
            "--ipc",
            "--fork",
            "--kill-child=KILL",
            "--mount-proc",
            "--propagation=private",
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/first"),
        ])
        .args([directory.display().to_string(), own.display().to_string()])
        .args(std::env::args().skip(1))
        .env(INSIDE, directory)
        .env("TMPDIR", directory.join("tmp"))
        .env(DOOR, port.to_string());
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
    let directory = new.expect("there is a place for temporary files").keep();
    let directory = directory.canonicalize().expect("it was just made");
    std::fs::create_dir(directory.join("tmp")).expect("it can be written");
    File::create(directory.join("lock")).expect("it can be written");
    directory
}

/// Makes those of the directories that are hidden inside which the machine does not have, so that something can be put
/// over them; which these are.
fn made() -> Vec<PathBuf> {
    let all = worker::HIDDEN.iter().map(PathBuf::from);
    let missing = all.filter(|path| !path.exists()).collect::<Vec<_>>();
    for path in &missing {
        std::fs::create_dir_all(path).expect("root can make directories");
    }
    missing
}

/// The cgroup that all containers of the cluster are below.
pub(crate) fn cgroup(directory: &Path) -> String {
    let name = directory.file_name().expect("it has a name");
    name.display().to_string()
}

struct Guard {
    child: std::process::Child,
    line: ChildStdin,
}

impl Guard {
    fn start(directory: &Path, made: &[PathBuf]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/guard");
        #[expect(
            clippy::disallowed_methods,
            reason = "it outlives whoever starts it, and its own waits are bounded"
        )]
        let mut command = Command::new("setsid");
        // It must get no signal that is meant for the test.
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
        let line = child.stdin.take().expect("it was asked for");
        Self { child, line }
    }

    /// Lets it do its work, and waits for it.
    fn end(mut self, code: u8) -> ExitCode {
        drop(self.line);
        let cleaned: io::Result<_> = self.child.wait();
        match cleaned {
            Ok(status) if status.success() => ExitCode::from(code),
            _ => ExitCode::from(code.max(1)),
        }
    }
}

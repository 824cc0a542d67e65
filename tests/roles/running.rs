//! Roles that run, each with its own directory and socket.

use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;
use tempfile::TempDir;
use tonic::transport::Channel;

use crate::common::csi::{self, endpoint};
use crate::common::fake::Fake;
use crate::common::process::{Ended, Process, Start, diskplugin};
use crate::common::wait::until;
use crate::http_client::{HttpResponse, address, get};

/// Timeout of any step on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(60);
/// The flag for an HTTP port that the kernel selects.
pub(crate) const HTTP: &str = "--http-address=127.0.0.1:0";
/// No server listens there.
pub(crate) const NO_METADATA: &str = "--metadata-endpoint=http://127.0.0.1:9";

/// A role that is ready. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) process: Process,
    pub(crate) channel: Channel,
    pub(crate) socket: PathBuf,
    _dir: TempDir,
}

impl Running {
    /// Starts a role on a socket in a new directory, and waits until it is ready.
    pub(crate) async fn of(start: impl FnOnce(&Path) -> Start) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let socket = csi::socket(&dir);
        let (process, channel) = start(&socket).ready(&socket).await;
        Self {
            process,
            channel,
            socket,
            _dir: dir,
        }
    }

    /// A controller of this cloud, with the access key.
    pub(crate) async fn controller(fake: &Fake, flags: &[&str]) -> Self {
        Self::of(|socket| fake.controller(socket).keys().args(flags)).await
    }

    /// The node plugin of the instance `i-1`.
    pub(crate) async fn node(flags: &[&str]) -> Self {
        Self::of(|socket| node(socket).args(flags)).await
    }

    /// Sends SIGTERM, after which the process must succeed.
    pub(crate) async fn stop(self) -> Ended {
        self.process.signal(Signal::SIGTERM);
        let ended = self.process.ended().await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended
    }

    /// The URL of its HTTP port.
    pub(crate) async fn http(&self) -> String {
        address(&self.process).await
    }

    pub(crate) async fn get(&self, path: &str) -> HttpResponse {
        get(&self.http().await, path).await
    }
}

/// The command of the node plugin of the instance `i-1`.
pub(crate) fn node(socket: &Path) -> Start {
    diskplugin(["node", "--zone=cn-beijing-b", "--node-id=i-1", &endpoint(socket)])
}

/// A controller with an HTTP port, and its fake cloud with these flags.
pub(crate) async fn served(cloud: &[&str], flags: &[&str]) -> (Fake, Running) {
    let fake = Fake::start(cloud).await;
    let controller = Running::controller(&fake, &[&[HTTP], flags].concat()).await;
    (fake, controller)
}

/// Waits until the condition is true.
pub(crate) async fn wait(what: &str, mut is_true: impl AsyncFnMut() -> bool) {
    until(what, SOON, async || is_true().await.then_some(())).await;
}

/// Waits until the process has logged it.
pub(crate) async fn logged(process: &Process, text: &str) {
    wait(&format!("the log has {text:?}"), async || {
        process.stderr().contains(text)
    })
    .await;
}

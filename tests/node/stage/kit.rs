//! A node with one attached disk.

use std::fs;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use diskplugin::base::Deadline;
use diskplugin::base::error_chain;
use diskplugin::linux::{Exec, ProcessExec};
use diskplugin::model::Filesystem;
use diskplugin::node::{self, NodeServices, StageRequest};

pub(crate) use crate::common::disk::{Disk, MIB, SIZE};
use crate::common::machine::TestDir;
pub(crate) use crate::common::mounts::is_mounted;
pub(crate) use crate::common::shell::sh;

/// Timeout of calls that must complete, also on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(300);

/// The state of a test.
pub(crate) struct World {
    disk: Disk,
    home: TestDir,
}

impl Deref for World {
    type Target = Disk;

    fn deref(&self) -> &Disk {
        &self.disk
    }
}

impl World {
    /// Creates a disk that is not attached. Returns `None` and prints the reason if this machine cannot run the tests.
    pub(crate) async fn detached() -> Option<Self> {
        static CREATED: AtomicU32 = AtomicU32::new(0);
        let tools = "command -v strace mkfs.ext4 mkfs.xfs mkfs.btrfs debugfs xfs_db";
        if !crate::common::shell::can_run("stage", tools).await {
            return None;
        }
        let home = TestDir::new();
        let serial = format!("stage{}", CREATED.fetch_add(1, Ordering::Relaxed));
        let disk = Disk::new(home.path(), &serial, SIZE);
        Some(Self { disk, home })
    }

    /// Creates and attaches a blank disk.
    pub(crate) async fn new() -> Option<Self> {
        let world = Self::detached().await?;
        world.attach().await;
        Some(world)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// A new node that runs commands with `exec`.
    pub(crate) fn node_with(&self, exec: Arc<dyn Exec>) -> Arc<NodeServices> {
        self.disk.node(Arc::new(ProcessExec), exec)
    }

    pub(crate) fn node(&self) -> Arc<NodeServices> {
        self.node_with(Arc::new(ProcessExec))
    }

    /// Stages with a new node. Retries host timeouts until the deadline, as kubelet does. The error includes its
    /// causes.
    pub(crate) async fn stage(&self, filesystem: Filesystem) -> Result<(), String> {
        let end = Deadline::after(TIMEOUT);
        loop {
            match self.stage_as(self.stage_request(filesystem)).await {
                Err(error) if error.starts_with("HOST_TIMEOUT") && !end.has_passed() => {}
                result => return result,
            }
        }
    }

    /// Stages with a new node, once.
    pub(crate) async fn stage_as(&self, request: StageRequest) -> Result<(), String> {
        let staged = self.node().stager.stage(request, Deadline::after(TIMEOUT)).await;
        staged.map_err(error_text)
    }

    pub(crate) async fn unstage(&self) {
        let (request, deadline) = (self.unstage_request(), Deadline::after(TIMEOUT));
        self.node().unmounter.unstage(request, deadline).await.unwrap();
    }

    /// Asserts that staging fails with this error and does not change the disk.
    pub(crate) async fn assert_rejected(&self, filesystem: Filesystem, name: &str) -> String {
        let before = self.hash().await;
        let error = self.stage(filesystem).await.unwrap_err();
        assert!(error.starts_with(name), "{error}");
        assert_eq!(self.hash().await, before);
        error
    }

    /// The number of format records.
    pub(crate) fn format_records(&self) -> usize {
        fs::read_dir(self.path("state/format")).map_or(0, Iterator::count)
    }
}

/// The error name and the error with its causes.
#[expect(clippy::needless_pass_by_value, reason = "map_err passes the error by value")]
pub(crate) fn error_text(error: node::Error) -> String {
    format!("{}: {}", error.failure().name(), error_chain(&error))
}

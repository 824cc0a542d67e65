//! The node's half: a disk that is attached to this machine becomes a directory or a device in a pod.
//!
//! Each verb looks (`observe`), decides (`plan`, pure), and only then acts (`run`). Which volume is
//! mounted where is learned from the mount table and sysfs every time, never remembered.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::base::{Guard, KeyedLocks, News, Tasks};
use crate::host::{Exec, Host, Records};
use crate::model::{Bytes, Category, DiskId, DriverName, InstanceId, ZoneId};

mod absent;
mod budget;
mod check;
mod complaint;
pub mod error;
pub mod expand;
pub mod find;
mod format;
pub mod health;
pub mod info;
mod journal;
pub mod mark;
mod name;
mod observe;
pub mod path;
mod place;
pub mod plan;
mod proof;
pub mod publish;
mod release;
pub mod request;
mod run;
mod sight;
pub mod stage;
mod staged;
pub mod stats;
mod takes;
mod undo;
pub mod unpublish;
pub mod unstage;

#[cfg(test)]
mod tests;

use self::budget::Budget;
use self::complaint::Complaints;
pub use error::{Error, Result};
pub use find::FindError;
pub use info::Info;
pub use mark::{MarkError, Marks};
pub use path::{InvalidPath, VolumePath};
pub use plan::Refusal;
pub use request::{Access, Expand, Health, Leave, Publish, Stage, Stats, Volume};
pub use stats::{Report, VolumeStats};

// What callers meet in errors and answers.
pub use crate::host::{Amount, HostError, Usage};

/// What the node is told about itself.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The instance this runs on; it is the CSI node id.
    pub id: InstanceId,
    /// The zone it is in.
    pub zone: ZoneId,
    /// How many volumes it takes; none leaves that to the cluster.
    pub max_volumes: Option<u32>,
    /// The categories of disks that its instance type takes; empty where nobody says.
    pub categories: Vec<Category>,
    /// Where limit and categories come from where they are not set.
    pub types: info::Types,
    /// The fake cloud's device directory: `DIR/<serial>` is a symlink to a loop device whose backing
    /// file is named `<serial>.<anything>`. None on a real machine.
    pub device_dir: Option<PathBuf>,
    /// kubelet's directory: volumes are staged and published only below it.
    pub kubelet_dir: PathBuf,
    /// Where the node keeps what must outlive it.
    pub state_dir: PathBuf,
}

/// The node.
#[derive(Debug)]
pub struct Node {
    host: Arc<dyn Host>,
    exec: Arc<dyn Exec>,
    settings: Settings,
    driver: DriverName,
    records: Records,
    budget: Budget,
    locks: KeyedLocks,
    tasks: Tasks,
    /// The categories that were told when the node was last asked what it is.
    told: Mutex<Vec<Category>>,
    news: News,
    complaints: Complaints,
}

impl Node {
    /// A node on this host.
    #[must_use]
    pub fn new(host: Arc<dyn Host>, exec: Arc<dyn Exec>, settings: Settings) -> Self {
        Self {
            host,
            exec,
            records: Records::new(settings.state_dir.clone()),
            settings,
            driver: DriverName::default(),
            budget: Budget::new(budget::DEFAULT),
            locks: KeyedLocks::default(),
            tasks: Tasks::default(),
            told: Mutex::default(),
            news: News::default(),
            complaints: Complaints::default(),
        }
    }

    /// With so much memory for the filesystem tools that run at once.
    #[must_use]
    pub fn with_tool_memory(mut self, memory: Bytes) -> Self {
        self.budget = Budget::new(memory);
        self
    }

    /// Of a driver of this name, in whose directory kubelet stages.
    #[must_use]
    pub fn of_driver(mut self, driver: DriverName) -> Self {
        self.driver = driver;
        self
    }

    /// The calls that run now; shutdown waits for them.
    #[must_use]
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// One call at a time for each volume.
    fn lock(&self, volume: &DiskId) -> Result<Guard> {
        self.locks
            .try_lock(volume.as_str())
            .ok_or_else(|| Error::Busy {
                volume: volume.clone(),
            })
    }
}

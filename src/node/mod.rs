//! The node side: presents a disk that is attached to this machine to pods as a directory or a device.
//!
//! Each operation reads the state of the host (`observe`), plans (`plan`, pure functions) and then executes the plan
//! (`run`). Mounts are read from the mount table and sysfs for every call, never cached.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::base::{KeyedLocks, LockGuard, LogOnce, Tasks};
use crate::host::{Exec, Host, Records};
use crate::model::{Bytes, Category, DiskId, DriverName, InstanceId, ZoneId};

mod attach_limits;
mod check;
mod device_not_found;
pub mod error;
pub mod expand;
mod failure;
pub mod find;
mod format;
mod format_record;
pub mod health;
mod health_log;
pub mod info;
mod kubelet_path;
pub mod map;
mod observe;
pub mod path;
pub mod plan;
mod prerequisites;
mod proof;
pub mod publish;
mod release;
pub mod request;
mod rollback;
mod run;
pub mod stage;
mod staged;
pub mod stats;
mod tool_memory;
pub mod unpublish;
pub mod unstage;

#[cfg(test)]
mod tests;

use self::health_log::HealthLog;
use self::tool_memory::ToolMemory;
pub use error::{Error, Result};
pub use find::ResolveError;
pub use info::NodeInfo;
pub use map::{MapError, Mappings};
pub use path::{InvalidPath, VolumePath};
pub use plan::PlanError;
pub use request::{
    Access, ExpandRequest, HealthRequest, PublishRequest, StageRequest, StatsRequest,
    UnpublishRequest, UnstageRequest, Volume,
};
pub use stats::{VolumeStats, VolumeUsage};

// Part of errors and results.
pub use crate::host::{Amount, HostError, Usage};

#[derive(Debug, Clone)]
pub struct Settings {
    /// The instance that the plugin runs on. It is the CSI node ID.
    pub id: InstanceId,
    pub zone: ZoneId,
    /// The volume limit. Overrides the limit of the instance type.
    pub max_volumes: Option<u32>,
    /// The disk categories that the instance type supports. Empty if not configured.
    pub categories: Vec<Category>,
    /// The source of the limit and the categories that are not configured.
    pub instance_types: info::InstanceTypeSource,
    /// The fake cloud's device directory: `DIR/<serial>` is a symlink to a loop device whose backing
    /// file is named `<serial>.<anything>`. `None` on real instances.
    pub device_dir: Option<PathBuf>,
    /// The root directory of kubelet. Staging and target paths must be below it.
    pub kubelet_dir: PathBuf,
    /// The directory of the records that outlive the process.
    pub state_dir: PathBuf,
}

/// The operations of the Node service on one host.
#[derive(Debug)]
pub struct Node {
    host: Arc<dyn Host>,
    exec: Arc<dyn Exec>,
    settings: Settings,
    driver: DriverName,
    records: Records,
    tool_memory: ToolMemory,
    locks: KeyedLocks,
    tasks: Tasks,
    /// The disk categories of the last `NodeGetInfo` response.
    reported_categories: Mutex<Vec<Category>>,
    log_once: LogOnce,
    health_log: HealthLog,
}

impl Node {
    #[must_use]
    pub fn new(host: Arc<dyn Host>, exec: Arc<dyn Exec>, settings: Settings) -> Self {
        Self {
            host,
            exec,
            records: Records::new(settings.state_dir.clone()),
            settings,
            driver: DriverName::default(),
            tool_memory: ToolMemory::new(tool_memory::DEFAULT),
            locks: KeyedLocks::default(),
            tasks: Tasks::default(),
            reported_categories: Mutex::default(),
            log_once: LogOnce::default(),
            health_log: HealthLog::default(),
        }
    }

    /// Limits the memory of all concurrent filesystem tools.
    #[must_use]
    pub fn with_tool_memory(mut self, memory: Bytes) -> Self {
        self.tool_memory = ToolMemory::new(memory);
        self
    }

    /// Sets the driver name, which is part of kubelet's staging paths.
    #[must_use]
    pub fn with_driver_name(mut self, driver: DriverName) -> Self {
        self.driver = driver;
        self
    }

    /// The running calls, for which the shutdown waits.
    #[must_use]
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Locks the volume for one call.
    ///
    /// # Errors
    /// [`Error::OperationPending`] if another call holds the lock.
    fn lock(&self, volume: &DiskId) -> Result<LockGuard> {
        self.locks
            .try_lock(volume.as_str())
            .ok_or_else(|| Error::OperationPending {
                volume: volume.clone(),
            })
    }
}

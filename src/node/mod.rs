//! The node side: presents a disk that is attached to this machine to pods as a directory or a device.
//!
//! Stage, publish and expand read the state of the host (`observe`), plan (`plan`, pure functions) and then execute the
//! plan (`run`). Unpublish and unstage start from the mount table. Mounts are read from the mount table and sysfs for
//! every call, never cached. Each operation is a service with the parts that it uses; `services` constructs them.

use std::path::PathBuf;

use crate::model::{Category, InstanceId, ZoneId};

mod attach_limits;
mod block_settings;
mod check;
mod device_check;
mod device_not_found;
pub mod error;
pub mod expand;
pub mod find_device;
mod format;
mod format_record;
mod grow_partition;
pub mod health;
mod health_issue;
mod health_log;
pub mod info;
mod io_watch;
mod mounted;
mod mounter;
mod observe;
pub mod path;
pub mod plan;
mod prerequisites;
pub mod publish;
mod release;
mod release_candidates;
pub mod request;
mod run;
mod services;
pub mod stage;
mod staged;
mod tool_slots;
mod tool_versions;
mod tools;
pub mod unmount;
mod volume_operations;

#[cfg(test)]
mod tests;

pub use attach_limits::InstanceTypeSource;
pub use error::{Error, Result};
pub use health::StagedVolume;
pub use health_issue::{VolumeStats, VolumeUsage};
pub use info::NodeInfo;
pub use path::{InvalidPath, VolumePath};
pub use plan::PlanError;
pub use prerequisites::Prerequisites;
pub use request::{Access, ExpandRequest, HealthRequest, PathRequest, PublishRequest, StageRequest, Volume};
pub use services::NodeServices;
pub use tool_versions::tool_versions;

// Part of errors and results.
pub use crate::linux::{Amount, HostError, Usage};

#[derive(Debug, Clone)]
pub struct NodeSettings {
    /// The instance that the plugin runs on. It is the CSI node ID.
    pub id: InstanceId,
    pub zone: ZoneId,
    /// The volume limit. Overrides the limit of the instance type.
    pub max_volumes: Option<u32>,
    /// The disk categories that the instance type supports. Empty if not configured.
    pub categories: Vec<Category>,
    /// The source of the limit and the categories that are not configured.
    pub instance_types: InstanceTypeSource,
    /// The fake cloud's device directory: `DIR/<serial>` is a symlink to a loop device whose backing
    /// file is named `<serial>.<anything>`. `None` on real instances.
    pub device_dir: Option<PathBuf>,
    /// The root directory of kubelet. Staging and target paths must be below it.
    pub kubelet_dir: PathBuf,
    /// The directory of the records that outlive the process.
    pub state_dir: PathBuf,
}

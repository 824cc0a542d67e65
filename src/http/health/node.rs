//! Checks what the node plugin needs from its host, at the start and in `/readyz`. docs/reference/support.md lists
//! them.

use super::check::{Check, TIMEOUT};
use crate::base::Deadline;
use crate::node::Prerequisites;

/// Programs that are required for staging and expanding filesystems.
const TOOLS: [&str; 12] = [
    "blkid",
    "blockdev",
    "sfdisk",
    "partx",
    "e2fsck",
    "resize2fs",
    "mkfs.ext4",
    "mkfs.ext3",
    "mkfs.xfs",
    "xfs_growfs",
    "mkfs.btrfs",
    "btrfs",
];

const KERNEL_ADVICE: &str = "check the kernel log, and whether the container has the /sys and /dev of the host";

const STATE_ADVICE: &str = "the node needs its state after a restart: check whether the disk is full or read-only, and \
                            whether the directory is mounted into the container";

const PROC_ADVICE: &str = "check whether the container has a /proc";

#[derive(Debug, Clone)]
pub(crate) struct NodeChecks {
    pub(crate) prerequisites: Prerequisites,
    pub(crate) require_shared_mounts: bool,
}

impl NodeChecks {
    pub(crate) async fn run(&self) -> Vec<Check> {
        let host = &self.prerequisites;
        let kernel = check(
            "kernel",
            "reading the kernel's release",
            PROC_ADVICE,
            host.check_kernel(),
        );
        let devices = async {
            let listed = host.check_devices().await;
            listed.map_err(|message| format!("{message}; {KERNEL_ADVICE}"))?;
            Ok("they can be listed, and their nodes exist".to_owned())
        };
        let state = async {
            let written = host.check_state_dir().await;
            written.map_err(|message| format!("{message}; {STATE_ADVICE}"))?;
            Ok("it is writable".to_owned())
        };
        let (kernel, capabilities, devices, mounts, state) = tokio::join!(
            kernel,
            self.capabilities(),
            check("devices", "listing them", KERNEL_ADVICE, devices),
            self.mounts(),
            check("state", "writing to it", STATE_ADVICE, state)
        );
        let checks = [Some(kernel), Some(capabilities), Some(devices), mounts, Some(state)];
        let tools = Check::new("tools", tools());
        checks.into_iter().flatten().chain([tools]).collect()
    }

    /// Runs all checks, and logs those that fail. The driver starts nevertheless: what is mounted can be unmounted.
    pub(crate) async fn log_failed(&self) {
        for Check { name, message, .. } in self.run().await.iter().filter(|check| !check.ok) {
            tracing::warn!(check = name, "the node is not ready: {message}");
        }
    }

    async fn capabilities(&self) -> Check {
        let mut is_limited = false;
        let granted = async {
            let limitation = self.prerequisites.check_capabilities().await?;
            is_limited = limitation.is_some();
            Ok(limitation.unwrap_or_else(|| "all are granted".to_owned()))
        };
        let check = check("capabilities", "reading them", PROC_ADVICE, granted).await;
        Check { is_limited, ..check }
    }

    async fn mounts(&self) -> Option<Check> {
        if !self.require_shared_mounts {
            return None;
        }
        let shared = async {
            self.prerequisites.check_mount_propagation().await?;
            Ok("they propagate to kubelet".to_owned())
        };
        Some(check("mounts", "reading the mount table", KERNEL_ADVICE, shared).await)
    }
}

/// The result of a check; an operation that does not finish in time fails with this advice.
async fn check(
    name: &'static str,
    operation: &str,
    advice: &str,
    checked: impl Future<Output = Result<String, String>>,
) -> Check {
    let late = |_| {
        Err(format!(
            "{operation} has not finished within {} s; {advice}",
            TIMEOUT.as_secs()
        ))
    };
    let outcome = Deadline::after(TIMEOUT).bound(checked).await;
    Check::new(name, outcome.unwrap_or_else(late))
}

/// Whether the programs that a node executes are in `PATH`.
fn tools() -> Result<String, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let exists = |tool: &&str| std::env::split_paths(&path).any(|dir| dir.join(tool).exists());
    let missing: Vec<_> = TOOLS.into_iter().filter(|tool| !exists(tool)).collect();
    if missing.is_empty() {
        return Ok("all are installed".to_owned());
    }
    Err(format!(
        "not in PATH, but required for volumes with a filesystem: {}; use the image of this project, or install blkid, fdisk, \
         e2fsprogs, xfsprogs and btrfs-progs",
        missing.join(", ")
    ))
}

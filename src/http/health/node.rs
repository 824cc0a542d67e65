//! Checks what the node plugin needs from its host, at the start and in `/readyz`. docs/reference/support.md lists
//! them.

use super::check::{Check, TIMEOUT};
use super::tools;
use crate::base::Deadline;
use crate::node::Prerequisites;

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
        let (kernel, capabilities, devices, mounts, state) = tokio::join!(
            self.kernel(),
            self.capabilities(),
            self.devices(),
            self.mounts(),
            self.state()
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

    async fn kernel(&self) -> Check {
        let release = self.prerequisites.check_kernel();
        let outcome = match Deadline::after(TIMEOUT).bound(release).await {
            Ok(outcome) => outcome,
            Err(_) => Err(timed_out("reading the kernel's release", PROC_ADVICE)),
        };
        Check::new("kernel", outcome)
    }

    async fn capabilities(&self) -> Check {
        let granted = self.prerequisites.check_capabilities();
        let (outcome, is_limited) = match Deadline::after(TIMEOUT).bound(granted).await {
            Ok(Ok(Some(limitation))) => (Ok(limitation), true),
            Ok(Ok(None)) => (Ok("all are granted".to_owned()), false),
            Ok(Err(message)) => (Err(message), false),
            Err(_) => (Err(timed_out("reading them", PROC_ADVICE)), false),
        };
        Check {
            is_limited,
            ..Check::new("capabilities", outcome)
        }
    }

    async fn devices(&self) -> Check {
        let available = self.prerequisites.check_devices();
        let outcome = match Deadline::after(TIMEOUT).bound(available).await {
            Ok(Ok(())) => Ok("they can be listed, and their nodes exist".to_owned()),
            Ok(Err(message)) => Err(format!("{message}; {KERNEL_ADVICE}")),
            Err(_) => Err(timed_out("listing them", KERNEL_ADVICE)),
        };
        Check::new("devices", outcome)
    }

    async fn mounts(&self) -> Option<Check> {
        if !self.require_shared_mounts {
            return None;
        }
        let shared = self.prerequisites.check_mount_propagation();
        let outcome = match Deadline::after(TIMEOUT).bound(shared).await {
            Ok(Ok(())) => Ok("they propagate to kubelet".to_owned()),
            Ok(Err(message)) => Err(message),
            Err(_) => Err(timed_out("reading the mount table", KERNEL_ADVICE)),
        };
        Some(Check::new("mounts", outcome))
    }

    async fn state(&self) -> Check {
        let written = self.prerequisites.check_state_dir();
        let outcome = match Deadline::after(TIMEOUT).bound(written).await {
            Ok(Ok(())) => Ok("it is writable".to_owned()),
            Ok(Err(message)) => Err(format!("{message}; {STATE_ADVICE}")),
            Err(_) => Err(timed_out("writing to it", STATE_ADVICE)),
        };
        Check::new("state", outcome)
    }
}

fn timed_out(operation: &str, todo: &str) -> String {
    format!("{operation} has not finished within {} s; {todo}", TIMEOUT.as_secs())
}

/// Whether the programs that a node executes are in `PATH`.
fn tools() -> Result<String, String> {
    let missing = tools::missing(std::env::var_os("PATH").as_deref());
    match missing.as_slice() {
        [] => Ok("all are installed".to_owned()),
        missing => Err(format!(
            "not in PATH, but required for volumes with a filesystem: {}; use the image of this project, or install blkid, fdisk, \
             e2fsprogs, xfsprogs and btrfs-progs",
            missing.join(", ")
        )),
    }
}

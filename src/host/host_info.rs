//! Caches properties of the host that do not change while the process runs.

use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::blocking::blocking;
use super::error::{HostError, Result};
use crate::base::Deadline;

/// The cached values. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct HostInfo {
    boot_id: Arc<OnceLock<String>>,
    may_grow_mounted_ext: Arc<OnceLock<bool>>,
}

impl HostInfo {
    /// The boot ID: `sys/kernel/random/boot_id` of the procfs mounted at `proc`.
    pub(super) async fn boot_id(&self, deadline: Deadline, proc: &Path) -> Result<String> {
        if let Some(known) = self.boot_id.get() {
            return Ok(known.clone());
        }
        let text = read(deadline, &proc.join("sys/kernel/random/boot_id")).await?;
        let read = text.trim().to_owned();
        Ok(self.boot_id.get_or_init(|| read).clone())
    }

    /// Whether this process has the capability to grow mounted ext filesystems. It never drops capabilities.
    pub(super) async fn may_grow_mounted_ext(
        &self,
        deadline: Deadline,
        proc: &Path,
    ) -> Result<bool> {
        if let Some(known) = self.may_grow_mounted_ext.get() {
            return Ok(*known);
        }
        let status = proc.join("self/status");
        let text = read(deadline, &status).await?;
        let read = has_sys_resource(&text).ok_or_else(|| HostError::UnexpectedFormat {
            path: status,
            reason: "the CapEff line is missing".to_owned(),
        })?;
        Ok(*self.may_grow_mounted_ext.get_or_init(|| read))
    }
}

async fn read(deadline: Deadline, path: &Path) -> Result<String> {
    let file = path.to_owned();
    blocking(deadline, "read", path, move || {
        fs::read_to_string(&file).map_err(|error| HostError::io("read", &file, error))
    })
    .await
}

/// Whether `CapEff` of `/proc/self/status` contains `CAP_SYS_RESOURCE` (capability 24).
fn has_sys_resource(status: &str) -> Option<bool> {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    Some(mask & (1 << 24) != 0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_capability_is_read_from_the_mask() {
        assert_eq!(has_sys_resource("CapEff:\t000001ffffffffff\n"), Some(true));
        assert_eq!(has_sys_resource("CapEff:\t000001fffeffffff\n"), Some(false));
        assert_eq!(has_sys_resource("Name:\tx\n"), None);
    }

    #[tokio::test]
    async fn values_are_cached_and_errors_are_not() {
        let proc = tempfile::tempdir().unwrap();
        let file = proc.path().join("sys/kernel/random/boot_id");
        let host_info = HostInfo::default();
        let boot_id = async || {
            let soon = Deadline::after(Duration::from_secs(30));
            host_info.boot_id(soon, proc.path()).await
        };
        boot_id().await.unwrap_err();
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "one\n").unwrap();
        assert_eq!(boot_id().await.unwrap(), "one");
        fs::write(&file, "two\n").unwrap();
        assert_eq!(boot_id().await.unwrap(), "one");
    }
}

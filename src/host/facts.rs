//! What stays as it is for as long as this process lives, read once.

use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::blocking::blocking;
use super::error::{HostError, Result};
use crate::base::Deadline;

/// What is known so far. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    boot_id: Arc<OnceLock<String>>,
    may_grow_mounted_ext: Arc<OnceLock<bool>>,
}

impl Facts {
    /// The machine's start: `sys/kernel/random/boot_id` of procfs, which must be mounted at `proc`.
    pub(super) async fn boot_id(&self, deadline: Deadline, proc: &Path) -> Result<String> {
        if let Some(known) = self.boot_id.get() {
            return Ok(known.clone());
        }
        let text = read(deadline, &proc.join("sys/kernel/random/boot_id")).await?;
        let read = text.trim().to_owned();
        Ok(self.boot_id.get_or_init(|| read).clone())
    }

    /// Whether this process has the capability to grow ext filesystems that are mounted. It gives none away while it runs.
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
        let read = has_sys_resource(&text).ok_or_else(|| HostError::Format {
            path: status,
            reason: "there is no CapEff line".to_owned(),
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

/// Whether `CapEff` of `/proc/self/status` holds `CAP_SYS_RESOURCE` (capability 24).
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
    fn the_capability_is_read_off_the_mask() {
        assert_eq!(has_sys_resource("CapEff:\t000001ffffffffff\n"), Some(true));
        assert_eq!(has_sys_resource("CapEff:\t000001fffeffffff\n"), Some(false));
        assert_eq!(has_sys_resource("Name:\tx\n"), None);
    }

    #[tokio::test]
    async fn what_was_read_is_kept_and_what_failed_is_asked_again() {
        let proc = tempfile::tempdir().unwrap();
        let file = proc.path().join("sys/kernel/random/boot_id");
        let facts = Facts::default();
        let ask = async || {
            let quick = Deadline::after(Duration::from_secs(30));
            facts.boot_id(quick, proc.path()).await
        };
        ask().await.unwrap_err();
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "one\n").unwrap();
        assert_eq!(ask().await.unwrap(), "one");
        fs::write(&file, "two\n").unwrap();
        assert_eq!(ask().await.unwrap(), "one");
    }
}

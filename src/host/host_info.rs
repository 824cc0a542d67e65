//! Caches properties of the host that do not change while the process runs.

use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::blocking::blocking;
use super::capability::Capabilities;
use super::error::{HostError, IoResult, Result};
use crate::base::Deadline;

/// The cached values. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct HostInfo {
    boot_id: Arc<OnceLock<String>>,
    capabilities: Arc<OnceLock<Capabilities>>,
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

    /// The capabilities of this process, which never drops any.
    pub(super) async fn capabilities(
        &self,
        deadline: Deadline,
        proc: &Path,
    ) -> Result<Capabilities> {
        if let Some(known) = self.capabilities.get() {
            return Ok(*known);
        }
        let status = proc.join("self/status");
        let text = read(deadline, &status).await?;
        let read = Capabilities::parse(&text).ok_or_else(|| HostError::UnexpectedFormat {
            path: status,
            reason: "CapEff is missing or not a hexadecimal number".to_owned(),
        })?;
        Ok(*self.capabilities.get_or_init(|| read))
    }
}

async fn read(deadline: Deadline, path: &Path) -> Result<String> {
    blocking(deadline, "read", path, |path| {
        fs::read_to_string(path).io_context("read", path)
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

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

//! Logs each change of volume health once, although kubelet queries it every minute.

use std::path::{Path, PathBuf};

use crate::base::LogOnce;
use crate::model::DiskId;
use crate::model::health::{HEALTHY_AGAIN, HealthIssue, UNHEALTHY};

/// The last logged health issues of each volume and path: a stale mount can exist next to a healthy one. Healthy and
/// unstaged volumes have no entry.
#[derive(Debug, Default)]
pub(super) struct HealthLog(LogOnce<(DiskId, PathBuf)>);

impl HealthLog {
    /// Logs the change since the last call, if any: as a warning also if the volume is healthy again, so that its
    /// history has both.
    pub(super) fn log_change(&self, volume: &DiskId, path: &Path, issues: &[HealthIssue]) {
        if let Some(message) = self.change(volume, path, issues) {
            tracing::warn!(disk.id = %volume, "{message}");
        }
    }

    /// Removes an unstaged volume. If it was unhealthy, that is logged: it is not known to be healthy.
    pub(super) fn forget(&self, volume: &DiskId) {
        if self.0.clear_matching(|(disk, _)| disk == volume) {
            tracing::info!(disk.id = %volume, "an unhealthy volume was unstaged from this node");
        }
    }

    /// The same issues are not a change, even if their messages contain different durations.
    fn change(&self, volume: &DiskId, path: &Path, issues: &[HealthIssue]) -> Option<String> {
        let key = (volume.clone(), path.to_owned());
        if issues.is_empty() {
            return self.0.clear(&key).then(|| HEALTHY_AGAIN.to_owned());
        }
        let reasons: Vec<_> = issues.iter().map(|issue| issue.reason.as_str()).collect();
        if !self.0.should_log(key, &reasons.join(" ")) {
            return None;
        }
        let messages: Vec<_> = issues.iter().map(|issue| issue.message.as_str()).collect();
        Some(format!("{UNHEALTHY}: {}", messages.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::base::log_capture::LogCapture;
    use crate::node::health_issue;

    fn hangs(seconds: u64) -> HealthIssue {
        health_issue::filesystem_hangs(Path::new("/staging"), Duration::from_secs(seconds))
    }

    #[test]
    fn each_change_is_logged_once() {
        let (health_log, volume) = (HealthLog::default(), "d-bp1".parse().unwrap());
        let other = "d-bp2".parse().unwrap();
        let path = Path::new("/staging");
        let change = |issues: &[HealthIssue]| health_log.change(&volume, path, issues);
        assert_eq!(change(&[]), None);
        let message = change(&[hangs(5)]).unwrap();
        assert!(message.starts_with(UNHEALTHY) && message.contains("5 s"), "{message}");
        assert_eq!(change(&[hangs(65)]), None);
        assert!(health_log.change(&other, path, &[hangs(65)]).is_some());
        let gone = health_issue::device_gone(path);
        assert!(change(&[gone]).is_some());
        assert_eq!(change(&[]).as_deref(), Some(HEALTHY_AGAIN));
        assert_eq!(change(&[]), None);
    }

    #[test]
    fn a_stale_mount_next_to_a_healthy_one_causes_no_repeated_logs() {
        let (health_log, volume) = (HealthLog::default(), "d-bp1".parse().unwrap());
        let (stale, good) = (Path::new("/stale"), Path::new("/good"));
        let changed = |path: &Path, issues: &[HealthIssue]| health_log.change(&volume, path, issues).is_some();
        assert!(changed(stale, &[hangs(5)]));
        assert!(!changed(good, &[]) && !changed(stale, &[hangs(5)]) && !changed(good, &[]));
    }

    #[test]
    fn an_unstaged_volume_is_not_logged_as_healthy() {
        let (health_log, volume) = (HealthLog::default(), "d-bp1".parse().unwrap());
        let path = Path::new("/staging");
        assert!(health_log.change(&volume, path, &[hangs(5)]).is_some());
        let (log, _guard) = LogCapture::start();
        for _ in 0..2 {
            health_log.forget(&volume);
        }
        assert_eq!(log.lines().len(), 1);
        assert_eq!(health_log.change(&volume, path, &[]), None);
    }
}

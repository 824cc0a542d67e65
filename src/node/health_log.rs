//! Logs each change of volume health once, although kubelet queries it every minute.

use std::path::{Path, PathBuf};

use super::health_issue::HealthIssue;
use crate::base::LogOnce;
use crate::model::DiskId;
use crate::model::health::{HEALTHY_AGAIN, UNHEALTHY};

/// The last logged health issues of each volume and path: a stale mount can exist next to a healthy one. Healthy and
/// unstaged volumes have no entry.
#[derive(Debug, Default)]
pub(super) struct HealthLog(LogOnce<(DiskId, PathBuf)>);

#[derive(Debug, PartialEq, Eq)]
enum Change {
    /// The issues, with advice.
    Unhealthy(String),
    Healthy,
}

impl HealthLog {
    /// Logs the change since the last call, if any.
    pub(super) fn log_change(&self, volume: &DiskId, path: &Path, issues: &[HealthIssue]) {
        match self.change(volume, path, issues) {
            Some(Change::Unhealthy(message)) => {
                tracing::warn!(disk.id = %volume, "{UNHEALTHY}: {message}");
            }
            Some(Change::Healthy) => {
                // A warning too, so that the history of the volume has both.
                tracing::warn!(disk.id = %volume, "{HEALTHY_AGAIN}");
            }
            None => {}
        }
    }

    /// Removes an unstaged volume. If it was unhealthy, that is logged: it is not known to be healthy.
    pub(super) fn forget(&self, volume: &DiskId) {
        if self.clear(volume) {
            tracing::info!(disk.id = %volume, "an unhealthy volume was unstaged from this node");
        }
    }

    fn clear(&self, volume: &DiskId) -> bool {
        self.0.clear_matching(|(disk, _)| disk == volume)
    }

    /// The same issues are not a change, even if their messages contain different durations.
    fn change(&self, volume: &DiskId, path: &Path, issues: &[HealthIssue]) -> Option<Change> {
        let key = (volume.clone(), path.to_owned());
        if issues.is_empty() {
            return self.0.clear(&key).then_some(Change::Healthy);
        }
        let reasons: Vec<_> = issues.iter().map(HealthIssue::reason).collect();
        if !self.0.should_log(key, &reasons.join(" ")) {
            return None;
        }
        let messages: Vec<_> = issues.iter().map(ToString::to_string).collect();
        Some(Change::Unhealthy(messages.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn hangs(seconds: u64) -> HealthIssue {
        HealthIssue::FilesystemHangs {
            path: "/staging".into(),
            since: Duration::from_secs(seconds),
        }
    }

    #[test]
    fn each_change_is_logged_once() {
        let (health_log, volume) = (HealthLog::default(), "d-bp1".parse().unwrap());
        let other = "d-bp2".parse().unwrap();
        let path = Path::new("/staging");
        let change = |issues: &[HealthIssue]| health_log.change(&volume, path, issues);
        assert_eq!(change(&[]), None);
        assert!(matches!(change(&[hangs(5)]), Some(Change::Unhealthy(message)) if message.contains("5 s")));
        assert_eq!(change(&[hangs(65)]), None);
        assert!(health_log.change(&other, path, &[hangs(65)]).is_some());
        let gone = HealthIssue::DeviceGone { path: path.into() };
        assert!(change(&[gone]).is_some());
        assert_eq!(change(&[]), Some(Change::Healthy));
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
        assert!(health_log.clear(&volume) && !health_log.clear(&volume));
        assert_eq!(health_log.change(&volume, path, &[]), None);
    }
}

//! Reads the health of disks from their rows and from the cloud's health reports.

use ecs::poll::MAX_IDS_PER_CALL;
use jiff::Timestamp;

use super::Inventory;
use super::list::Cursor;
use crate::base::Deadline;
use crate::disk::Result;
use crate::disk::error::{cloud, wait};
use crate::disk::read::read_disk;
use crate::model::health::{HealthIssue, Severity};
use crate::model::{Disk, DiskHealth, DiskId, DiskStatus, HealthEvent};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnhealthyVolume {
    pub disk: DiskId,
    pub health_issues: Vec<HealthIssue>,
    created: Option<Timestamp>,
}

impl UnhealthyVolume {
    pub fn cursor(&self) -> Cursor {
        Cursor::new(self.created, &self.disk)
    }
}

/// The issues that the row shows; empty if the disk is healthy.
pub fn health_issues(row: &Disk) -> Vec<HealthIssue> {
    let disk = &row.id;
    let locked = |lock: &String| {
        let message = format!(
            "the cloud has locked disk {disk} ({lock}): it rejects changes and may release the disk; contact the cloud's \
             support or billing"
        );
        HealthIssue::new(Severity::Degraded, camel_case("Locked", lock), message)
    };
    let mut found: Vec<HealthIssue> = row.locks.iter().map(locked).collect();
    match &row.status {
        DiskStatus::ReIniting => {
            let message = format!("disk {disk} is being reset to a snapshot");
            found.push(HealthIssue::new(Severity::Inaccessible, "Reinitializing", message));
        }
        DiskStatus::Unknown(status) => {
            let message = format!("disk {disk} is {status:?}, a status that this driver does not support");
            found.push(HealthIssue::new(Severity::Degraded, "UnknownStatus", message));
        }
        DiskStatus::Creating
        | DiskStatus::Available
        | DiskStatus::Attaching
        | DiskStatus::InUse
        | DiskStatus::Detaching => {}
    }
    found.sort();
    found.dedup_by(|a, b| a.reason == b.reason);
    found
}

fn reported_issues(health: &DiskHealth) -> Vec<HealthIssue> {
    let (disk, status) = (&health.disk, &health.status);
    let advice = "check the disk's events in the console";
    let reported = |event: &HealthEvent| {
        // I/O hangs; other events reduce the performance.
        let severity = match event.kind.as_str() {
            "Stalled" => Severity::Inaccessible,
            _ => Severity::Degraded,
        };
        let HealthEvent { kind, id } = event;
        let message = format!("the cloud reports {kind} for disk {disk} (event {id}); {advice}");
        HealthIssue::new(severity, camel_case("", kind), message)
    };
    let mut found: Vec<HealthIssue> = health.events.iter().map(reported).collect();
    if matches!(status.as_str(), "Impaired" | "Warning") && found.is_empty() {
        let message = format!("the cloud reports status {status} for disk {disk}; {advice}");
        found.push(HealthIssue::new(Severity::Degraded, status, message));
    }
    found
}

fn camel_case(prefix: &str, text: &str) -> String {
    let mut word = text.to_owned();
    word.retain(|letter| letter.is_ascii_alphanumeric());
    if let Some(first) = word.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    format!("{prefix}{word}")
}

fn merge_issues(mut found: Vec<HealthIssue>, health: Option<&DiskHealth>) -> Vec<HealthIssue> {
    found.extend(health.map(reported_issues).unwrap_or_default());
    found.sort();
    found.dedup_by(|a, b| (a.severity, &a.reason) == (b.severity, &b.reason));
    found
}

impl Inventory {
    pub async fn health(&self, deadline: Deadline, disk: &DiskId) -> Result<(Disk, Vec<HealthIssue>)> {
        let (row, health) = tokio::join!(
            read_disk(&self.shared.disks, deadline, disk),
            self.disk_health.observe(disk, deadline)
        );
        let row = row?;
        let health = health.map_err(wait(format!("read the health of disk {disk}")))?;
        let found = merge_issues(health_issues(&row), health.row().as_deref());
        Ok((row, found))
    }

    pub async fn list_unhealthy(&self, deadline: Deadline) -> Result<Vec<UnhealthyVolume>> {
        let volume = |row: &Disk| UnhealthyVolume {
            disk: row.id.clone(),
            health_issues: health_issues(row),
            created: row.created,
        };
        let mut rows = self.list(deadline, volume).await?;
        for chunk in rows.chunks_mut(MAX_IDS_PER_CALL) {
            let ids: Vec<_> = chunk.iter().map(|row| row.disk.clone()).collect();
            let page = self.shared.ecs.describe_disk_health(deadline, &ids).await;
            let page = page.map_err(cloud("read the health of the disks"))?;
            for row in chunk {
                let health = page.rows.iter().find(|health| health.disk == row.disk);
                row.health_issues = merge_issues(std::mem::take(&mut row.health_issues), health);
            }
        }
        rows.retain(|row| !row.health_issues.is_empty());
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issue_of(status: &str, events: &[&str]) -> Vec<(Severity, String)> {
        let event = |kind: &&str| HealthEvent {
            kind: (*kind).to_owned(),
            id: "e-1".to_owned(),
        };
        let health = DiskHealth {
            disk: "d-1".parse().unwrap(),
            status: status.to_owned(),
            events: events.iter().map(event).collect(),
        };
        let found = reported_issues(&health).into_iter();
        found.map(|a| (a.severity, a.reason)).collect()
    }

    #[test]
    fn reported_issues_have_severity_and_reason() {
        let one = |severity, word: &str| vec![(severity, word.to_owned())];
        assert_eq!(issue_of("Ok", &[]), []);
        for status in ["Initializing", "InsufficientData", "NotApplicable"] {
            assert_eq!(issue_of(status, &[]), []);
        }
        assert_eq!(issue_of("Impaired", &[]), one(Severity::Degraded, "Impaired"));
        assert_eq!(
            issue_of("Impaired", &["Stalled"]),
            one(Severity::Inaccessible, "Stalled")
        );
        assert_eq!(
            issue_of("Ok", &["some new-event"]),
            one(Severity::Degraded, "Somenewevent")
        );
    }
}

//! How disks are: what their rows tell, and what the cloud says of their health.

use jiff::Timestamp;

use super::Inventory;
use super::list::Cursor;
use crate::base::Deadline;
use crate::cloud::view::MAX_IDS_PER_CALL;
use crate::disk::Result;
use crate::disk::error::{cloud, wait};
use crate::disk::read::read_disk;
use crate::model::{Disk, DiskHealth, DiskId, DiskStatus, HealthEvent};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It can be used, though not as it should be.
    Degraded,
    /// It cannot be used.
    Inaccessible,
}

/// Something that is wrong with a disk now.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HealthIssue {
    pub severity: Severity,
    /// What it is, for machines: a word in camel case. Each once for a disk.
    pub reason: String,
    /// What it is and what to do, for people.
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnhealthyVolume {
    pub disk: DiskId,
    /// What is wrong with it; never empty.
    pub health_issues: Vec<HealthIssue>,
    created: Option<Timestamp>,
}

impl UnhealthyVolume {
    pub fn cursor(&self) -> Cursor {
        Cursor::new(self.created, &self.disk)
    }
}

fn health_issue(severity: Severity, reason: impl Into<String>, message: String) -> HealthIssue {
    HealthIssue {
        severity,
        reason: reason.into(),
        message,
    }
}

/// What the row alone shows; empty if nothing is wrong.
pub fn health_issues(row: &Disk) -> Vec<HealthIssue> {
    let disk = &row.id;
    let locked = |lock: &String| {
        let message = format!(
            "the cloud has locked disk {disk} ({lock}): it refuses changes of it, and may take it \
             away; settle that with the cloud's support or billing"
        );
        health_issue(Severity::Degraded, word("Locked", lock), message)
    };
    let mut found: Vec<HealthIssue> = row.locks.iter().map(locked).collect();
    match &row.status {
        DiskStatus::ReIniting => {
            let message = format!("disk {disk} is being reset to a snapshot");
            found.push(health_issue(
                Severity::Inaccessible,
                "Reinitializing",
                message,
            ));
        }
        DiskStatus::Unknown(status) => {
            let message = format!("disk {disk} is {status:?}, which this driver does not know");
            found.push(health_issue(Severity::Degraded, "UnknownStatus", message));
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

fn reported(health: &DiskHealth) -> Vec<HealthIssue> {
    let (disk, status) = (&health.disk, &health.status);
    let advice = "check the disk's events in the console";
    let reported = |event: &HealthEvent| {
        // I/O hangs; the other events leave it slow.
        let severity = match event.kind.as_str() {
            "Stalled" => Severity::Inaccessible,
            _ => Severity::Degraded,
        };
        let HealthEvent { kind, id } = event;
        let message = format!("the cloud reports {kind} for disk {disk} (event {id}); {advice}");
        health_issue(severity, word("", kind), message)
    };
    let mut found: Vec<HealthIssue> = health.events.iter().map(reported).collect();
    if matches!(status.as_str(), "Impaired" | "Warning") && found.is_empty() {
        let message = format!("the cloud reports status {status} for disk {disk}; {advice}");
        found.push(health_issue(Severity::Degraded, status, message));
    }
    found
}

/// A word in camel case, of what the cloud wrote.
fn word(prefix: &str, text: &str) -> String {
    let mut word = text.to_owned();
    word.retain(|letter| letter.is_ascii_alphanumeric());
    if let Some(first) = word.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    format!("{prefix}{word}")
}

/// The issues of the row and of the reported health.
fn together(mut found: Vec<HealthIssue>, health: Option<&DiskHealth>) -> Vec<HealthIssue> {
    found.extend(health.map(reported).unwrap_or_default());
    found.sort();
    found.dedup_by(|a, b| (a.severity, &a.reason) == (b.severity, &b.reason));
    found
}

impl Inventory {
    /// The disk and its health issues. Both reads are shared.
    ///
    /// # Errors
    /// As [`Inventory::disk`], and if the health cannot be read.
    pub async fn health(
        &self,
        deadline: Deadline,
        disk: &DiskId,
    ) -> Result<(Disk, Vec<HealthIssue>)> {
        let (row, health) = tokio::join!(
            read_disk(&self.disks, deadline, disk),
            self.healths.observe(disk, deadline)
        );
        let row = row?;
        let health = health.map_err(wait(format!("read the health of disk {disk}")))?;
        let found = together(health_issues(&row), health.row().as_deref());
        Ok((row, found))
    }

    /// This cluster's disks that are not well, the oldest first.
    pub async fn list_unhealthy(&self, deadline: Deadline) -> Result<Vec<UnhealthyVolume>> {
        let look = |row: &Disk| UnhealthyVolume {
            disk: row.id.clone(),
            health_issues: health_issues(row),
            created: row.created,
        };
        let mut rows = self.list(deadline, look).await?;
        for chunk in rows.chunks_mut(MAX_IDS_PER_CALL) {
            let ids: Vec<_> = chunk.iter().map(|row| row.disk.clone()).collect();
            let page = self.ecs.describe_disk_health(deadline, &ids).await;
            let page = page.map_err(cloud("read the health of the disks"))?;
            for row in chunk {
                let health = page.rows.iter().find(|health| health.disk == row.disk);
                row.health_issues = together(std::mem::take(&mut row.health_issues), health);
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
        let found = reported(&health).into_iter();
        found.map(|a| (a.severity, a.reason)).collect()
    }

    #[test]
    fn what_the_cloud_reports_has_a_severity_and_a_word() {
        let one = |severity, word: &str| vec![(severity, word.to_owned())];
        assert_eq!(issue_of("Ok", &[]), []);
        for status in ["Initializing", "InsufficientData", "NotApplicable"] {
            assert_eq!(issue_of(status, &[]), []);
        }
        assert_eq!(
            issue_of("Impaired", &[]),
            one(Severity::Degraded, "Impaired")
        );
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

//! What the log has of volumes that are not well: kubelet asks every minute, and what has changed is said once.

use super::health::Ailment;
use crate::base::News;
use crate::model::DiskId;

/// What was last said of each volume. One that is well, or has left, is not in it.
#[derive(Debug, Default)]
pub(super) struct Complaints(News<DiskId>);

/// What is to be said.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    /// What is wrong now, with what to do.
    Ill(String),
    /// Nothing is, any more.
    Well,
}

impl Complaints {
    /// Logs what has changed since the last time.
    pub(super) fn tell(&self, volume: &DiskId, ailments: &[Ailment]) {
        match self.change(volume, ailments) {
            Some(Change::Ill(words)) => {
                tracing::warn!(disk.id = %volume, "the volume is not well: {words}");
            }
            Some(Change::Well) => {
                tracing::info!(disk.id = %volume, "the volume is well again");
            }
            None => {}
        }
    }

    /// The volume leaves the node.
    pub(super) fn forget(&self, volume: &DiskId) {
        self.0.is_over(volume);
    }

    /// The same ailments are no change, also where their words count seconds.
    fn change(&self, volume: &DiskId, ailments: &[Ailment]) -> Option<Change> {
        if ailments.is_empty() {
            return self.0.is_over(volume).then_some(Change::Well);
        }
        let reasons: Vec<_> = ailments.iter().map(Ailment::reason).collect();
        if !self.0.is_new(volume.clone(), &reasons.join(" ")) {
            return None;
        }
        let words: Vec<_> = ailments.iter().map(ToString::to_string).collect();
        Some(Change::Ill(words.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn hangs(seconds: u64) -> Ailment {
        Ailment::Hangs {
            path: "/staging".into(),
            since: Duration::from_secs(seconds),
        }
    }

    #[test]
    fn each_change_is_said_once() {
        let (complaints, one, other) = (
            Complaints::default(),
            "d-bp1".parse().unwrap(),
            "d-bp2".parse().unwrap(),
        );
        assert_eq!(complaints.change(&one, &[]), None);
        let first = complaints.change(&one, &[hangs(5)]);
        assert!(matches!(first, Some(Change::Ill(words)) if words.contains("5 s")));
        assert_eq!(complaints.change(&one, &[hangs(65)]), None);
        assert!(complaints.change(&other, &[hangs(65)]).is_some());
        let gone = Ailment::DeviceGone {
            path: "/staging".into(),
        };
        assert!(complaints.change(&one, &[gone]).is_some());
        assert_eq!(complaints.change(&one, &[]), Some(Change::Well));
        assert_eq!(complaints.change(&one, &[]), None);
    }

    #[test]
    fn a_volume_that_leaves_is_not_said_to_be_well() {
        let (complaints, volume) = (Complaints::default(), "d-bp1".parse().unwrap());
        assert!(complaints.change(&volume, &[hangs(5)]).is_some());
        complaints.forget(&volume);
        assert_eq!(complaints.change(&volume, &[]), None);
    }
}

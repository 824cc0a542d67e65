//! What the log has of volumes that are not well: kubelet asks every minute, and what has changed is said once.

use std::path::{Path, PathBuf};

use super::health::Ailment;
use crate::base::News;
use crate::model::DiskId;

/// What was last said of each volume at each place where it is mounted: a stale mount can stand beside a good one. What is well, or
/// has left, is not in it.
#[derive(Debug, Default)]
pub(super) struct Complaints(News<(DiskId, PathBuf)>);

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
    pub(super) fn tell(&self, volume: &DiskId, at: &Path, ailments: &[Ailment]) {
        match self.change(volume, at, ailments) {
            Some(Change::Ill(words)) => {
                tracing::warn!(disk.id = %volume, "the volume is not well: {words}");
            }
            Some(Change::Well) => {
                tracing::info!(disk.id = %volume, "the volume is well again");
            }
            None => {}
        }
    }

    /// The volume has left the node. Of one that was not well it is said: it is not known to be well yet, and not here any more.
    pub(super) fn forget(&self, volume: &DiskId) {
        if self.has_left(volume) {
            tracing::info!(disk.id = %volume, "the volume that was not well has left this node");
        }
    }

    fn has_left(&self, volume: &DiskId) -> bool {
        self.0.are_over(|(disk, _)| disk == volume)
    }

    /// The same ailments are no change, also where their words count seconds.
    fn change(&self, volume: &DiskId, at: &Path, ailments: &[Ailment]) -> Option<Change> {
        let place = (volume.clone(), at.to_owned());
        if ailments.is_empty() {
            return self.0.is_over(&place).then_some(Change::Well);
        }
        let reasons: Vec<_> = ailments.iter().map(Ailment::reason).collect();
        if !self.0.is_new(place, &reasons.join(" ")) {
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
        let (complaints, volume) = (Complaints::default(), "d-bp1".parse().unwrap());
        let other = "d-bp2".parse().unwrap();
        let at = Path::new("/staging");
        let change = |ailments: &[Ailment]| complaints.change(&volume, at, ailments);
        assert_eq!(change(&[]), None);
        assert!(matches!(change(&[hangs(5)]), Some(Change::Ill(words)) if words.contains("5 s")));
        assert_eq!(change(&[hangs(65)]), None);
        assert!(complaints.change(&other, at, &[hangs(65)]).is_some());
        let gone = Ailment::DeviceGone { path: at.into() };
        assert!(change(&[gone]).is_some());
        assert_eq!(change(&[]), Some(Change::Well));
        assert_eq!(change(&[]), None);
    }

    #[test]
    fn a_stale_mount_beside_a_good_one_is_no_coming_and_going() {
        let (complaints, volume) = (Complaints::default(), "d-bp1".parse().unwrap());
        let (stale, good) = (Path::new("/stale"), Path::new("/good"));
        let of =
            |at: &Path, ailments: &[Ailment]| complaints.change(&volume, at, ailments).is_some();
        assert!(of(stale, &[hangs(5)]));
        assert!(!of(good, &[]) && !of(stale, &[hangs(5)]) && !of(good, &[]));
    }

    #[test]
    fn a_volume_that_leaves_is_not_said_to_be_well() {
        let (complaints, volume) = (Complaints::default(), "d-bp1".parse().unwrap());
        let at = Path::new("/staging");
        assert!(complaints.change(&volume, at, &[hangs(5)]).is_some());
        assert!(complaints.has_left(&volume) && !complaints.has_left(&volume));
        assert_eq!(complaints.change(&volume, at, &[]), None);
    }
}

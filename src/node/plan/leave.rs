//! Unstaging and unpublishing.

use super::common::{bad, occupied, places};
use super::{Plan, Refusal, Spot, Step};
use crate::host::{Device, Entry, Mount};

/// What leaving a path saw.
#[derive(Debug)]
pub(in crate::node) struct LeaveSeen {
    /// The volume's device, if it is there.
    pub(in crate::node) device: Option<Device>,
    pub(in crate::node) spot: Spot,
    /// Where else it is mounted; staging goes last.
    pub(in crate::node) others: Vec<Mount>,
}

/// Unstaging.
pub(in crate::node) fn unstage(seen: &LeaveSeen) -> Plan {
    if seen.spot.mount.is_some() && !seen.others.is_empty() {
        let device = seen.device.as_ref().map(ToString::to_string);
        return Err(Refusal::MountedElsewhere {
            device: device.unwrap_or_default(),
            at: places(&seen.others),
        });
    }
    leave(seen)
}

/// Unpublishing.
pub(in crate::node) fn unpublish(seen: &LeaveSeen) -> Plan {
    let mut steps = leave(seen)?;
    let is_last = seen.others.is_empty() && matches!(seen.spot.entry, Entry::Block(_));
    if is_last && seen.device.as_ref().is_some_and(|device| device.read_only) {
        steps.insert(steps.len().min(1), Step::SetDeviceReadOnly(false));
    }
    Ok(steps)
}

fn leave(seen: &LeaveSeen) -> Plan {
    let spot = &seen.spot;
    let path = spot.path.clone();
    let Some(mount) = &spot.mount else {
        return match spot.entry {
            Entry::Missing => Ok(Vec::new()),
            Entry::Directory | Entry::File => Ok(vec![Step::Remove(path)]),
            other => Err(bad(spot, other, "a directory or a file")),
        };
    };
    let is_ours = match (&seen.device, spot.entry) {
        (Some(device), Entry::Block(number)) => number == device.number,
        (Some(device), _) => mount.is_of(device),
        // The device is gone, or its serial is not the id's: at least it must be a disk's.
        (None, Entry::Block(_)) => true,
        (None, _) => mount.number.major != 0 || mount.kind == "btrfs",
    };
    if is_ours {
        Ok(vec![Step::Unmount(path.clone()), Step::Remove(path)])
    } else {
        Err(occupied(spot, mount))
    }
}

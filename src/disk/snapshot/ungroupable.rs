//! Why disks cannot be in one snapshot group.

/// Why disks cannot be cut at one instant, by the cloud's code.
pub(super) fn why_apart(code: &str) -> Option<&'static str> {
    Some(match code {
        "InvalidDiskIds.NotInSameZone" => "they are in several zones",
        "NumberExceed.TooManyDisks" => "they are more than 16; make smaller groups",
        "CapacityExceed.TooManyDisks" => "they have more than 32 TiB together; make smaller groups",
        "InvalidOperation.MultiAttachDisk" | "InvalidDisk.ShareVolume" => {
            "one of them can be attached to several nodes; take its snapshot alone"
        }
        "InvalidDisk.DiskCategoryInconsistent"
        | "DiskCategory.OperationNotSupported"
        | "IncorrectDiskType.NotSupport" => {
            "all must be of the ESSD family (cloud_essd, cloud_auto, cloud_essd_entry), and if one is \
             regional, all must be"
        }
        "IncorrectDiskStatus.NeverAttached" | "IncorrectDiskStatus.NeverUsed" => {
            "one of them was never attached, and the cloud takes snapshots only of disks that once \
             were; start a pod that uses the volume, then try again"
        }
        "InvalidRegion.NotSupport" | "UserNotInTheWhiteList" => {
            "the cloud has no snapshot groups in this region, or not for this account"
        }
        _ => return None,
    })
}

//! Keys of the string maps that travel with a volume: written by the controller, read by the node.

/// `publish_context`: the serial by which the node finds the device.
pub const SERIAL: &str = "diskplugin.csi.example/serial";

/// `publish_context`: `"true"` when the disk was attached only to be read. The node then keeps the
/// kernel from writing to the device at all.
pub const ATTACHED_READ_ONLY: &str = "diskplugin.csi.example/read-only";

/// `volume_context`: `"true"` when several nodes can hold the disk at once.
pub const MULTI_ATTACH: &str = "multiAttach";

/// `volume_context`: the filesystem, where the capability names none.
pub const FS_TYPE: &str = "fsType";

/// `volume_context`: `"true"` makes every mount of the volume read-only.
pub const READ_ONLY: &str = "readOnly";

/// `volume_context`: what is done about a filesystem that is not in order.
pub const FSCK: &str = "fsck";

/// `volume_context`: when free blocks are discarded.
pub const DISCARD: &str = "discard";

/// `volume_context`: `"true"` makes a filesystem in which directories can be limited.
pub const PROJECT_QUOTA: &str = "projectQuota";

/// `volume_context`: size of the filesystem's blocks, in bytes.
pub const BLOCK_SIZE: &str = "blockSize";

/// `volume_context`: size of its inodes, in bytes.
pub const INODE_SIZE: &str = "inodeSize";

/// `volume_context`: one inode is made for each so many bytes.
pub const BYTES_PER_INODE: &str = "bytesPerInode";

/// `volume_context`: the filesystem's label.
pub const LABEL: &str = "label";

/// `volume_context`: settings of the block device in sysfs.
pub const SYS_CONFIG: &str = "sysConfig";

/// `volume_context`: `"1"` mounts the only partition of the disk instead of the whole disk.
pub const PARTITION: &str = "partition";

/// `volume_context`: more options of mkfs.
pub const MKFS_OPTIONS: &str = "mkfsOptions";

/// The value under a key, whose name compares without case. None where it is absent or empty.
#[must_use]
pub fn get<'a>(map: impl IntoIterator<Item = (&'a String, &'a String)>, key: &str) -> Option<&'a str> {
    map.into_iter()
        .find(|(name, value)| name.eq_ignore_ascii_case(key) && !value.is_empty())
        .map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn a_key_is_found_without_case_and_an_empty_value_is_absent() {
        let map = HashMap::from([
            ("fstype".to_owned(), "xfs".to_owned()),
            ("readOnly".to_owned(), String::new()),
        ]);
        assert_eq!(get(&map, FS_TYPE), Some("xfs"));
        assert_eq!(get(&map, READ_ONLY), None);
    }
}

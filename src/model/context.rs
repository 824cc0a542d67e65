//! Keys of the maps of a volume, which the controller writes and the node reads.

/// `publish_context`: the serial by which the node finds the device.
pub const SERIAL: &str = "diskplugin.csi.example/serial";

/// `publish_context`: `"true"` if the disk is attached read-only. The node then sets the device read-only.
pub const ATTACHED_READ_ONLY: &str = "diskplugin.csi.example/read-only";

/// `volume_context`: `"true"` if the disk can be attached to several nodes simultaneously.
pub const MULTI_ATTACH: &str = "multiAttach";

/// `volume_context`: the filesystem, if the capability does not state one.
pub const FS_TYPE: &str = "fsType";

/// `volume_context`: `"true"` makes every mount of the volume read-only.
pub const READ_ONLY: &str = "readOnly";

// `volume_context`: the parameters of a filesystem, as in `Tuning`.
pub const FSCK: &str = "fsck";
pub const DISCARD: &str = "discard";
pub const PROJECT_QUOTA: &str = "projectQuota";
pub const BLOCK_SIZE: &str = "blockSize";
pub const INODE_SIZE: &str = "inodeSize";
pub const BYTES_PER_INODE: &str = "bytesPerInode";
pub const LABEL: &str = "label";
pub const SYS_CONFIG: &str = "sysConfig";
pub const PARTITION: &str = "partition";
pub const MKFS_OPTIONS: &str = "mkfsOptions";

/// The value of a key, which is case-insensitive; none if it is missing or empty. Of several spellings, the first one
/// in the order of bytes: repeated requests have the same result, although their maps have no order.
pub fn get<'a>(map: impl IntoIterator<Item = (&'a String, &'a String)>, key: &str) -> Option<&'a str> {
    let given = map.into_iter();
    let given = given.filter(|(name, value)| name.eq_ignore_ascii_case(key) && !value.is_empty());
    given.min().map(|(_, value)| value.as_str())
}

/// Parses a boolean in the spellings of the vendor's driver.
pub fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "1" | "enabled" => Some(true),
        "false" | "no" | "0" | "disabled" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn keys_are_case_insensitive_and_an_empty_value_is_missing() {
        let map = HashMap::from([
            ("fstype".to_owned(), "xfs".to_owned()),
            ("readOnly".to_owned(), String::new()),
        ]);
        assert_eq!(get(&map, FS_TYPE), Some("xfs"));
        assert_eq!(get(&map, READ_ONLY), None);
    }

    #[test]
    fn of_several_spellings_the_same_one_is_read_each_time() {
        for _ in 0..20 {
            let spellings = [("readonly", "false"), ("READONLY", "true"), ("readOnly", "false")];
            let map: HashMap<_, _> = spellings.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
            assert_eq!(get(&map, READ_ONLY), Some("true"));
        }
    }
}

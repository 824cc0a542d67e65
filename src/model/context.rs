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

/// The value under a key, whose name compares without case. None where it is absent or empty.
#[must_use]
pub fn get<'a>(
    map: impl IntoIterator<Item = (&'a String, &'a String)>,
    key: &str,
) -> Option<&'a str> {
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

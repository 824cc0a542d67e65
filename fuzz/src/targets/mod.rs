//! One file for each target: what it parses, and what must hold for the result.

use std::sync::OnceLock;

mod blkid;
mod cloud_error;
mod cloud_response;
mod csi_request;
mod http2_preface;
mod metadata;
mod mount_options;
mod mountinfo;
mod page_token;
mod parameters;
mod quantity;
mod signer;
mod superblock;
mod sysfs;
mod uevent;

type Target = fn(&[u8]);

const TARGETS: [(&str, Target); 15] = [
    ("blkid", blkid::run),
    ("cloud_error", cloud_error::run),
    ("cloud_response", cloud_response::run),
    ("csi_request", csi_request::run),
    ("http2_preface", http2_preface::run),
    ("metadata", metadata::run),
    ("mount_options", mount_options::run),
    ("mountinfo", mountinfo::run),
    ("page_token", page_token::run),
    ("parameters", parameters::run),
    ("quantity", quantity::run),
    ("signer", signer::run),
    ("superblock", superblock::run),
    ("sysfs", sysfs::run),
    ("uevent", uevent::run),
];

/// The target that `FUZZ_TARGET` names.
pub fn selected() -> Target {
    static SELECTED: OnceLock<Target> = OnceLock::new();
    *SELECTED.get_or_init(|| {
        let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
        let found = TARGETS.iter().find(|(known, _)| *known == name);
        let names = TARGETS.map(|(known, _)| known).join(", ");
        found
            .unwrap_or_else(|| panic!("FUZZ_TARGET is {name:?}, but must be one of {names}"))
            .1
    })
}

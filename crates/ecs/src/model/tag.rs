//! Tags of disks and snapshots. Sorted, because the cloud compares their order on a repeated create.

use std::collections::BTreeMap;

pub type Tags = BTreeMap<String, String>;

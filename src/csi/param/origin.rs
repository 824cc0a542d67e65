//! The claim of a disk, from parameters that external-provisioner adds with `--extra-create-metadata`.

use super::value::{Map, SIDECARS};
use crate::model::Tags;
use crate::model::tag::{CREATED_FOR, LONGEST_VALUE};

/// Parameters `csi.storage.k8s.io/*` that become tags `kubernetes.io/created-for/*`.
const CLAIM: [&str; 3] = ["pvc/name", "pvc/namespace", "pv/name"];

/// The tags, with values truncated to the maximum length.
pub(super) fn tags(parameters: &Map) -> Tags {
    let of = |name: &&str| {
        let value = parameters.get(&format!("{SIDECARS}{name}"))?;
        let value: String = value.chars().take(LONGEST_VALUE).collect();
        (!value.is_empty()).then(|| (format!("{CREATED_FOR}{name}"), value))
    };
    CLAIM.iter().filter_map(of).collect()
}

//! Label sets of the metrics of calls. Values that a peer chooses are limited in number.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Names and values of the labels of a metric.
pub(super) type Labels<const N: usize> = [(&'static str, String); N];

/// The labels of an exemplar, which together have at most 128 characters (OpenMetrics 1.0, Exemplars).
pub(super) type ExemplarLabels = Vec<(&'static str, String)>;

/// The distinct values of a label. Further ones count as `other`.
#[derive(Debug, Clone)]
pub(super) struct BoundedValues {
    values: Arc<Mutex<BTreeSet<String>>>,
    max: usize,
}

/// The value for all others.
pub(super) const OTHER: &str = "other";

/// The methods of CSI and of kubelet's plugin registration.
pub(super) const METHODS: [&str; 38] = [
    "ControllerExpandVolume",
    "ControllerGetCapabilities",
    "ControllerGetVolume",
    "ControllerGetVolumeHealth",
    "ControllerListVolumeHealth",
    "ControllerModifyVolume",
    "ControllerPublishVolume",
    "ControllerUnpublishVolume",
    "CreateSnapshot",
    "CreateVolume",
    "CreateVolumeGroupSnapshot",
    "DeleteSnapshot",
    "DeleteVolume",
    "DeleteVolumeGroupSnapshot",
    "GetCapacity",
    "GetInfo",
    "GetMetadataAllocated",
    "GetMetadataDelta",
    "GetPluginCapabilities",
    "GetPluginInfo",
    "GetSnapshot",
    "GetVolumeGroupSnapshot",
    "GroupControllerGetCapabilities",
    "ListSnapshots",
    "ListVolumes",
    "NodeExpandVolume",
    "NodeGetCapabilities",
    "NodeGetInfo",
    "NodeGetStorageHealth",
    "NodeGetVolumeHealth",
    "NodeGetVolumeStats",
    "NodePublishVolume",
    "NodeStageVolume",
    "NodeUnpublishVolume",
    "NodeUnstageVolume",
    "NotifyRegistrationStatus",
    "Probe",
    "ValidateVolumeCapabilities",
];

impl BoundedValues {
    pub(super) fn new(max: usize) -> Self {
        Self {
            values: Arc::default(),
            max,
        }
    }

    /// The value, or `other` if there are too many.
    pub(super) fn limit(&self, value: &str) -> String {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        if values.contains(value) {
            return value.to_owned();
        }
        if values.len() >= self.max {
            return OTHER.to_owned();
        }
        values.insert(value.to_owned());
        value.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_of_the_protocols_is_known() {
        let protocols = [
            include_str!("../../proto/csi.proto"),
            include_str!("../../proto/pluginregistration.proto"),
        ];
        let lines = protocols.iter().flat_map(|text| text.lines());
        let methods = lines.filter_map(|line| line.trim().strip_prefix("rpc ")?.split_once(['(', ' ']));
        let methods: BTreeSet<_> = methods.map(|(name, _)| name).collect();
        assert_eq!(methods, BTreeSet::from(METHODS));
    }

    #[test]
    fn values_beyond_the_limit_count_as_other() {
        let values = BoundedValues::new(2);
        assert_eq!(
            ["a", "b", "c", "a"].map(|value| values.limit(value)),
            ["a", "b", "other", "a"]
        );
    }
}

//! The CreateVolume request that external-provisioner sends for a class and a claim.

use std::collections::BTreeMap;

use super::manifest::{LabelExpression, TopologyTerm};
use super::parameters::{Map, SIDECARS};
use super::settings::ExplainSettings;
use crate::csi::proto::volume_capability::access_mode::Mode;
use crate::csi::proto::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use crate::csi::proto::volume_content_source::Type;
use crate::csi::proto::{
    CapacityRange, CreateVolumeRequest, Topology, TopologyRequirement, VolumeCapability, VolumeContentSource,
};
use crate::csi::request;
use crate::disk::NewDisk;
use crate::model::{Bytes, RegionId, SizeRange, ZoneId, topology};

/// The filesystem of a volume, for external-provisioner.
pub(super) const FS_TYPE: &str = "csi.storage.k8s.io/fstype";

/// The name of the volume is known only in the cluster.
const VOLUME: &str = "pvc-example";

/// Used where the zone is that of the node which the scheduler selects.
const SELECTED_NODE: &str = "selected-node";
const UNKNOWN_REGION: &str = "region";

/// A request in the words of Kubernetes.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    pub(super) claim: String,
    pub(super) namespace: Option<String>,
    pub(super) size: SizeRange,
    pub(super) modes: Vec<Mode>,
    pub(super) block: bool,
    pub(super) mount_options: Vec<String>,
    pub(super) mutable: Map,
    /// Zones of the nodes.
    pub(super) zones: Vec<ZoneId>,
    pub(super) topologies: Vec<TopologyTerm>,
    pub(super) source: Option<Type>,
}

impl Draft {
    /// A mounted volume of one node.
    pub(super) fn of(size: Bytes) -> Self {
        Self {
            claim: "claim".to_owned(),
            namespace: None,
            size: SizeRange {
                required: Some(size),
                limit: None,
            },
            modes: vec![Mode::SingleNodeMultiWriter],
            block: false,
            mount_options: Vec::new(),
            mutable: Map::new(),
            zones: Vec::new(),
            topologies: Vec::new(),
            source: None,
        }
    }

    fn message(&self, class: &Map) -> CreateVolumeRequest {
        let fs_type = class.get(FS_TYPE).map(|value| value.trim().to_owned());
        let access = if self.block {
            AccessType::Block(BlockVolume {})
        } else {
            AccessType::Mount(MountVolume {
                fs_type: fs_type.unwrap_or_default(),
                mount_flags: self.mount_options.clone(),
                volume_mount_group: String::new(),
            })
        };
        let capability = |mode: &Mode| VolumeCapability {
            access_mode: Some(AccessMode { mode: (*mode).into() }),
            access_type: Some(access.clone()),
        };
        // `--extra-create-metadata`, which the chart sets: these become tags.
        let mut parameters = class.clone();
        for (key, value) in [
            ("pvc/name", &*self.claim),
            ("pvc/namespace", self.namespace.as_deref().unwrap_or("default")),
            ("pv/name", VOLUME),
        ] {
            parameters.insert(format!("{SIDECARS}{key}"), value.to_owned());
        }
        let bytes = |bytes: Option<Bytes>| bytes.map_or(0, Bytes::to_i64);
        CreateVolumeRequest {
            name: VOLUME.to_owned(),
            capacity_range: Some(CapacityRange {
                required_bytes: bytes(self.size.required),
                limit_bytes: bytes(self.size.limit),
            }),
            volume_capabilities: self.modes.iter().map(capability).collect(),
            parameters,
            volume_content_source: self
                .source
                .clone()
                .map(|source| VolumeContentSource { r#type: Some(source) }),
            accessibility_requirements: self.requirement(),
            mutable_parameters: self.mutable.clone(),
            ..CreateVolumeRequest::default()
        }
    }

    /// The zones of `allowedTopologies`, or else those of the nodes.
    fn requirement(&self) -> Option<TopologyRequirement> {
        let of_nodes = self.zones.iter().map(|zone| Topology {
            segments: [(topology::ZONE_KEY.to_owned(), zone.to_string())].into(),
        });
        let requisite: Vec<Topology> = match self.topologies.is_empty() {
            true => of_nodes.collect(),
            false => self.topologies.iter().flat_map(terms).collect(),
        };
        (!requisite.is_empty()).then_some(TopologyRequirement {
            requisite,
            preferred: Vec::new(),
        })
    }

    /// The disk that the driver would create.
    pub(super) fn new_disk(&self, class: &Map, settings: &ExplainSettings) -> Result<NewDisk, request::error::Error> {
        let region = || settings.region.clone().or_else(|| own_region(class));
        let driver = request::DriverLocation {
            region: region().unwrap_or_else(|| known(UNKNOWN_REGION)),
            zone: Some(selected_node()),
        };
        request::new_disk(&self.message(class), &driver)
    }
}

fn known<T: std::str::FromStr>(text: &str) -> T {
    let parsed = text.parse().ok();
    parsed.expect("the constants above are valid")
}

/// The zone of the node which the scheduler selects.
pub(super) fn selected_node() -> ZoneId {
    known(SELECTED_NODE)
}

fn own_region(class: &Map) -> Option<RegionId> {
    let mut entries = class.iter();
    let (_, region) = entries.find(|(key, _)| key.eq_ignore_ascii_case("regionId"))?;
    region.trim().parse().ok()
}

/// The zones in which nodes can be: that of `--zone`, or those with known stock.
pub(super) fn node_zones(settings: &ExplainSettings) -> Vec<ZoneId> {
    if let Some(zone) = &settings.zone {
        return vec![zone.clone()];
    }
    let zones = settings.stock.zonal.iter().flatten();
    let mut zones: Vec<_> = zones.filter_map(|stock| stock.zone.clone()).collect();
    zones.sort();
    zones.dedup();
    zones
}

/// Whether a term of `allowedTopologies` permits nodes of this zone.
pub(super) fn permits(term: &TopologyTerm, zone: &ZoneId) -> bool {
    let has_zone = |expression: &LabelExpression| {
        expression.key != topology::ZONE_KEY || expression.values.iter().any(|value| value == zone.as_str())
    };
    term.match_label_expressions.iter().all(has_zone)
}

/// All combinations of the values of a term.
fn terms(term: &TopologyTerm) -> Vec<Topology> {
    let mut all = vec![BTreeMap::new()];
    for expression in &term.match_label_expressions {
        let with = |segments: &BTreeMap<String, String>| {
            let values = expression.values.iter();
            let extended = values.map(|value| {
                let mut segments = segments.clone();
                segments.insert(expression.key.clone(), value.clone());
                segments
            });
            extended.collect::<Vec<_>>()
        };
        all = all.iter().flat_map(with).collect();
    }
    let topology = |segments: BTreeMap<_, _>| Topology {
        segments: segments.into_iter().collect(),
    };
    all.into_iter().map(topology).collect()
}

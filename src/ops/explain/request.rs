//! The CreateVolume request that external-provisioner sends for a class and a claim.

use std::collections::BTreeSet;

use super::manifest::{LabelExpression, TopologyTerm};
use super::parameters::Map;
use super::settings::ExplainSettings;
use crate::csi::proto::volume_capability::access_mode::Mode;
use crate::csi::proto::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use crate::csi::proto::{CapacityRange, CreateVolumeRequest, Topology, TopologyRequirement, VolumeCapability};
use crate::csi::request;
use crate::disk::NewDisk;
use crate::model::{Bytes, RegionId, ZoneId, topology};

/// The filesystem of a volume, for external-provisioner.
const FS_TYPE: &str = "csi.storage.k8s.io/fstype";

/// The name of the volume is known only in the cluster.
const VOLUME: &str = "pvc-example";

/// Used where the zone is that of the node which the scheduler selects.
pub(super) const SELECTED_NODE: &str = "selected-node";
const UNKNOWN_REGION: &str = "region";

/// The request for a mounted volume of one node.
pub(super) fn create_volume(size: Bytes) -> CreateVolumeRequest {
    CreateVolumeRequest {
        name: VOLUME.to_owned(),
        capacity_range: Some(CapacityRange {
            required_bytes: size.to_i64(),
            limit_bytes: 0,
        }),
        volume_capabilities: vec![capability(Mode::SingleNodeMultiWriter, false)],
        parameters: metadata("claim", "default"),
        ..CreateVolumeRequest::default()
    }
}

/// The parameters of `--extra-create-metadata`, which the chart sets: they become tags.
pub(super) fn metadata(claim: &str, namespace: &str) -> Map {
    let values = [("pvc/name", claim), ("pvc/namespace", namespace), ("pv/name", VOLUME)];
    let values = values.map(|(key, value)| (format!("csi.storage.k8s.io/{key}"), value.to_owned()));
    values.into()
}

pub(super) fn capability(mode: Mode, is_block: bool) -> VolumeCapability {
    VolumeCapability {
        access_mode: Some(AccessMode { mode: mode.into() }),
        access_type: Some(match is_block {
            true => AccessType::Block(BlockVolume {}),
            false => AccessType::Mount(MountVolume::default()),
        }),
    }
}

/// The mounts in the capabilities; none of a block volume.
pub(super) fn mounts(request: &mut CreateVolumeRequest) -> impl Iterator<Item = &mut MountVolume> {
    let capabilities = request.volume_capabilities.iter_mut();
    capabilities.filter_map(|capability| match &mut capability.access_type {
        Some(AccessType::Mount(mount)) => Some(mount),
        Some(AccessType::Block(_)) | None => None,
    })
}

/// The zones of `allowedTopologies`, or else those of the nodes. With the zone of the node, csi-provisioner passes only
/// this one.
pub(super) fn requirement(topologies: &[TopologyTerm], settings: &ExplainSettings) -> Option<TopologyRequirement> {
    let of_zone = |zone: &ZoneId| Topology {
        segments: [(topology::ZONE_KEY.to_owned(), zone.to_string())].into(),
    };
    let requisite: Vec<Topology> = match &settings.zone {
        Some(zone) => vec![of_zone(zone)],
        None if topologies.is_empty() => stock_zones(settings).iter().map(of_zone).collect(),
        None => topologies.iter().flat_map(terms).collect(),
    };
    (!requisite.is_empty()).then_some(TopologyRequirement {
        requisite,
        preferred: Vec::new(),
    })
}

/// The disk that the driver would create for a class with these parameters.
pub(super) fn new_disk(
    request: &CreateVolumeRequest,
    class: &Map,
    settings: &ExplainSettings,
) -> Result<NewDisk, request::error::Error> {
    let mut request = request.clone();
    let fs_type = class.get(FS_TYPE).map_or("", |value| value.trim());
    mounts(&mut request).for_each(|mount| fs_type.clone_into(&mut mount.fs_type));
    request.parameters.extend(class.clone());
    let region = || settings.region.clone().or_else(|| own_region(class));
    let driver = request::DriverLocation {
        region: region().unwrap_or_else(|| known(UNKNOWN_REGION)),
        zone: Some(known(SELECTED_NODE)),
    };
    request::new_disk(&request, &driver)
}

fn known<T: std::str::FromStr>(text: &str) -> T {
    let parsed = text.parse().ok();
    parsed.expect("the constants above are valid")
}

fn own_region(class: &Map) -> Option<RegionId> {
    let mut entries = class.iter();
    let (_, region) = entries.find(|(key, _)| key.eq_ignore_ascii_case("regionId"))?;
    region.trim().parse().ok()
}

/// The zones of the region, if the stock is known.
pub(super) fn stock_zones(settings: &ExplainSettings) -> BTreeSet<ZoneId> {
    let zones = settings.stock.zonal.iter().flatten();
    zones.filter_map(|stock| stock.zone.clone()).collect()
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
    let expressions = term.match_label_expressions.iter();
    expressions.fold(vec![Topology::default()], |all, expression| {
        let with = |topology: &Topology, value: &String| {
            let mut topology = topology.clone();
            topology.segments.insert(expression.key.clone(), value.clone());
            topology
        };
        let all = all.iter();
        all.flat_map(|topology| expression.values.iter().map(move |value| with(topology, value)))
            .collect()
    })
}

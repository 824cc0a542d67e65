//! The allowed values of each field, and the response to a request that violates them, by the field's full name. A new
//! field of the proto has no rule, and the test fails until one is added.

use prost_reflect::{FieldDescriptor, MapKey, Value};
use tonic::Code;

/// Longest text that CSI allows in a field, in bytes (CSI, "Size Limits").
pub(crate) const LONGEST: usize = 128;
/// Largest map, keys and values together.
pub(crate) const LARGEST: usize = 4096;

/// Kinds of fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The ID of a resource that must exist.
    Id,
    /// The ID of a resource to delete: a malformed ID cannot exist and counts as deleted.
    Gone,
    /// Like `Gone`; empty means all.
    GoneOrAll,
    /// A filter: without a match the list is empty; an empty filter matches all.
    Filter,
    /// A name that the caller chooses.
    Name,
    /// A page token.
    Token,
    /// The maximum number of entries.
    Count,
    /// The minimum number of bytes.
    Size,
    /// The maximum number of bytes.
    Limit,
    /// One of several constants.
    Choice,
    /// IDs of resources that must all exist; at least one.
    Sources,
    /// IDs of the snapshots in a group; an empty list is not checked.
    Members,
    /// The ID of a snapshot in a group: a malformed ID is not a member of any group.
    Member,
    /// Words that the driver passes on.
    Flags,
    /// A text that must be empty.
    Unused,
    /// Only keys that the driver supports.
    Known,
    /// Keys of the caller.
    Any,
    /// Topology segments, such as the zone.
    Segments,
    /// A required message.
    Required,
    /// A member of a required oneof.
    OneOf,
    /// An optional message.
    Optional,
    /// At least one message.
    Many,
    /// Both true and false are valid.
    Free,
}

/// The rule of a field.
pub(crate) fn of(field: &FieldDescriptor) -> Rule {
    let name = field.full_name().trim_start_matches("csi.v1.").to_owned();
    match name.as_str() {
        "CreateVolumeRequest.name" | "CreateSnapshotRequest.name" | "CreateVolumeGroupSnapshotRequest.name" => {
            Rule::Name
        }
        "ControllerPublishVolumeRequest.volume_id"
        | "ControllerPublishVolumeRequest.node_id"
        | "ValidateVolumeCapabilitiesRequest.volume_id"
        | "CreateSnapshotRequest.source_volume_id"
        | "GetSnapshotRequest.snapshot_id"
        | "ControllerExpandVolumeRequest.volume_id"
        | "ControllerGetVolumeRequest.volume_id"
        | "ControllerGetVolumeHealthRequest.volume_id"
        | "ControllerModifyVolumeRequest.volume_id"
        | "GetVolumeGroupSnapshotRequest.group_snapshot_id"
        | "VolumeContentSource.SnapshotSource.snapshot_id"
        | "VolumeContentSource.VolumeSource.volume_id" => Rule::Id,
        "DeleteVolumeRequest.volume_id"
        | "DeleteSnapshotRequest.snapshot_id"
        | "DeleteVolumeGroupSnapshotRequest.group_snapshot_id"
        | "ControllerUnpublishVolumeRequest.volume_id" => Rule::Gone,
        "ControllerUnpublishVolumeRequest.node_id" => Rule::GoneOrAll,
        "ListSnapshotsRequest.source_volume_id" | "ListSnapshotsRequest.snapshot_id" => Rule::Filter,
        "ListVolumesRequest.starting_token"
        | "ControllerListVolumeHealthRequest.starting_token"
        | "ListSnapshotsRequest.starting_token" => Rule::Token,
        "ListVolumesRequest.max_entries"
        | "ControllerListVolumeHealthRequest.max_entries"
        | "ListSnapshotsRequest.max_entries" => Rule::Count,
        "CapacityRange.required_bytes" => Rule::Size,
        "CapacityRange.limit_bytes" => Rule::Limit,
        "CreateVolumeGroupSnapshotRequest.source_volume_ids" => Rule::Sources,
        "DeleteVolumeGroupSnapshotRequest.snapshot_ids" | "GetVolumeGroupSnapshotRequest.snapshot_ids" => Rule::Members,
        "VolumeCapability.AccessMode.mode" => Rule::Choice,
        "VolumeCapability.MountVolume.fs_type" => Rule::Choice,
        "VolumeCapability.MountVolume.mount_flags" => Rule::Flags,
        "VolumeCapability.MountVolume.volume_mount_group" => Rule::Unused,
        "CreateVolumeRequest.parameters"
        | "CreateVolumeRequest.mutable_parameters"
        | "GetCapacityRequest.parameters"
        | "CreateSnapshotRequest.parameters"
        | "CreateVolumeGroupSnapshotRequest.parameters"
        | "ControllerModifyVolumeRequest.mutable_parameters"
        | "ValidateVolumeCapabilitiesRequest.parameters"
        | "ValidateVolumeCapabilitiesRequest.mutable_parameters" => Rule::Known,
        "ControllerPublishVolumeRequest.volume_context" | "ValidateVolumeCapabilitiesRequest.volume_context" => {
            Rule::Any
        }
        "Topology.segments" => Rule::Segments,
        "CreateVolumeRequest.volume_capabilities" | "ValidateVolumeCapabilitiesRequest.volume_capabilities" => {
            Rule::Many
        }
        "ControllerPublishVolumeRequest.volume_capability"
        | "VolumeCapability.access_mode"
        | "ControllerExpandVolumeRequest.capacity_range" => Rule::Required,
        "VolumeCapability.block"
        | "VolumeCapability.mount"
        | "VolumeContentSource.snapshot"
        | "VolumeContentSource.volume" => Rule::OneOf,
        "CreateVolumeRequest.capacity_range"
        | "CreateVolumeRequest.volume_content_source"
        | "CreateVolumeRequest.accessibility_requirements"
        | "CreateSnapshotRequest.accessibility_requirements"
        | "ControllerExpandVolumeRequest.volume_capability"
        | "GetCapacityRequest.volume_capabilities"
        | "GetCapacityRequest.accessible_topology"
        | "TopologyRequirement.requisite"
        | "TopologyRequirement.preferred" => Rule::Optional,
        "ControllerPublishVolumeRequest.readonly" => Rule::Free,
        name if name.ends_with(".secrets") => Rule::Any,
        name => panic!("{name} is new: add its rule to tests/controller/hostile/rule.rs"),
    }
}

/// The expected response to a request with this value in one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    /// This code, the field's name, and no cloud call.
    Refused(Code),
    /// Success without a cloud call.
    Quiet,
    /// Success, or a rejection because of its meaning.
    Fine,
}

impl Rule {
    /// The expected response to a value of the field. None is a removed field.
    pub(crate) fn expect(self, value: Option<&Value>) -> Expect {
        const INVALID: Expect = Expect::Refused(Code::InvalidArgument);
        match (self, value) {
            (Self::Free | Self::Optional, _) => Expect::Fine,
            // An empty message selects a member of the oneof.
            (Self::OneOf, Some(_)) => Expect::Fine,
            (Self::Required | Self::OneOf | Self::Many, _) => INVALID,
            (Self::Choice, Some(Value::EnumNumber(_))) => INVALID,
            (Self::Size | Self::Limit, Some(Value::I64(bytes))) if *bytes < 0 => INVALID,
            (Self::Size, Some(Value::I64(i64::MAX))) => Expect::Refused(Code::OutOfRange),
            (Self::Count, Some(Value::I32(count))) if *count < 0 => INVALID,
            (_, Some(Value::Map(map))) => {
                let pairs = map.iter().map(|(key, value)| {
                    let MapKey::String(key) = key else {
                        unreachable!("keys are texts")
                    };
                    key.len() + value.as_str().map_or(0, str::len)
                });
                match self {
                    _ if pairs.sum::<usize>() > LARGEST => INVALID,
                    Self::Any => Expect::Fine,
                    _ if map.is_empty() && self == Self::Known => Expect::Fine,
                    _ => INVALID,
                }
            }
            (Self::Sources | Self::Members, Some(Value::List(ids))) => {
                let texts = || ids.iter().filter_map(Value::as_str);
                if texts().map(str::len).sum::<usize>() > LARGEST {
                    return INVALID;
                }
                let one = if self == Self::Sources { Self::Id } else { Self::Member };
                let bad = texts().map(|text| one.expect_text(text));
                let bad = bad.filter(|expect| *expect != Expect::Fine);
                bad.last().unwrap_or(Expect::Fine)
            }
            (_, Some(Value::List(flags))) => {
                let texts = || flags.iter().filter_map(Value::as_str);
                let odd = |text: &str| text.is_empty() || text.chars().any(char::is_control);
                match texts().map(str::len).sum::<usize>() > LARGEST || texts().any(odd) {
                    true => INVALID,
                    false => Expect::Fine,
                }
            }
            (_, Some(Value::String(text))) => self.expect_text(text),
            (Self::Id | Self::Gone | Self::Name | Self::Sources, None) => INVALID,
            (_, _) => Expect::Fine,
        }
    }

    fn expect_text(self, text: &str) -> Expect {
        const INVALID: Expect = Expect::Refused(Code::InvalidArgument);
        // A well-formed ID is sent to the cloud.
        let plausible = ["d-", "s-", "i-", "sg-", "ssg-"].iter().any(|start| {
            let body = text.strip_prefix(start);
            body.is_some_and(|body| !body.is_empty() && body.bytes().all(|b| b.is_ascii_alphanumeric()))
        });
        match self {
            Self::Id | Self::Gone | Self::Name if text.is_empty() => INVALID,
            Self::GoneOrAll | Self::Filter | Self::Token | Self::Unused | Self::Choice if text.is_empty() => {
                Expect::Fine
            }
            Self::Token => Expect::Refused(Code::Aborted),
            Self::Unused => INVALID,
            _ if text.len() > LONGEST => INVALID,
            Self::Name if text.chars().any(char::is_control) => INVALID,
            Self::Name => Expect::Fine,
            Self::Choice => INVALID,
            _ if plausible => Expect::Fine,
            Self::Id => Expect::Refused(Code::NotFound),
            Self::Member => INVALID,
            _ => Expect::Quiet,
        }
    }
}

//! ValidateVolumeCapabilities: against the disk as it is.

use std::collections::HashMap;

use tonic::Status;

use super::Service;
use super::create::mounts_fit;
use crate::base::Deadline;
use crate::csi::param::{Class, mutable};
use crate::csi::proto::validate_volume_capabilities_response::Confirmed;
use crate::csi::{capability, proto, request, status};
use crate::model::{Disk, DiskId, DiskKind, Filesystem, Tuning, context};

pub(super) async fn validate(
    service: &Service,
    deadline: Deadline,
    request: proto::ValidateVolumeCapabilitiesRequest,
) -> Result<proto::ValidateVolumeCapabilitiesResponse, Status> {
    request::required("volume_id", &request.volume_id)?;
    if request.volume_capabilities.is_empty() {
        return Err(Status::invalid_argument(
            "volume_capabilities is required and empty",
        ));
    }
    let disk: DiskId = request::id("volume_id", &request.volume_id)?;
    let disk = service
        .disks
        .inventory
        .disk(deadline, &disk)
        .await
        .map_err(|error| status::of(&error))?;
    Ok(match refusal(&disk, &request) {
        Some(message) => proto::ValidateVolumeCapabilitiesResponse {
            confirmed: None,
            message,
        },
        None => proto::ValidateVolumeCapabilitiesResponse {
            confirmed: Some(Confirmed {
                volume_context: request.volume_context,
                volume_capabilities: request.volume_capabilities,
                parameters: request.parameters,
                mutable_parameters: request.mutable_parameters,
            }),
            message: String::new(),
        },
    })
}

/// Why the disk is not what is asked about; none when it is.
fn refusal(disk: &Disk, request: &proto::ValidateVolumeCapabilitiesRequest) -> Option<String> {
    let read = || -> Result<Option<String>, Status> {
        let capabilities = capability::check_all(&request.volume_capabilities);
        let capabilities = capabilities.map_err(|error| request::invalid(&error))?;
        capability::fit(&capabilities, disk.multi_attach).map_err(|e| request::invalid(&e))?;
        let change = mutable::read(&request.mutable_parameters)?;
        let mut class = Class::read_with(&request.parameters, &change)?;
        let named = context::get(&request.volume_context, context::FS_TYPE);
        class.fs_type = named.and_then(|name| name.parse().ok()).or(class.fs_type);
        mounts_fit(&capabilities, &class)?;
        let given = |key: &str| {
            let mut keys = request.parameters.keys();
            keys.any(|name| name.eq_ignore_ascii_case(key))
        };
        let class = differs(disk, &class, given);
        Ok(class.or_else(|| context_differs(disk, &request.volume_context)))
    };
    if disk.kind == DiskKind::System {
        return Some(format!(
            "disk {} is a system disk, which is no volume",
            disk.id
        ));
    }
    read().unwrap_or_else(|status| Some(status.message().to_owned()))
}

/// What the class asks for and the disk is not. What the class does not name is not asked for.
fn differs(disk: &Disk, class: &Class, given: impl Fn(&str) -> bool) -> Option<String> {
    let says =
        |key: &str, is: &str| format!("parameter {key:?} does not fit: disk {} is {is}", disk.id);
    if given("type") && !class.categories.contains(&disk.category) {
        return Some(says("type", disk.category.as_str()));
    }
    if let Some(zone) = &disk.zone
        && !class.zones.is_empty()
        && !class.zones.contains(zone)
    {
        return Some(says("zoneId", &format!("in {zone}")));
    }
    if given("multiAttach") && class.multi_attach != disk.multi_attach {
        let is = if disk.multi_attach {
            "for several nodes"
        } else {
            "for one node"
        };
        return Some(says("multiAttach", is));
    }
    if class.encrypted && !disk.encrypted {
        return Some(says("encrypted", "not encrypted"));
    }
    if class.kms_key.is_some() && class.kms_key != disk.kms_key {
        return Some(says("kmsKeyId", "encrypted by another key"));
    }
    None
}

fn context_differs(disk: &Disk, given: &HashMap<String, String>) -> Option<String> {
    let value = |key: &'static str| context::get(given, key).map(|value| (key, value));
    let odd = |(key, value): (&str, &str), allowed: &str| {
        format!("volume_context {key} has value {value:?}; allowed: {allowed}")
    };
    let kind = value(context::FS_TYPE).filter(|(_, name)| name.parse::<Filesystem>().is_err());
    if let Some(kind) = kind {
        return Some(odd(kind, "ext4, ext3, xfs, btrfs"));
    }
    for flag in [context::READ_ONLY, context::MULTI_ATTACH] {
        let wrong = value(flag).filter(|(_, text)| {
            !text.eq_ignore_ascii_case("true") && !text.eq_ignore_ascii_case("false")
        });
        if let Some(wrong) = wrong {
            return Some(odd(wrong, "\"true\" or \"false\""));
        }
    }
    if let Err(error) = Tuning::of(given) {
        return Some(format!("volume_context {error}"));
    }
    let shared = value(context::MULTI_ATTACH)?;
    (shared.1.eq_ignore_ascii_case("true") != disk.multi_attach).then(|| {
        let is = if disk.multi_attach {
            "several nodes"
        } else {
            "one node"
        };
        format!(
            "volume_context {} has value {:?}, and disk {} is for {is}",
            shared.0, shared.1, disk.id
        )
    })
}

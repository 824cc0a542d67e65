//! ValidateVolumeCapabilities: compares the request with the disk.

use std::collections::HashMap;

use crate::csi::param::Class;
use crate::csi::proto::validate_volume_capabilities_response::Confirmed;
use crate::csi::proto::{ValidateVolumeCapabilitiesRequest, ValidateVolumeCapabilitiesResponse};
use crate::csi::request::capability;
use crate::csi::request::error::Result;
use crate::csi::request::validate::Requested;
use crate::model::{Disk, DiskKind, context};

pub(super) fn response(
    disk: &Disk,
    requested: Result<Requested>,
    request: ValidateVolumeCapabilitiesRequest,
) -> ValidateVolumeCapabilitiesResponse {
    let mismatch = match requested {
        _ if disk.kind == DiskKind::System => {
            Some(format!("disk {} is a system disk, which cannot be a volume", disk.id))
        }
        Ok(requested) => mismatch(disk, &requested, &request.parameters),
        Err(error) => Some(error.to_string()),
    };
    let confirmed = Confirmed {
        volume_context: request.volume_context,
        volume_capabilities: request.volume_capabilities,
        parameters: request.parameters,
        mutable_parameters: request.mutable_parameters,
    };
    ValidateVolumeCapabilitiesResponse {
        confirmed: mismatch.is_none().then_some(confirmed),
        message: mismatch.unwrap_or_default(),
    }
}

fn mismatch(disk: &Disk, requested: &Requested, parameters: &HashMap<String, String>) -> Option<String> {
    if let Err(error) = capability::fit(&requested.capabilities, disk.multi_attach) {
        return Some(error.to_string());
    }
    let given = |key: &str| {
        let mut keys = parameters.keys();
        keys.any(|name| name.eq_ignore_ascii_case(key))
    };
    let class = class_mismatch(disk, &requested.class, given);
    class.or_else(|| {
        let shared = requested.multi_attach?;
        (shared != disk.multi_attach).then(|| {
            format!(
                "volume_context {:?} has value \"{shared}\", and disk {} is for {}",
                context::MULTI_ATTACH,
                disk.id,
                users(disk)
            )
        })
    })
}

/// The first parameter of the class that does not match. Parameters that are not set match any disk.
fn class_mismatch(disk: &Disk, class: &Class, given: impl Fn(&str) -> bool) -> Option<String> {
    let mismatch = |key: &str, is: &str| format!("parameter {key:?} does not fit: disk {} is {is}", disk.id);
    if given("type") && !class.disk.categories.contains(&disk.category) {
        return Some(mismatch("type", disk.category.as_str()));
    }
    if let Some(zone) = &disk.zone
        && !class.zones.is_empty()
        && !class.zones.contains(zone)
    {
        return Some(mismatch("zoneId", &format!("in {zone}")));
    }
    if given("multiAttach") && class.disk.multi_attach != disk.multi_attach {
        return Some(mismatch("multiAttach", &format!("for {}", users(disk))));
    }
    if class.disk.encrypted && !disk.encrypted {
        return Some(mismatch("encrypted", "not encrypted"));
    }
    if class.disk.kms_key.is_some() && class.disk.kms_key != disk.kms_key {
        return Some(mismatch("kmsKeyId", "encrypted by another key"));
    }
    None
}

fn users(disk: &Disk) -> &'static str {
    if disk.multi_attach { "several nodes" } else { "one node" }
}

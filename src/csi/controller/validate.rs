//! ValidateVolumeCapabilities: against the disk as it is.

use std::collections::HashMap;

use tonic::Status;

use super::Service;
use crate::csi::param::Class;
use crate::csi::proto::ValidateVolumeCapabilitiesResponse;
use crate::csi::request::validate::{Asked, Validate};
use crate::csi::request::{Call, capability};
use crate::model::{Disk, DiskKind, context};

pub(super) async fn validate(
    service: &Service,
    (deadline, request): Call<Validate>,
) -> Result<ValidateVolumeCapabilitiesResponse, Status> {
    let disk = service
        .disks
        .inventory
        .disk(deadline, &request.disk)
        .await?;
    let parameters = &request.confirmed.parameters;
    let refusal = match request.asked {
        _ if disk.kind == DiskKind::System => Some(format!(
            "disk {} is a system disk, which is no volume",
            disk.id
        )),
        Ok(asked) => differs(&disk, &asked, parameters),
        Err(error) => Some(error.to_string()),
    };
    Ok(match refusal {
        Some(message) => ValidateVolumeCapabilitiesResponse {
            confirmed: None,
            message,
        },
        None => ValidateVolumeCapabilitiesResponse {
            confirmed: Some(request.confirmed),
            message: String::new(),
        },
    })
}

/// What is asked for and the disk is not.
fn differs(disk: &Disk, asked: &Asked, parameters: &HashMap<String, String>) -> Option<String> {
    if let Err(error) = capability::fit(&asked.capabilities, disk.multi_attach) {
        return Some(error.to_string());
    }
    let given = |key: &str| {
        let mut keys = parameters.keys();
        keys.any(|name| name.eq_ignore_ascii_case(key))
    };
    let class = class_differs(disk, &asked.class, given);
    class.or_else(|| {
        let shared = asked.multi_attach?;
        let is = if disk.multi_attach {
            "several nodes"
        } else {
            "one node"
        };
        (shared != disk.multi_attach).then(|| {
            format!(
                "volume_context {:?} has value \"{shared}\", and disk {} is for {is}",
                context::MULTI_ATTACH,
                disk.id
            )
        })
    })
}

/// What the class asks for. What the class does not name is not asked for.
fn class_differs(disk: &Disk, class: &Class, given: impl Fn(&str) -> bool) -> Option<String> {
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

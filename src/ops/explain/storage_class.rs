//! A StorageClass.

use super::candidate;
use super::manifest::Class;
use super::parameters::{self, Map};
use super::report::Explained;
use super::request::{self, create_volume, new_disk};
use super::settings::ExplainSettings;
use crate::csi::proto::CreateVolumeRequest;

/// Adds the requested volume of the class, and all problems of the class.
pub(super) fn explain(class: &Class, mut request: CreateVolumeRequest, settings: &ExplainSettings, to: &mut Explained) {
    let mutable = std::mem::take(&mut request.mutable_parameters);
    let mut parameters = parameters::strings(class, to);
    let parse = |map: &Map| new_disk(&request, map, settings);
    let Some(alone) = parameters::parse_all(&mut parameters, to, parse) else {
        return;
    };
    let topologies = class.allowed_topologies.as_deref().unwrap_or_default();
    candidate::add_unknown_zones(&alone, topologies, settings, to);
    if let Some(zone) = &settings.zone
        && !topologies.is_empty()
        && !topologies.iter().any(|term| request::permits(term, zone))
    {
        let text = format!("no term permits nodes of the zone {zone} (--zone)");
        return to.reject("allowedTopologies", &text);
    }
    for (n, option) in class.mount_options.iter().flatten().enumerate() {
        let mut mounted = request.clone();
        request::mounts(&mut mounted).for_each(|mount| mount.mount_flags.push(option.clone()));
        match new_disk(&mounted, &parameters, settings) {
            Ok(_) => request = mounted,
            Err(error) => to.reject(format!("mountOptions[{n}]"), &error),
        }
    }
    let zones = match topologies.is_empty() {
        true => parameters::ZONE_ID,
        false => "allowedTopologies",
    };
    request.mutable_parameters = mutable;
    request.accessibility_requirements = request::requirement(topologies, settings);
    match new_disk(&request, &parameters, settings) {
        Ok(new) => candidate::add(&new, settings, to),
        Err(error) => to.reject(parameters::field(&error, zones), &error),
    }
}

/// Whether claims of the class are rejected, whatever their size.
pub(super) fn is_rejected(class: &Class, settings: &ExplainSettings) -> bool {
    let mut checked = Explained::default();
    explain(class, create_volume(settings.size), settings, &mut checked);
    let mut problems = checked.problems.iter();
    problems.any(|problem| problem.field != candidate::SIZE)
}

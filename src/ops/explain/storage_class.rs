//! A StorageClass.

use super::candidate;
use super::manifest::StorageClass;
use super::parameters::{self, Map};
use super::report::Explained;
use super::request::{self, Draft, FS_TYPE};
use super::settings::ExplainSettings;

pub(super) fn explain(class: &StorageClass, settings: &ExplainSettings, mut to: Explained) -> Explained {
    if let Some(why) = settings.other_driver("provisioner", &class.provisioner) {
        return to.skip(why);
    }
    add_volume(class, &Draft::of(settings.size), settings, &mut to);
    check_sidecar(class, &mut to);
    to
}

/// Adds the volume of the class that the draft requests, and all problems of the class.
pub(super) fn add_volume(class: &StorageClass, draft: &Draft, settings: &ExplainSettings, to: &mut Explained) {
    let mut parameters = parameters::strings(class.parameters.as_ref(), to);
    let mut complete = Draft {
        mutable: Map::new(),
        ..draft.clone()
    };
    let parse = |map: &Map| complete.new_disk(map, settings);
    let Some(alone) = parameters::parse_all(&mut parameters, to, parse) else {
        return;
    };
    let topologies = class.allowed_topologies.clone().unwrap_or_default();
    candidate::add_unknown_zones(&alone, &topologies, settings, to);
    if let Some(zone) = &settings.zone
        && !topologies.is_empty()
        && !topologies.iter().any(|term| request::permits(term, zone))
    {
        let text = format!("no term permits nodes of the zone {zone} (--zone)");
        return to.reject("allowedTopologies", &text);
    }
    for (n, option) in class.mount_options.iter().flatten().enumerate() {
        complete.mount_options.push(option.clone());
        if let Err(error) = complete.new_disk(&parameters, settings) {
            to.reject(format!("mountOptions[{n}]"), &error);
            complete.mount_options.pop();
        }
    }
    let zones = match topologies.is_empty() {
        true => parameters::ZONE_ID,
        false => "allowedTopologies",
    };
    complete.mutable.clone_from(&draft.mutable);
    complete.zones = request::node_zones(settings);
    // With the zone of the node, csi-provisioner passes only this one.
    if settings.zone.is_none() {
        complete.topologies = topologies;
    }
    match complete.new_disk(&parameters, settings) {
        Ok(new) => candidate::add(&new, settings, to),
        Err(error) => to.reject(parameters::field(&error, zones), &error),
    }
}

/// Reports what csi-provisioner rejects before it calls the driver.
fn check_sidecar(class: &StorageClass, to: &mut Explained) {
    parameters::check_prefixed(class.parameters.as_ref(), &parameters::OF_PROVISIONER, to);
    let keys = || class.parameters.iter().flatten().map(|(key, _)| key);
    let own = keys().find(|key| key.eq_ignore_ascii_case("fstype"));
    if let Some(own) = own.filter(|_| keys().any(|key| key == FS_TYPE)) {
        let text = format!("csi-provisioner rejects {own:?} and {FS_TYPE:?} together; set only one");
        to.reject(format!("parameters.{own}"), &text);
    }
}

/// Whether claims of the class are rejected, whatever their size.
pub(super) fn is_rejected(class: &StorageClass, settings: &ExplainSettings) -> bool {
    let checked = explain(class, settings, Explained::default());
    let mut problems = checked.problems.iter();
    problems.any(|problem| problem.field != candidate::SIZE)
}

//! A StorageClass.

use super::manifest::StorageClass;
use super::parameters::{self, Map};
use super::parsed_class::Parsed;
use super::report::Explained;
use super::request::{self, Draft, FS_TYPE};
use super::sidecar::{self, Sidecar};
use super::{Owner, Settings, candidate, volume_settings};
use crate::csi::param::Class;

pub(super) fn explain(class: &StorageClass, settings: &Settings, mut to: Explained) -> Explained {
    let owner = settings.owner(&class.provisioner);
    if owner == Owner::Other {
        return to.skip(settings.other_driver("provisioner", &class.provisioner));
    }
    let draft = Draft::of(settings.size);
    if let Some(parsed) = parse(class, draft.clone(), settings, &mut to) {
        to.set_with(
            "size",
            settings.size.gib_ceil().map_or_else(String::new, |gib| gib.to_string()),
            "an example, rounded up to whole GiB; --size sets another",
        );
        volume_settings::add(class, &parsed, &draft, settings, &mut to);
        candidate::add(&parsed.new, settings, &mut to);
    }
    check_object(class, &mut to);
    if owner == Owner::Vendor {
        settings.note_vendor("provisioner", &mut to);
    }
    to
}

/// Parses everything in the class, and reports all its problems.
pub(super) fn parse(class: &StorageClass, draft: Draft, settings: &Settings, to: &mut Explained) -> Option<Parsed> {
    let mut parameters = parameters::strings(class.parameters.as_ref(), to);
    let plain = Draft {
        mutable: Map::new(),
        zones: Vec::new(),
        topologies: Vec::new(),
        ..draft.clone()
    };
    let alone = parameters::parse_all(&mut parameters, to, |map| plain.new_disk(map, settings))?;
    let topologies = class.allowed_topologies.clone().unwrap_or_default();
    candidate::add_unknown_zones(&alone, &topologies, settings, to);
    if let Some(zone) = &settings.zone
        && !topologies.is_empty()
        && !topologies.iter().any(|term| request::permits(term, zone))
    {
        let text = format!("no term permits nodes of the zone {zone} (--zone)");
        to.reject("allowedTopologies", &text);
        return None;
    }
    let mut mount_options = Vec::new();
    for (n, option) in class.mount_options.iter().flatten().enumerate() {
        let with_option = Draft {
            mount_options: [mount_options.clone(), vec![option.clone()]].concat(),
            ..plain.clone()
        };
        match with_option.new_disk(&parameters, settings) {
            Ok(_) => mount_options.push(option.clone()),
            Err(error) => to.reject(format!("mountOptions[{n}]"), &error),
        }
    }
    let complete = Draft {
        mount_options: mount_options.clone(),
        zones: request::node_zones(settings),
        // With the zone of the node, csi-provisioner passes only this one.
        topologies: match settings.zone {
            Some(_) => Vec::new(),
            None => topologies,
        },
        ..draft
    };
    let new = match complete.new_disk(&parameters, settings) {
        Ok(new) => new,
        Err(error) => {
            let has_terms = class.allowed_topologies.iter().flatten().next().is_some();
            let zones = match has_terms {
                true => "allowedTopologies",
                false => parameters::ZONE_ID,
            };
            to.reject(parameters::field(&error, zones), &error);
            return None;
        }
    };
    let change = crate::csi::param::mutable::read(&complete.mutable).ok()?;
    let class = Class::read_with(&parameters, &change).ok()?;
    Some(Parsed {
        parameters,
        mount_options,
        class,
        new,
    })
}

/// What Kubernetes and external-provisioner check.
fn check_object(class: &StorageClass, to: &mut Explained) {
    sidecar::check(Sidecar::Provisioner, class.parameters.as_ref(), to);
    let keys = || class.parameters.iter().flatten().map(|(key, _)| key);
    let own = keys().find(|key| key.eq_ignore_ascii_case("fstype"));
    if let Some(own) = own.filter(|_| keys().any(|key| key == FS_TYPE)) {
        let text = format!("csi-provisioner rejects {own:?} and {FS_TYPE:?} together; set only one");
        to.reject(format!("parameters.{own}"), &text);
    }
    for (field, value, allowed) in [
        ("reclaimPolicy", &class.reclaim_policy, ["Delete", "Retain"]),
        (
            "volumeBindingMode",
            &class.volume_binding_mode,
            ["Immediate", "WaitForFirstConsumer"],
        ),
    ] {
        if let Some(value) = value.as_deref().filter(|value| !allowed.contains(value)) {
            let [one, other] = allowed;
            let text = format!("{field} has value {value:?}; allowed: {one}, {other}");
            to.reject(field, &text);
        }
    }
}

/// Whether claims of the class are rejected, whatever their size.
pub(super) fn is_rejected(class: &StorageClass, settings: &Settings) -> bool {
    let checked = explain(class, settings, Explained::default());
    let mut problems = checked.problems.iter();
    problems.any(|problem| problem.field != candidate::SIZE)
}

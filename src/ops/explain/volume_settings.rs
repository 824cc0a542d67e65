//! The settings of a volume: what the parameters of its class set.

use super::Settings;
use super::manifest::StorageClass;
use super::parsed_class::Parsed;
use super::report::Explained;
use super::request::{self, Draft};
use crate::csi::param::Class;
use crate::model::{Filesystem, Fsck, tag};

pub(super) fn add(class: &StorageClass, parsed: &Parsed, draft: &Draft, settings: &Settings, to: &mut Explained) {
    add_zones(class, parsed, settings, to);
    if draft.block {
        to.set_with("filesystem", "none", "a raw block volume");
        let tuning = &parsed.class.tuning;
        if !tuning.mkfs_options.is_empty() || tuning.fsck != Fsck::default() {
            to.note("parameters of the filesystem have no effect on a raw block volume");
        }
    } else {
        add_filesystem(parsed, to);
    }
    add_features(&parsed.class, to);
    add_tags(&parsed.class, draft, to);
    add_lifecycle(class, to);
}

fn add_zones(class: &StorageClass, parsed: &Parsed, settings: &Settings, to: &mut Explained) {
    let unknown = request::selected_node();
    let zones = parsed.new.zones.iter().map(|allowed| &allowed.zone);
    let zones: Vec<_> = zones.filter(|zone| **zone != unknown).collect();
    let names: Vec<_> = zones.iter().map(|zone| zone.as_str()).collect();
    let waits = class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer");
    let regional = parsed.class.categories.iter();
    if regional.clone().all(crate::model::Category::is_regional) {
        to.set_with("zones", "none", "a regional disk belongs to no zone");
    } else if names.is_empty() {
        let effect = match waits {
            true => "that of the node which the scheduler selects",
            false => "those of the cluster's nodes",
        };
        to.set_with("zones", "not restricted", effect);
    } else {
        let source = match (&class.allowed_topologies, &settings.zone) {
            (_, Some(_)) => "--zone",
            (Some(terms), _) if !terms.is_empty() => "allowedTopologies",
            _ if !parsed.class.zones.is_empty() => "zoneId",
            (_, None) => "the stock of the region",
        };
        let effect = match waits && settings.zone.is_none() {
            true => format!("{source}; the zone of the node that the scheduler selects is first"),
            false => source.to_owned(),
        };
        to.set_with("zones", names.join(", "), effect);
    }
    let (mode, effect) = match waits {
        true => ("WaitForFirstConsumer", "the disk is created in the zone of its pod"),
        false => (
            "Immediate",
            "the disk is created before its pod is scheduled, so its zone may not suit the pod; \
             WaitForFirstConsumer avoids this",
        ),
    };
    to.set_with("volumeBindingMode", mode, effect);
}

fn add_filesystem(parsed: &Parsed, to: &mut Explained) {
    let class = &parsed.class;
    let sidecar = parsed.parameters.get(request::FS_TYPE);
    let sidecar = sidecar.and_then(|value| value.trim().parse().ok());
    let filesystem: Filesystem = sidecar.or(class.fs_type).unwrap_or_default();
    to.set("filesystem", filesystem.as_str());
    if let Ok(arguments) = class.tuning.mkfs_arguments(filesystem, "") {
        to.set_with(
            "mkfs",
            format!("mkfs.{filesystem} {}", arguments.join(" ")),
            "once, if the disk is blank",
        );
    }
    let mut options: Vec<_> = parsed.mount_options.iter().map(String::as_str).collect();
    options.extend(class.tuning.mount_options(filesystem));
    if !options.is_empty() {
        to.set("mountOptions", options.join(","));
    }
    let fsck = class.tuning.fsck;
    let effect = match fsck {
        _ if !filesystem.is_ext() => "only ext3 and ext4 are checked",
        Fsck::Preen => "e2fsck -p before each writable mount",
        Fsck::Journal => "the mount replays the journal; a filesystem with errors is rejected",
        Fsck::None => "no check",
    };
    to.set_with("fsck", fsck.to_string(), effect);
    if class.tuning.partition {
        let effect = "the only partition is mounted; a blank disk is rejected";
        to.set_with("partition", "1", effect);
    }
}

fn add_features(class: &Class, to: &mut Explained) {
    if class.read_only {
        let effect = "every mount; a blank disk is never formatted, so use it with a snapshot";
        to.set_with("readOnly", "true", effect);
    }
    match (class.encrypted, &class.kms_key) {
        (false, _) => to.set("encryption", "none"),
        (true, None) => to.set_with("encryption", "at rest", "with the service key of ECS"),
        (true, Some(key)) => to.set_with("encryption", "at rest", format!("with KMS key {key}")),
    }
    if class.multi_attach {
        let effect =
            "up to 16 nodes of one zone, with NVMe, as volumeMode Block; no VolumeAttributesClass except for tags";
        to.set_with("multiAttach", "true", effect);
    }
    if class.provisioned_iops > 0 {
        let effect = "in addition to the baseline of cloud_auto, billed";
        to.set_with("provisionedIops", class.provisioned_iops.to_string(), effect);
    }
    if class.bursting {
        use crate::model::performance::{BURST_IOPS, BURST_THROUGHPUT};
        let effect =
            format!("cloud_auto may exceed its baseline up to {BURST_IOPS} IOPS and {BURST_THROUGHPUT}, billed");
        to.set_with("burstingEnabled", "true", effect);
    }
    if let Some(group) = &class.resource_group {
        to.set("resourceGroupId", group.clone());
    }
    if !class.tuning.block_settings.is_empty() {
        let effect = "set on the device while the volume is staged";
        to.set_with("sysConfig", class.tuning.block_settings.to_string(), effect);
    }
}

fn add_tags(class: &Class, draft: &Draft, to: &mut Explained) {
    let mut own = vec![tag::CLUSTER, tag::CSI_NAME];
    if draft.source == Some(request::Source::Volume) {
        own.push(tag::CLONE_OF);
    }
    let user = class.tags.iter().map(|(key, value)| format!("{key}={value}"));
    let all: Vec<_> = user.chain(own.into_iter().map(str::to_owned)).collect();
    let effect = format!(
        "and {}* with the names of claim and volume, if csi-provisioner runs with --extra-create-metadata",
        tag::CREATED_FOR
    );
    to.set_with("tags", all.join(", "), effect);
}

fn add_lifecycle(class: &StorageClass, to: &mut Explained) {
    let effect = match class.reclaim_policy.as_deref() {
        Some("Retain") => ("Retain", "the disk remains when its claim is deleted"),
        _ => ("Delete", "the disk is deleted with its claim"),
    };
    to.set_with("reclaimPolicy", effect.0, effect.1);
    match class.allow_volume_expansion {
        Some(true) => {
            let effect = "volumes can be expanded while they are in use; they never shrink";
            to.set_with("allowVolumeExpansion", "true", effect);
        }
        _ => to.set_with("allowVolumeExpansion", "false", "volumes cannot be expanded"),
    }
}

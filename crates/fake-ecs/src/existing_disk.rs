//! Disks that exist without having been created through the API.

use super::disk::{Attachment, AttachmentState, DiskRow, Phase};
use super::size;
use super::world::World;

/// A disk to add in the state `Available` or `In_use`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExistingDisk {
    pub category: String,
    /// None for a regional disk.
    pub zone: Option<String>,
    pub system: bool,
    /// Pay-as-you-go; false for a subscription disk.
    pub portable: bool,
    /// The instance that it is attached to.
    pub instance: Option<String>,
}

/// Adds the disk and returns its ID.
pub(crate) fn add(world: &mut World, found: &ExistingDisk) -> String {
    let serial = world.rng.body();
    let id = format!("d-{serial}");
    let now = world.now;
    let attachments = found.instance.iter().map(|instance| Attachment {
        instance: instance.clone(),
        state: AttachmentState::Attached,
        device: "/dev/xvda".to_owned(),
        since: now,
    });
    world.disks.insert(
        world.retention(),
        DiskRow {
            id: id.clone(),
            serial,
            name: String::new(),
            description: String::new(),
            zone: found.zone.clone().unwrap_or_default(),
            category: found.category.clone(),
            level: None,
            size: 40,
            phase: Phase::Ready,
            attachments: attachments.collect(),
            multi_attach: false,
            system: found.system,
            portable: found.portable,
            snapshot: None,
            encrypted: false,
            kms_key: None,
            provisioned_iops: 0,
            bursting: false,
            resource_group: None,
            delete_with_instance: found.system,
            bound_to: found.instance.clone().filter(|_| size::is_ephemeral(&found.category)),
            tags: std::collections::BTreeMap::new(),
            created: now,
            attached: found.instance.as_ref().map(|_| now),
            detached: None,
            loading: false,
            growing: None,
            detach_stuck: false,
            shown_status: None,
            shown_holder: None,
            changed: None,
            shown_lock: None,
            unreadable: false,
        },
    );
    id
}

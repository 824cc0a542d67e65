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
            zone: found.zone.clone().unwrap_or_default(),
            category: found.category.clone(),
            size: 40,
            phase: Phase::Ready,
            attachments: attachments.collect(),
            system: found.system,
            portable: found.portable,
            delete_with_instance: found.system,
            bound_to: found.instance.clone().filter(|_| size::is_ephemeral(&found.category)),
            created: now,
            attached: found.instance.as_ref().map(|_| now),
            ..DiskRow::default()
        },
    );
    id
}

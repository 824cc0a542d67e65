//! Disks that are there without having been made through the API.

use super::disk::{Attachment, DiskRow, Link, Phase};
use super::size;
use super::world::World;

/// A disk that shall be there, ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundDisk {
    /// Its category, as the API names it.
    pub category: String,
    /// Its zone; none for a disk of the region.
    pub zone: Option<String>,
    /// Whether it is the system disk of its instance.
    pub system: bool,
    /// Whether it is pay-as-you-go; one of a subscription is not.
    pub portable: bool,
    /// The instance that holds it.
    pub instance: Option<String>,
}

impl World {
    /// Adds the disk. Returns its id.
    pub(crate) fn found_disk(&mut self, found: &FoundDisk) -> String {
        let serial = self.rng.body();
        let id = format!("d-{serial}");
        let now = self.now;
        let attachments = found.instance.iter().map(|instance| Attachment {
            instance: instance.clone(),
            link: Link::Attached,
            device: "/dev/xvda".to_owned(),
            since: now,
        });
        self.put_disk(DiskRow {
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
            bound_to: found
                .instance
                .clone()
                .filter(|_| size::is_ephemeral(&found.category)),
            tags: std::collections::BTreeMap::new(),
            created: now,
            attached: found.instance.as_ref().map(|_| now),
            detached: None,
            loading: false,
            growing: None,
            sticks: false,
            shown_status: None,
            shown_holder: None,
            changed: None,
            shown_lock: None,
            unreadable: false,
        });
        id
    }
}

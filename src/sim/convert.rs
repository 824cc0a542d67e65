//! Conversion of rows to the project's model, for the API in memory.

use jiff::Timestamp;

use crate::cloud::{Error, Kind, Page, UndeletedSnapshot, Unreadable};
use crate::model::{
    Category, Disk, DiskHealth, DiskId, DiskKind, DiskStatus, Gib, GroupMember, HealthEvent,
    Instance, InstanceId, InstanceStatus, InstanceType, Serial, Snapshot, SnapshotGroup,
    SnapshotGroupId, SnapshotId, SnapshotStatus, Stock, Task, TaskId, TaskStatus, ZoneId,
    ZoneStock,
};

use super::action::Action;
use super::disk::DiskRow;
use super::group::{GroupView, RemainingMember};
use super::health::HealthRow;
use super::instance::InstanceRow;
use super::instance_type::InstanceTypeSpec;
use super::response::ApiError;
use super::response::Listing;
use super::snapshot::SnapshotRow;
use super::stock::ZoneAvailability;
use super::task::TaskRow;

const OWN: &str = "the fake cloud creates and accepts valid IDs only";

pub(crate) fn error(action: &'static str, error: ApiError, request_id: String) -> Error {
    Error::from_response(action, error.status, &error.code)
        .with_message(error.message.unwrap_or_default())
        .with_request_id(request_id)
        .with_retry_after(error.wait)
}

pub(crate) fn wrong(action: Action) -> Error {
    Error::new(Kind::Ambiguous, action.as_str())
        .with_message("the response belongs to another action")
}

pub(crate) fn disk_id(id: &str) -> DiskId {
    id.parse().expect(OWN)
}

pub(crate) fn snapshot_id(id: &str) -> SnapshotId {
    id.parse().expect(OWN)
}

pub(crate) fn group_id(id: &str) -> SnapshotGroupId {
    id.parse().expect(OWN)
}

pub(crate) fn task_id(id: &str) -> TaskId {
    id.parse().expect(OWN)
}

fn category(name: &str) -> Category {
    let Ok(category) = name.parse();
    category
}

/// Truncates a time to seconds, as the wire format does.
fn second(at: Timestamp) -> Option<Timestamp> {
    Timestamp::from_second(at.as_second()).ok()
}

/// A page of disks, with unreadable rows separated.
pub(crate) fn disks(listing: Listing<DiskRow>) -> Page<Disk> {
    let (lost, rows): (Vec<_>, Vec<_>) = listing.rows.into_iter().partition(|row| row.unreadable);
    let unreadable = lost.into_iter().map(|row| Unreadable {
        reason: format!("the row of {} has no Status", row.id),
        id: Some(row.id),
    });
    Page {
        rows: rows.into_iter().map(disk).collect(),
        unreadable: unreadable.collect(),
        next: listing.next,
    }
}

fn disk(row: DiskRow) -> Disk {
    let Ok(status) = row.status().parse::<DiskStatus>();
    let held = row.is_held();
    let mut holders: Vec<_> = row.shown().collect();
    // As over HTTP: `InstanceId` counts if `Attachments` is empty, as in a torn read.
    if holders.is_empty() {
        holders.extend(row.holder());
    }
    let attachments = holders
        .into_iter()
        .map(|a| a.instance.parse::<InstanceId>().expect(OWN));
    Disk {
        id: disk_id(&row.id),
        serial: Serial::new(&row.serial),
        attachments: attachments.collect(),
        zone: row.zone.parse::<ZoneId>().ok(),
        category: category(&row.category),
        size: Gib(row.size),
        kind: if row.system {
            DiskKind::System
        } else {
            DiskKind::Data
        },
        status,
        source_snapshot: row.snapshot.as_deref().map(snapshot_id),
        encrypted: row.encrypted,
        created: second(row.created),
        attached: row.attached.filter(|_| held).and_then(second),
        detached: row.detached.filter(|_| !held).and_then(second),
        name: row.name,
        performance_level: row.level,
        provisioned_iops: u32::try_from(row.provisioned_iops).unwrap_or(u32::MAX),
        bursting: row.bursting,
        multi_attach: row.multi_attach,
        delete_with_instance: row.delete_with_instance,
        resource_group: row.resource_group,
        kms_key: row.kms_key,
        locks: row.shown_lock.into_iter().collect(),
        tags: row.tags,
    }
}

pub(crate) fn task(row: TaskRow) -> Task {
    let Ok(status) = row.stage.as_str().parse::<TaskStatus>();
    Task {
        id: task_id(&row.id),
        status,
        resource: row.disk,
        created: second(row.begun),
    }
}

pub(crate) fn health(row: HealthRow) -> DiskHealth {
    let event = row.event.map(|kind| HealthEvent {
        kind,
        id: row.event_id,
    });
    DiskHealth {
        disk: disk_id(&row.disk),
        status: row.health,
        events: event.into_iter().collect(),
    }
}

pub(crate) fn snapshot(row: SnapshotRow) -> Snapshot {
    let Ok(status) = row.status().parse::<SnapshotStatus>();
    Snapshot {
        id: snapshot_id(&row.id),
        available: row.available(),
        source_disk: Some(disk_id(&row.disk)),
        source_size: Gib(row.size),
        status,
        created: row.cut.and_then(second),
        encrypted: row.encrypted,
        // The group is set from the start, while a description only mentions it.
        group: row.group.as_deref().map(group_id),
        name: row.name,
        tags: row.tags,
    }
}

pub(crate) fn group(view: GroupView) -> SnapshotGroup {
    let Ok(status) = view.status().parse::<SnapshotStatus>();
    let members = view.members.iter().map(|row| GroupMember {
        snapshot: snapshot_id(&row.id),
        source: Some(disk_id(&row.disk)),
    });
    SnapshotGroup {
        id: group_id(&view.row.id),
        status,
        created: second(view.row.created),
        members: members.collect(),
        tags: view.row.tags,
    }
}

pub(crate) fn remaining(remaining: RemainingMember) -> UndeletedSnapshot {
    UndeletedSnapshot {
        snapshot: remaining.snapshot,
        code: remaining.error.code,
        message: remaining.error.message.unwrap_or_default(),
    }
}

pub(crate) fn instance(row: InstanceRow) -> Instance {
    let Ok(status) = row.power.as_str().parse::<InstanceStatus>();
    Instance {
        id: row.id.parse().expect(OWN),
        zone: row.zone.parse().expect(OWN),
        instance_type: row.instance_type,
        status,
        tags: row.tags,
    }
}

pub(crate) fn machine(row: InstanceTypeSpec) -> InstanceType {
    InstanceType {
        name: row.name,
        disk_quantity: row.disk_quantity,
    }
}

pub(crate) fn stock(row: ZoneAvailability) -> ZoneStock {
    let categories = row.offers.into_iter().map(|offer| Stock {
        category: category(offer.category),
        available: offer.available,
    });
    ZoneStock {
        zone: row.zone.parse().ok(),
        categories: categories.collect(),
    }
}

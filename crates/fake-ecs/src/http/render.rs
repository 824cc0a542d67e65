//! Responses and errors in the JSON of the wire format.

use serde_json::{Value, json};

use crate::api_error::ApiError;
use crate::disk::DiskRow;
use crate::group::{GroupView, RemainingMember};
use crate::health::HealthRow;
use crate::instance::InstanceRow;
use crate::instance_type::InstanceTypeSpec;
use crate::response::{ApiResponse, Listing};
use crate::size;
use crate::snapshot::SnapshotRow;
use crate::stock::ZoneAvailability;
use crate::tag::TaggedRow;
use crate::task::TaskRow;
use jiff::Timestamp;

/// Renders rows of a region at a time.
#[derive(Debug)]
pub(super) struct Renderer<'a> {
    pub(super) region: &'a str,
    pub(super) now: Timestamp,
}

fn time(at: Option<Timestamp>) -> String {
    at.map_or(String::new(), |at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

fn tags(tags: &std::collections::BTreeMap<String, String>) -> Value {
    let tags = tags.iter().map(|(k, v)| json!({"TagKey": k, "TagValue": v}));
    json!({"Tag": tags.collect::<Vec<_>>()})
}

fn listing<T>(page: Listing<T>, list: &str, row: &str, with: impl FnMut(T) -> Value) -> Value {
    let page = page.map(with);
    let mut value = json!({
        "TotalCount": page.total,
        "PageNumber": page.page_number,
        "PageSize": page.page_size,
        "NextToken": page.next.unwrap_or_default(),
    });
    value[list] = json!({ row: page.rows });
    value
}

/// Removes the paging fields that an action does not have.
fn without(mut value: Value, fields: &[&str]) -> Value {
    if let Some(all) = value.as_object_mut() {
        all.retain(|name, _| !fields.contains(&name.as_str()));
    }
    value
}

impl Renderer<'_> {
    pub(super) fn response(&self, response: ApiResponse) -> Value {
        match response {
            ApiResponse::Done => json!({}),
            ApiResponse::Disk(id) => json!({"DiskId": id}),
            ApiResponse::Snapshot(id) => json!({"SnapshotId": id}),
            ApiResponse::Task(None) => json!({}),
            ApiResponse::Task(Some(id)) => json!({"TaskId": id}),
            ApiResponse::Tasks(page) => {
                let value = listing(page, "TaskSet", "Task", |row| task(&row));
                without(value, &["NextToken"])
            }
            ApiResponse::Health(page) => {
                let (list, row) = ("DiskFullStatusSet", "DiskFullStatusType");
                without(listing(page, list, row, |row| health(&row)), &["NextToken"])
            }
            ApiResponse::Tagged(page) => {
                let value = listing(page, "TagResources", "TagResource", |row| tagged(&row));
                without(value, &["PageNumber", "PageSize", "TotalCount"])
            }
            ApiResponse::Disks(page) => listing(page, "Disks", "Disk", |row| self.disk(&row)),
            ApiResponse::Snapshots(page) => listing(page, "Snapshots", "Snapshot", |row| self.snapshot(&row)),
            ApiResponse::Group(id) => json!({"SnapshotGroupId": id}),
            ApiResponse::Groups(page) => {
                let view = |view: GroupView| self.group(&view);
                listing(page, "SnapshotGroups", "SnapshotGroup", view)
            }
            ApiResponse::GroupDeleted(remaining) => {
                let remaining: Vec<Value> = remaining.iter().map(left).collect();
                json!({"OperationProgressSet": {"OperationProgress": remaining}})
            }
            ApiResponse::Instances(page) => listing(page, "Instances", "Instance", |row| self.instance(&row)),
            ApiResponse::Types(types) => {
                let types: Vec<Value> = types.iter().map(machine).collect();
                json!({"InstanceTypes": {"InstanceType": types}, "NextToken": ""})
            }
            ApiResponse::Stock(zones) => {
                let zones: Vec<Value> = zones.iter().map(|zone| self.zone(zone)).collect();
                json!({"AvailableZones": {"AvailableZone": zones}})
            }
            ApiResponse::Regions(regions) => {
                let regions = regions
                    .iter()
                    .map(|region| json!({"RegionId": region, "LocalName": region, "Status": "available"}));
                json!({"Regions": {"Region": regions.collect::<Vec<_>>()}})
            }
        }
    }

    fn disk(&self, row: &DiskRow) -> Value {
        let holder = row.holder();
        let attachments = row
            .shown()
            .map(|a| json!({"InstanceId": a.instance, "Device": a.device, "AttachedTime": time(Some(a.since))}));
        let attachments: Vec<Value> = attachments.collect();
        let (iops, rate) = size::performance(&row.category, row.level.as_deref(), row.size);
        let held = row.is_held();
        let value = json!({
            "DiskId": row.id,
            "SerialNumber": row.serial,
            "RegionId": self.region,
            "ZoneId": row.zone,
            "DiskName": row.name,
            "Description": row.description,
            "Type": if row.system { "system" } else { "data" },
            "Category": row.category,
            "PerformanceLevel": row.level.as_deref().unwrap_or_default(),
            "Size": row.size,
            "Status": if row.unreadable { "" } else { row.status() },
            "InstanceId": holder.map_or("", |a| &a.instance),
            "Device": holder.map_or("", |a| &a.device),
            "Attachments": {"Attachment": attachments},
            "MultiAttach": if row.multi_attach { "Enabled" } else { "Disabled" },
            "Portable": row.portable,
            "DeleteWithInstance": row.delete_with_instance,
            "Tags": tags(&row.tags),
        });
        merged(value, constant(row, held, iops, rate))
    }

    fn snapshot(&self, row: &SnapshotRow) -> Value {
        let remaining = crate::distribution::until(self.now, row.ends).as_secs();
        json!({
            "SnapshotId": row.id,
            "SnapshotName": row.name,
            "Description": row.description,
            "SourceDiskId": row.disk,
            "SourceDiskSize": row.size.to_string(),
            "SourceDiskType": "data",
            "Status": row.status(),
            "Progress": format!("{}%", row.progress(self.now)),
            "Available": row.available(),
            "RemainTime": remaining,
            "CreationTime": time(row.cut),
            "LastModifiedTime": time(row.cut),
            "RetentionDays": row.retention_days.unwrap_or(0),
            "Usage": "none",
            "Encrypted": row.encrypted,
            "Category": "Standard",
            "SnapshotType": "user",
            "RegionId": self.region,
            "ResourceGroupId": row.resource_group.as_deref().unwrap_or_default(),
            "ProductCode": "",
            "Tags": tags(&row.tags),
        })
    }

    fn group(&self, view: &GroupView) -> Value {
        let row = &view.row;
        let members = view.members.iter().map(|member| {
            json!({
                "SnapshotId": member.id,
                "SourceDiskId": member.disk,
                "SourceDiskType": "data",
                "Progress": format!("{}%", member.progress(self.now)),
                "Available": member.available(),
                "InstantAccess": false,
                "InstantAccessRetentionDays": 0,
                "Tags": tags(&member.tags),
            })
        });
        // Unlike in other actions: without `Tag` before their names.
        let named = row.tags.iter().map(|(k, v)| json!({"Key": k, "Value": v}));
        json!({
            "SnapshotGroupId": row.id,
            "Name": row.name,
            "Description": row.description,
            "Status": view.status(),
            "ProgressStatus": "",
            "CreationTime": time(Some(row.created)),
            "InstanceId": row.instance.as_deref().unwrap_or_default(),
            "ResourceGroupId": row.resource_group.as_deref().unwrap_or_default(),
            "Tags": {"Tag": named.collect::<Vec<_>>()},
            "Snapshots": {"Snapshot": members.collect::<Vec<_>>()},
        })
    }

    fn instance(&self, row: &InstanceRow) -> Value {
        json!({
            "InstanceId": row.id,
            "InstanceName": row.name,
            "HostName": row.name,
            "InstanceType": row.instance_type,
            "Status": row.power,
            "RegionId": self.region,
            "ZoneId": row.zone,
            "CreationTime": time(Some(row.created)),
            "IoOptimized": true,
            "DeviceAvailable": true,
            "InstanceChargeType": "PostPaid",
            "OperationLocks": {"LockReason": []},
            "Tags": tags(&row.tags),
        })
    }

    fn zone(&self, zone: &ZoneAvailability) -> Value {
        let word = |available| if available { "Available" } else { "OutOfStock" };
        let stock = |available| {
            if available { "WithStock" } else { "WithoutStock" }
        };
        let any = zone.offers.iter().any(|offer| offer.available);
        let offers = zone.offers.iter().map(|offer| {
            json!({
                "Value": offer.category,
                "Status": word(offer.available),
                "StatusCategory": stock(offer.available),
                "Min": offer.sizes.start(),
                "Max": offer.sizes.end(),
                "Unit": "GiB",
            })
        });
        let offers: Vec<Value> = offers.collect();
        json!({
            "RegionId": self.region,
            "ZoneId": zone.zone,
            "Status": word(any),
            "StatusCategory": stock(any),
            "AvailableResources": {"AvailableResource": [
                {"Type": "DataDisk", "SupportedResources": {"SupportedResource": offers}}
            ]},
        })
    }
}

fn task(row: &TaskRow) -> Value {
    json!({
        "TaskId": row.id,
        "TaskAction": "ModifyDiskSpec",
        "TaskStatus": row.stage,
        "ResourceId": row.disk,
        "CreationTime": time(Some(row.begun)),
        "FinishedTime": time(row.ended),
        "SupportCancel": "false",
    })
}

fn health(row: &HealthRow) -> Value {
    let event = row.event.as_ref().map(|kind| {
        json!({
            "EventId": row.event_id,
            "EventEndTime": "",
            "EventType": {"Name": kind, "Code": 0},
        })
    });
    json!({
        "DiskId": row.disk,
        "InstanceId": row.instance,
        "Status": {"Name": row.status, "Code": 0},
        "HealthStatus": {"Name": row.health, "Code": 0},
        "DiskEventSet": {"DiskEventType": event.into_iter().collect::<Vec<_>>()},
    })
}

fn tagged(row: &TaggedRow) -> Value {
    json!({
        "ResourceId": row.id,
        "ResourceType": row.kind,
        "TagKey": row.key,
        "TagValue": row.value,
    })
}

/// The fields that drivers rarely read.
fn constant(row: &DiskRow, held: bool, iops: u32, rate: u32) -> Value {
    json!({
            "DeleteAutoSnapshot": true,
    "EnableAutoSnapshot": true,
    "EnableAutomatedSnapshotPolicy": false,
    "AutoSnapshotPolicyId": "",
    "Encrypted": row.encrypted,
    "KMSKeyId": row.kms_key.as_deref().unwrap_or_default(),
    "SourceSnapshotId": row.snapshot.as_deref().unwrap_or_default(),
    "SourceDiskId": "",
    "ImageId": "",
    "ResourceGroupId": row.resource_group.as_deref().unwrap_or_default(),
    "DiskChargeType": if row.portable { "PostPaid" } else { "PrePaid" },
    "ExpiredTime": "2999-09-08T16:00Z",
    "CreationTime": time(Some(row.created)),
    "AttachedTime": time(row.attached.filter(|_| held)),
    "DetachedTime": time(row.detached.filter(|_| !held)),
    "IOPS": iops,
    "IOPSRead": iops,
    "IOPSWrite": iops,
    "Throughput": rate,
    "ThroughputRead": rate,
    "ThroughputWrite": rate,
    "ProvisionedIops": row.provisioned_iops,
    "BurstingEnabled": row.bursting,
    "StorageClusterId": "",
    "StorageSetId": "",
    "ProductCode": "",
    "BdfId": "",
    "MountInstanceNum": 0,
    "MountInstances": {"MountInstance": []},
    "OperationLocks": {"OperationLock": row.shown_lock.iter()
        .map(|reason| json!({"LockReason": reason})).collect::<Vec<_>>()},
    })
}

fn merged(mut one: Value, mut other: Value) -> Value {
    if let (Some(one), Some(other)) = (one.as_object_mut(), other.as_object_mut()) {
        one.append(other);
    }
    one
}

fn machine(row: &InstanceTypeSpec) -> Value {
    let family = row.name.rsplit_once('.').map_or("", |(family, _)| family);
    json!({
        "InstanceTypeId": row.name,
        "InstanceTypeFamily": family,
        "CpuCoreCount": row.cores,
        "MemorySize": row.memory_gib,
        "DiskQuantity": row.disk_quantity,
        "NvmeSupport": row.nvme,
        "LocalStorageAmount": 0,
    })
}

/// A snapshot that remains, in the successful response to its group's deletion.
fn left(remaining: &RemainingMember) -> Value {
    json!({
        "OperationStatus": "Failed",
        "ErrorCode": remaining.error.code,
        "ErrorMsg": remaining.error.message,
        "RelatedItemSet": {"RelatedItem": [{"Name": "SnapshotId", "Value": remaining.snapshot}]},
    })
}

/// The body of an error.
pub(super) fn error(error: &ApiError, request_id: &str, host: &str) -> Value {
    json!({
        "RequestId": request_id,
        "HostId": host,
        "Code": error.code,
        "Message": error.message,
        "Recommend": format!(
            "https://troubleshoot.example/?q={}&product=Ecs&requestId={request_id}", error.code
        ),
    })
}

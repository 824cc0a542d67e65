//! Disks on the wire.

use serde::Deserialize;

use super::params::Params;
use super::{List, Malformed, filled, number, page, time};
use crate::cloud::action::{
    AttachDisk, CreateDisk, DescribeDisks, DetachDisk, Page, ResizeDisk, ResizeMode,
};
use crate::model::{Category, Disk, DiskKind, DiskStatus, Gib, PerformanceLevel, Serial, Tags};

/// Rows asked for a page where the caller does not say: all the ids of one query.
const PAGE: u32 = 100;

pub fn create(request: &CreateDisk) -> Params {
    Params::default()
        .set_some("ZoneId", request.zone.as_ref())
        .set("DiskCategory", &request.category)
        .set_some(
            "PerformanceLevel",
            request.performance_level.map(PerformanceLevel::as_str),
        )
        .set_some("ProvisionedIops", request.provisioned_iops)
        .set_some("BurstingEnabled", request.bursting.then_some("true"))
        .set_some("MultiAttach", request.multi_attach.then_some("Enabled"))
        .set_some("ResourceGroupId", request.resource_group.as_ref())
        .set("Size", request.size.0)
        .set("DiskName", &request.name)
        .set_some("SnapshotId", request.snapshot.as_ref())
        .set_some("Encrypted", request.encrypted.then_some("true"))
        .set_some("KMSKeyId", request.kms_key.as_ref())
        .set("ClientToken", &request.token)
        .tags(&request.tags)
}

pub fn attach(request: &AttachDisk) -> Params {
    let delete = request.delete_with_instance.then_some("true");
    Params::default()
        .set("DiskId", &request.disk)
        .set("InstanceId", &request.instance)
        .set_some("Force", request.force.then_some("true"))
        .set_some("DeleteWithInstance", delete)
}

pub fn detach(request: &DetachDisk) -> Params {
    let delete = request.delete_with_instance.then_some("true");
    Params::default()
        .set("DiskId", &request.disk)
        .set("InstanceId", &request.instance)
        .set_some("DeleteWithInstance", delete)
}

pub fn resize(request: &ResizeDisk) -> Params {
    let mode = match request.mode {
        ResizeMode::Online => "online",
        ResizeMode::Offline => "offline",
    };
    Params::default()
        .set("DiskId", &request.disk)
        .set("NewSize", request.size.0)
        .set("Type", mode)
        .set("ClientToken", &request.token)
}

pub fn describe(query: &DescribeDisks) -> Params {
    let params = Params::default()
        .set("MaxResults", query.page_size.unwrap_or(PAGE))
        .set_some("NextToken", query.next.as_ref())
        .set_some("InstanceId", query.instance.as_ref())
        .tags(&query.tags);
    match &query.ids {
        Some(ids) => params.ids("DiskIds", ids),
        None => params,
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Created {
    pub disk_id: crate::model::DiskId,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Described {
    #[serde(default, deserialize_with = "filled")]
    next_token: Option<String>,
    disks: List<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Row {
    disk_id: String,
    #[serde(default, deserialize_with = "filled")]
    serial_number: Option<String>,
    #[serde(default, deserialize_with = "filled")]
    disk_name: Option<String>,
    #[serde(default, deserialize_with = "filled")]
    zone_id: Option<String>,
    #[serde(default, deserialize_with = "filled")]
    category: Option<String>,
    #[serde(default, deserialize_with = "filled")]
    performance_level: Option<String>,
    #[serde(default, deserialize_with = "number")]
    provisioned_iops: Option<u32>,
    #[serde(default)]
    bursting_enabled: Option<bool>,
    #[serde(default, deserialize_with = "filled")]
    multi_attach: Option<String>,
    #[serde(default, deserialize_with = "filled")]
    resource_group_id: Option<String>,
    #[serde(default, deserialize_with = "number")]
    size: Option<u32>,
    #[serde(default, deserialize_with = "filled", rename = "Type")]
    kind: Option<String>,
    #[serde(default, deserialize_with = "filled")]
    status: Option<String>,
    #[serde(default, deserialize_with = "filled")]
    instance_id: Option<String>,
    #[serde(default)]
    attachments: Option<List<Attachment>>,
    #[serde(default, deserialize_with = "filled")]
    source_snapshot_id: Option<String>,
    #[serde(default)]
    encrypted: Option<bool>,
    #[serde(default, deserialize_with = "filled", rename = "KMSKeyId")]
    kms_key_id: Option<String>,
    #[serde(default, deserialize_with = "filled")]
    creation_time: Option<String>,
    #[serde(default, deserialize_with = "filled")]
    attached_time: Option<String>,
    #[serde(default, deserialize_with = "filled")]
    detached_time: Option<String>,
    #[serde(default)]
    operation_locks: Option<List<Lock>>,
    #[serde(default)]
    tags: Option<TagRows>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Lock {
    #[serde(default, deserialize_with = "filled")]
    lock_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Attachment {
    #[serde(default, deserialize_with = "filled")]
    instance_id: Option<String>,
}

/// Tags of a described resource, which are spelled `TagKey` and `TagValue` there.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct TagRows {
    #[serde(default)]
    tag: Vec<TagRow>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TagRow {
    tag_key: String,
    #[serde(default)]
    tag_value: Option<String>,
}

impl From<TagRows> for Tags {
    fn from(rows: TagRows) -> Self {
        rows.tag
            .into_iter()
            .map(|row| (row.tag_key, row.tag_value.unwrap_or_default()))
            .collect()
    }
}

impl Described {
    pub fn page(self) -> Page<Disk> {
        page(self.disks.0, "DiskId", self.next_token, Row::disk)
    }
}

impl Row {
    fn disk(self) -> Result<Disk, Malformed> {
        let missing = |field| Malformed::Missing {
            id: self.disk_id.clone(),
            field,
        };
        let Ok(status): Result<DiskStatus, _> =
            self.status.ok_or_else(|| missing("Status"))?.parse();
        let Ok(category): Result<Category, _> =
            self.category.ok_or_else(|| missing("Category"))?.parse();
        let Ok(kind): Result<DiskKind, _> = self.kind.as_deref().unwrap_or("data").parse();
        let size = self.size.map(Gib).ok_or_else(|| missing("Size"))?;
        // `InstanceId` repeats the attachment, and is empty for disks with several.
        let mut holders: Vec<_> = self
            .attachments
            .unwrap_or_default()
            .0
            .into_iter()
            .filter_map(|attachment| attachment.instance_id)
            .collect();
        if holders.is_empty() {
            holders.extend(self.instance_id);
        }
        let parse = |id: String| id.parse().map_err(Malformed::Id);
        Ok(Disk {
            serial: self.serial_number.as_deref().and_then(Serial::new),
            name: self.disk_name.unwrap_or_default(),
            zone: self
                .zone_id
                .map(|zone| zone.parse().map_err(Malformed::Id))
                .transpose()?,
            category,
            performance_level: self.performance_level,
            provisioned_iops: self.provisioned_iops.unwrap_or_default(),
            bursting: self.bursting_enabled.unwrap_or_default(),
            multi_attach: self.multi_attach.as_deref() == Some("Enabled"),
            resource_group: self.resource_group_id,
            size,
            kind,
            status,
            attachments: holders.into_iter().map(parse).collect::<Result<_, _>>()?,
            source_snapshot: self
                .source_snapshot_id
                .map(|id| id.parse().map_err(Malformed::Id))
                .transpose()?,
            encrypted: self.encrypted.unwrap_or_default(),
            kms_key: self.kms_key_id,
            locks: self
                .operation_locks
                .unwrap_or_default()
                .0
                .into_iter()
                // A lock without a reason is still a lock.
                .map(|lock| lock.lock_reason.unwrap_or_else(|| "unknown".to_owned()))
                .collect(),
            tags: self.tags.unwrap_or_default().into(),
            created: time(self.creation_time.as_deref()),
            attached: time(self.attached_time.as_deref()),
            detached: time(self.detached_time.as_deref()),
            id: self.disk_id.parse().map_err(Malformed::Id)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_documented_row_becomes_a_disk() {
        let json = r#"{"RequestId":"R","TotalCount":1,"NextToken":"","Disks":{"Disk":[{
            "DiskId":"d-bp18um4r4f2fve24k7qz","SerialNumber":"bp18um4r4f2fve24k7qz",
            "ZoneId":"cn-hangzhou-i","DiskName":"n","Type":"data","Category":"cloud_essd",
            "PerformanceLevel":"PL1","Size":60,"Status":"In_use","InstanceId":"i-bp67acfmxazb4qw1e9rt",
            "Attachments":{"Attachment":[{"InstanceId":"i-bp67acfmxazb4qw1e9rt","Device":"/dev/xvdb"}]},
            "Encrypted":false,"KMSKeyId":"","SourceSnapshotId":"","CreationTime":"2021-06-07T06:08:54Z",
            "Tags":{"Tag":[{"TagKey":"k","TagValue":"v"}]}}]}}"#;
        let page = serde_json::from_str::<Described>(json).unwrap().page();
        assert_eq!(page.next, None);
        let disk = &page.rows[0];
        assert!(disk.is_in_use_on(&"i-bp67acfmxazb4qw1e9rt".parse().unwrap()));
        assert_eq!(
            disk.serial.as_ref().unwrap().as_str(),
            "bp18um4r4f2fve24k7qz"
        );
        assert_eq!((disk.size, &disk.tags["k"]), (Gib(60), &"v".to_owned()));
        assert_eq!(disk.kms_key, None);
    }

    #[test]
    fn a_sparse_row_is_read() {
        let sparse = r#"{"Disks":{"Disk":[{"DiskId":"d-1","Status":"Available","Category":"cloud",
            "Size":"5","Tags":null,"Attachments":null,"Encrypted":null}]}}"#;
        let page = serde_json::from_str::<Described>(sparse).unwrap().page();
        assert!(page.rows[0].is_free());
    }

    #[test]
    fn a_row_that_makes_no_sense_is_told_apart_and_hides_no_other() {
        let json = r#"{"Disks":{"Disk":[
            {"DiskId":"d-1","Category":"cloud","Size":5},
            {"DiskId":"d-2","Category":"cloud","Size":{},"Status":"Available"},
            {"DiskId":"../x","Category":"cloud","Size":5,"Status":"Available"},
            "what",
            {"DiskId":"d-3","Category":"cloud","Size":5,"Status":"Available",
             "OperationLocks":{"OperationLock":[{"LockReason":"financial"},{}]}}]}}"#;
        let page = serde_json::from_str::<Described>(json).unwrap().page();
        let ids: Vec<_> = page.rows.iter().map(|disk| disk.id.as_str()).collect();
        assert_eq!(ids, ["d-3"]);
        assert_eq!(page.rows[0].locks, ["financial", "unknown"]);
        let told: Vec<_> = page.unreadable.iter().map(ToString::to_string).collect();
        assert_eq!(
            told[0],
            "the row of d-1 makes no sense: the row of d-1 has no Status"
        );
        assert!(
            told[1].starts_with("the row of d-2 makes no sense"),
            "{told:?}"
        );
        assert!(told[2].contains("../x"), "{told:?}");
        assert!(told[3].contains("something without an id"), "{told:?}");
    }
}

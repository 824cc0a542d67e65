//! Parameters and rows of disks.

use serde_json::Value;

use super::Row;
use super::params::Params;
use crate::action::{AttachDisk, CreateDisk, DescribeDisks, DetachDisk, ResizeDisk, ResizeMode};
use crate::model::{Disk, DiskId, InstanceId};

pub fn create(request: &CreateDisk) -> Params {
    Params::default()
        .set_some("ZoneId", request.zone.as_ref())
        .set("DiskCategory", &request.category)
        .set_some("PerformanceLevel", request.performance_level)
        .set_some("ProvisionedIops", request.provisioned_iops)
        .flag("BurstingEnabled", request.bursting)
        .set_some("MultiAttach", request.multi_attach.then_some("Enabled"))
        .set_some("ResourceGroupId", request.resource_group.as_ref())
        .set("Size", request.size.0)
        .set("DiskName", &request.name)
        .set_some("SnapshotId", request.snapshot.as_ref())
        .flag("Encrypted", request.encrypted)
        .set_some("KMSKeyId", request.kms_key.as_ref())
        .set("ClientToken", &request.token)
        .tags(&request.tags)
}

pub fn delete(disk: &DiskId) -> Params {
    Params::default().set("DiskId", disk)
}

pub fn attach(request: &AttachDisk) -> Params {
    Params::default()
        .set("DiskId", &request.disk)
        .set("InstanceId", &request.instance)
        .flag("Force", request.force)
        .flag("DeleteWithInstance", request.delete_with_instance)
}

pub fn detach(request: &DetachDisk) -> Params {
    Params::default()
        .set("DiskId", &request.disk)
        .set("InstanceId", &request.instance)
        .flag("DeleteWithInstance", request.delete_with_instance)
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
    Params::page(query.page_size, query.next.as_ref())
        .set_some("InstanceId", query.instance.as_ref())
        .flag("DryRun", query.dry_run)
        .tags(&query.tags)
        .ids("DiskIds", query.ids.as_deref())
}

impl Row for Disk {
    const LIST: &'static str = "Disks";
    const ID: &'static str = "DiskId";

    fn parse(row: Value) -> serde_json::Result<Self> {
        let instance = row.get("InstanceId").cloned();
        let mut disk: Self = serde_json::from_value(row)?;
        // `InstanceId` repeats the attachment, and is empty for disks with several.
        let instance: Option<InstanceId> = instance.map(serde_json::from_value).transpose()?;
        if disk.attachments.is_empty() {
            disk.attachments.extend(instance);
        }
        Ok(disk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Page;
    use crate::model::Gib;
    use crate::wire::read;

    fn page(json: &str) -> Page<Disk> {
        read::<Page<Disk>>(json.as_bytes()).unwrap()
    }

    #[test]
    fn a_documented_row_is_parsed() {
        let json = r#"{"RequestId":"R","TotalCount":1,"NextToken":"","Disks":{"Disk":[{
            "DiskId":"d-bp18um4r4f2fve24k7qz","SerialNumber":"bp18um4r4f2fve24k7qz",
            "ZoneId":"cn-hangzhou-i","DiskName":"n","Type":"data","Category":"cloud_essd",
            "PerformanceLevel":"PL1","Size":60,"Status":"In_use","InstanceId":"i-bp67acfmxazb4qw1e9rt",
            "Attachments":{"Attachment":[{"InstanceId":"i-bp67acfmxazb4qw1e9rt","Device":"/dev/xvdb"}]},
            "Encrypted":false,"DeleteWithInstance":true,"KMSKeyId":"","SourceSnapshotId":"","CreationTime":"2021-06-07T06:08:54Z",
            "Tags":{"Tag":[{"TagKey":"k","TagValue":"v"}]}}]}}"#;
        let page = page(json);
        assert_eq!(page.next, None);
        let disk = &page.rows[0];
        assert!(disk.is_in_use_on(&"i-bp67acfmxazb4qw1e9rt".parse().unwrap()));
        assert_eq!(disk.serial.as_ref().unwrap().as_str(), "bp18um4r4f2fve24k7qz");
        assert_eq!((disk.size, &disk.tags["k"]), (Gib(60), &"v".to_owned()));
        assert_eq!(disk.kms_key, None);
        assert!(disk.delete_with_instance && disk.is_lost_with_instance());
    }

    #[test]
    fn a_sparse_row_is_parsed() {
        let sparse = r#"{"Disks":{"Disk":[{"DiskId":"d-1","Status":"Available","Category":"cloud",
            "Size":"5","Tags":null,"Attachments":null,"Encrypted":null}]}}"#;
        let page = page(sparse);
        assert!(page.rows[0].is_free() && !page.rows[0].delete_with_instance);
    }

    #[test]
    fn a_malformed_row_is_reported_and_does_not_affect_others() {
        let json = r#"{"Disks":{"Disk":[
            {"DiskId":"d-1","Category":"cloud","Size":5},
            {"DiskId":"d-2","Category":"cloud","Size":{},"Status":"Available"},
            {"DiskId":"../x","Category":"cloud","Size":5,"Status":"Available"},
            "what",
            {"DiskId":"d-3","Category":"cloud","Size":5,"Status":"Available",
             "OperationLocks":{"OperationLock":[{"LockReason":"financial"},{}]}}]}}"#;
        let page = page(json);
        let ids: Vec<_> = page.rows.iter().map(|disk| disk.id.as_str()).collect();
        assert_eq!(ids, ["d-3"]);
        assert_eq!(page.rows[0].locks, ["financial", "unknown"]);
        let texts: Vec<_> = page.unreadable.iter().map(ToString::to_string).collect();
        assert_eq!(texts[0], "malformed row of d-1: missing field `Status`");
        assert!(texts[1].starts_with("malformed row of d-2"), "{texts:?}");
        assert!(texts[2].contains("../x"), "{texts:?}");
        assert!(texts[3].contains("a resource without an id"), "{texts:?}");
    }
}

//! Disks that the driver did not create: whether they can be volumes, and their transfer to a cluster.

use ecs::{Client, DiskAttribute, ModifyDiskAttribute, TagResources, TagTarget};

use super::Result;
use super::error::cloud;
use crate::base::Deadline;
use crate::model::{ClusterId, Disk, DiskKind, DiskStatus, tag};

/// Why the disk cannot be attached and mounted, or not be adopted by the cluster, each with what to do.
pub fn import_problems(disk: &Disk, adopted_by: Option<&ClusterId>) -> Vec<String> {
    let (category, status, locks) = (&disk.category, &disk.status, disk.locks.join(", "));
    let is_of_instance = category.is_ephemeral() || !category.as_str().starts_with("cloud");
    let owner = disk.tags.get(tag::CLUSTER).map(String::as_str);
    let is_foreign = |cluster: &ClusterId| owner.is_some_and(|owner| owner != cluster.as_str());
    let (owner, tag) = (owner.unwrap_or_default(), tag::CLUSTER);
    let problems = [
        (
            disk.kind == DiskKind::System,
            "it is a system disk; create a snapshot of it, and a data disk from the snapshot".to_owned(),
        ),
        (
            is_of_instance,
            format!("a disk of the category {category} is bound to one instance; copy its data to a new volume"),
        ),
        (
            !disk.portable && !is_of_instance && disk.kind != DiskKind::System,
            "it is a subscription disk, bound to its instance; convert it to pay-as-you-go in the console".to_owned(),
        ),
        (
            disk.serial.is_none(),
            "it has no serial number, by which nodes find its device; replace it (docs/guides/disk-without-serial.md)"
                .to_owned(),
        ),
        (
            ![DiskStatus::Available, DiskStatus::InUse].contains(status),
            format!("its status is {status}; run this again when the console shows Available or In_use"),
        ),
        (
            !locks.is_empty(),
            format!("the cloud has locked it ({locks}); resolve the reason in the console"),
        ),
        (
            adopted_by.is_some_and(is_foreign),
            format!("it belongs to cluster ID {owner}; delete its volume there with Retain, and then its tag {tag}"),
        ),
    ];
    let applicable = problems.into_iter().filter(|(applies, _)| *applies);
    applicable.map(|(_, problem)| problem).collect()
}

/// What an operator should consider before the disk is used.
pub fn import_notes(disk: &Disk, is_adopted: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if disk.is_lost_with_instance() && !is_adopted {
        let text = "the disk is deleted with the instance that it is attached to, until the driver attaches it; disable \
                    its release with the instance in the console, or set --adopt";
        notes.push(text.to_owned());
    }
    if !disk.attachments.is_empty() {
        let holders = disk.holders();
        notes.push(format!(
            "the disk is attached to {holders}, and the driver does not detach it for a pod on another node"
        ));
    }
    let owner = disk.tags.get(tag::CLUSTER).filter(|_| !is_adopted);
    notes.extend(owner.map(|owner| format!("the disk belongs to cluster ID {owner}; import it only there")));
    notes
}

/// Adds the cluster tag to the disk, so that ListVolumes returns it and DeleteVolume may delete it, and disables its
/// `DeleteWithInstance`.
pub async fn adopt(ecs: &Client, deadline: Deadline, disk: &Disk, cluster: &ClusterId) -> Result<()> {
    let id = &disk.id;
    if disk.is_lost_with_instance() {
        let request = ModifyDiskAttribute {
            disk: id.clone(),
            attribute: DiskAttribute::DeleteWithInstance(false),
        };
        let modified = ecs.modify_disk_attribute(deadline, &request).await;
        modified.map_err(cloud(format!("disable the deletion of disk {id} with its instance")))?;
    }
    if !disk.tags.contains_key(tag::CLUSTER) {
        let request = TagResources {
            targets: TagTarget::Disks(vec![id.clone()]),
            tags: [(tag::CLUSTER.to_owned(), cluster.to_string())].into(),
        };
        let tagged = ecs.tag_resources(deadline, &request).await;
        tagged.map_err(cloud(format!("tag disk {id} with cluster ID {cluster}")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn disk(field: &str, value: Value) -> Disk {
        let mut row = json!({
            "DiskId": "d-1", "SerialNumber": "1", "Category": "cloud_essd", "Size": 20, "Status": "Available",
            "Type": "data", "Portable": true, "Encrypted": true, "KMSKeyId": "key",
        });
        row[field] = value;
        serde_json::from_value(row).unwrap()
    }

    #[test]
    fn each_reason_not_to_mount_a_disk_is_stated_alone() {
        let locks = json!({"OperationLock": [{"LockReason": "financial"}]});
        for (field, value, expected) in [
            ("Type", json!("system"), "it is a system disk"),
            ("Portable", json!(false), "it is a subscription disk"),
            ("SerialNumber", json!(""), "it has no serial number"),
            ("Status", json!("Creating"), "its status is Creating"),
            ("Status", json!("Detaching"), "its status is Detaching"),
            ("Status", json!("Deleting"), "its status is Deleting"),
            ("OperationLocks", locks, "the cloud has locked it (financial)"),
            (
                "Category",
                json!("local_ssd_pro"),
                "a disk of the category local_ssd_pro is",
            ),
            (
                "Category",
                json!("ephemeral_ssd"),
                "a disk of the category ephemeral_ssd is",
            ),
            (
                "Category",
                json!("elastic_ephemeral_disk_standard"),
                "a disk of the category elastic",
            ),
        ] {
            let found = import_problems(&disk(field, value), None);
            assert!(found.len() == 1 && found[0].starts_with(expected), "{field}: {found:?}");
        }
        for status in ["Available", "In_use"] {
            assert!(
                import_problems(&disk("Status", json!(status)), None).is_empty(),
                "{status}"
            );
        }
        let later_category = disk("Category", json!("cloud_essd_next"));
        assert!(import_problems(&later_category, None).is_empty());
    }

    #[test]
    fn a_disk_of_another_cluster_is_not_adopted() {
        let tags = json!({"Tag": [{"TagKey": tag::CLUSTER, "TagValue": "c-1"}]});
        let disk = disk("Tags", tags);
        let problems = |cluster: &str| import_problems(&disk, Some(&cluster.parse().unwrap()));
        assert!(problems("c-1").is_empty());
        assert!(problems("c-2")[0].starts_with("it belongs to cluster ID c-1;"));
        assert!(import_problems(&disk, None).is_empty());
    }
}

//! Changes in the cloud by a client other than the driver.

use super::*;

impl Setup {
    /// Calls AttachDisk directly, as a client other than the driver.
    pub(crate) async fn attach_externally(&self, disk: &DiskId, node: &InstanceId) {
        let request = attach_to(disk, node);
        let attached = client(&self.cloud).attach_disk(minutes(1), &request).await;
        attached.unwrap();
    }

    /// Calls DetachDisk directly, as a client other than the driver.
    pub(crate) async fn detach_externally(&self, disk: &DiskId, node: &InstanceId) {
        let request = detach_from(disk, node);
        let detached = client(&self.cloud).detach_disk(minutes(1), &request).await;
        detached.unwrap();
    }

    /// DescribeDisks returns status 200 without rows for `seconds`, as it does without the permission.
    pub(crate) fn hide_disks(&self, seconds: u64) {
        let duration = format!("{seconds}s");
        self.configure(&json!({"faults": [{"action": "DescribeDisks", "for": duration, "kind": "no-rows"}]}));
    }

    /// Creates a disk with these tags directly in the cloud, as a client other than the driver.
    pub(crate) async fn unmanaged_disk(&self, tags: Tags) -> DiskId {
        let request = ecs::CreateDisk {
            tags,
            ..essd("unmanaged")
        };
        let created = client(&self.cloud).create_disk(minutes(1), &request).await;
        created.unwrap()
    }

    /// Adds a regional disk, which does not belong to a zone.
    pub(crate) fn regional_disk(&self) -> DiskId {
        let id = self.cloud.add_disk(&ExistingDisk {
            category: "cloud_regional_disk_auto".to_owned(),
            zone: None,
            system: false,
            portable: true,
            instance: None,
        });
        id.parse().unwrap()
    }

    /// Creates a disk that can be attached to several nodes.
    pub(crate) async fn multi_attach_disk(&self) -> DiskId {
        let request = ecs::CreateDisk {
            multi_attach: true,
            ..essd("shared")
        };
        let created = client(&self.cloud).create_disk(minutes(1), &request).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        created.unwrap()
    }
}

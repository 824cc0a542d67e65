//! Calls of the disk services. A call without `try_` must succeed, and is compared with the current state of the cloud.

use super::*;

impl Setup {
    /// Makes a call for each item in parallel. Returns the outcomes in the order in which the calls end.
    pub(crate) async fn each<T, O, F>(&self, items: impl IntoIterator<Item = T>, call: impl Fn(Self, T) -> F) -> Vec<O>
    where
        F: Future<Output = O> + Send + 'static,
        O: Send + 'static,
    {
        let calls: JoinSet<O> = items.into_iter().map(|item| call(self.clone(), item)).collect();
        calls.join_all().await
    }

    /// Creates an ESSD of 20 GiB in zone a.
    pub(crate) async fn disk(&self, name: &str) -> DiskId {
        self.try_create(minutes(5), &new_disk(name)).await.unwrap().id
    }

    /// The disks `pvc-0`, `pvc-1` and so on, without a record of their calls.
    pub(crate) async fn create_disks(&self, count: usize) -> Vec<DiskId> {
        let mut disks = Vec::new();
        for n in 0..count {
            disks.push(self.disk(&format!("pvc-{n}")).await);
        }
        self.cloud.clear_calls();
        disks
    }

    /// Creates `count` disks that are not the subject of the test.
    pub(crate) async fn other_disks(&self, count: usize) {
        for number in 0..count {
            self.disk(&format!("other-{number}")).await;
        }
    }

    /// A disk attached to node one.
    pub(crate) async fn attached(&self, name: &str) -> DiskId {
        let disk = self.disk(name).await;
        self.attach(&disk, &node_one()).await;
        disk
    }

    pub(crate) async fn try_create(&self, deadline: Deadline, new: &NewDisk) -> Result<Disk, Error> {
        self.disks.provisioner.create(deadline, new).await
    }

    pub(crate) async fn create(&self, new: &NewDisk) -> Disk {
        expect("create", self.try_create(minutes(1), new).await)
    }

    pub(crate) async fn try_clone(&self, deadline: Deadline, new: &NewDisk, source: &DiskId) -> Result<Disk, Error> {
        self.disks.provisioner.create_clone(deadline, new, source).await
    }

    pub(crate) async fn clone_disk(&self, new: &NewDisk, source: &DiskId) -> Disk {
        expect("clone", self.try_clone(minutes(5), new, source).await)
    }

    pub(crate) async fn try_delete(&self, deadline: Deadline, disk: &DiskId) -> Result<(), Error> {
        self.disks.provisioner.delete(deadline, disk).await
    }

    /// The disk must not exist afterwards.
    pub(crate) async fn delete(&self, disk: &DiskId) {
        expect("delete", self.try_delete(minutes(1), disk).await);
        assert_eq!(self.row(disk), Value::Null);
    }

    pub(crate) async fn try_attach(&self, deadline: Deadline, disk: &DiskId, node: &InstanceId) -> Result<Disk, Error> {
        self.disks.attacher.attach(deadline, disk, node).await
    }

    /// The row and the current state must show the attachment, without another one unless the disk is multi-attach.
    pub(crate) async fn attach(&self, disk: &DiskId, node: &InstanceId) -> Disk {
        let row = expect("attach", self.try_attach(minutes(1), disk, node).await);
        let attachments = self.attachments(disk);
        let expected = (node.to_string(), "Attached".to_owned());
        assert!(attachments.contains(&expected), "{node}: {attachments:?}");
        assert!(attachments.len() == 1 || row.multi_attach, "{node}: {attachments:?}");
        assert!(row.is_in_use_on(node), "{row}");
        row
    }

    pub(crate) async fn try_detach(&self, deadline: Deadline, disk: &DiskId, node: &InstanceId) -> Result<(), Error> {
        self.disks.detacher.detach(deadline, disk, node).await
    }

    /// The current state must not show the attachment.
    pub(crate) async fn detach(&self, disk: &DiskId, node: &InstanceId) {
        expect("detach", self.try_detach(minutes(1), disk, node).await);
        let attachments = self.attachments(disk);
        let is_other = |(holder, _): &(String, String)| holder != node.as_str();
        assert!(attachments.iter().all(is_other), "{node}: {attachments:?}");
    }

    pub(crate) async fn detach_everywhere(&self, disk: &DiskId) {
        let detached = self.disks.detacher.detach_everywhere(minutes(1), disk).await;
        expect("detach everywhere", detached);
        assert_eq!(self.attachments(disk), []);
    }

    pub(crate) async fn try_resize(&self, deadline: Deadline, disk: &DiskId, size: SizeRange) -> Result<Disk, Error> {
        self.disks.resizer.resize(deadline, disk, size).await
    }

    pub(crate) async fn resize(&self, disk: &DiskId, size: SizeRange) -> Disk {
        expect("resize", self.try_resize(minutes(1), disk, size).await)
    }

    pub(crate) async fn try_modify(&self, deadline: Deadline, disk: &DiskId, change: &Change) -> Result<(), Error> {
        self.disks.modifier.modify(deadline, disk, change).await
    }

    /// The current data disks of this cluster as ListVolumes returns them.
    pub(crate) async fn list(&self) -> Result<Vec<Disk>, Error> {
        self.disks.inventory.list(minutes(1), Disk::clone).await
    }

    pub(crate) async fn list_snapshots(
        &self,
        id: Option<&SnapshotId>,
        source: Option<&DiskId>,
    ) -> Result<Vec<Snapshot>, Error> {
        let inventory = &self.disks.inventory;
        inventory.list_snapshots(minutes(1), id, source, Snapshot::clone).await
    }

    pub(crate) async fn try_snapshot(&self, deadline: Deadline, new: &NewSnapshot) -> Result<Snapshot, Error> {
        self.disks.snapshotter.create(deadline, new).await
    }

    pub(crate) async fn create_snapshot(&self, new: &NewSnapshot) -> Snapshot {
        expect("create snapshot", self.try_snapshot(minutes(1), new).await)
    }

    pub(crate) async fn try_delete_snapshot(&self, deadline: Deadline, id: &SnapshotId) -> Result<(), Error> {
        self.disks.snapshotter.delete(deadline, id).await
    }

    /// Repeats the deletion until the absence of the snapshot is proven.
    pub(crate) async fn delete_snapshot(&self, id: &SnapshotId) {
        let delete = async || self.try_delete_snapshot(seconds(20), id).await;
        expect("delete snapshot", retry(100, delete).await);
    }

    pub(crate) async fn try_group(&self, deadline: Deadline, new: &NewGroupSnapshot) -> Result<GroupSnapshot, Error> {
        self.disks.snapshotter.create_group(deadline, new).await
    }

    pub(crate) async fn create_group(&self, new: &NewGroupSnapshot) -> GroupSnapshot {
        expect("create group", self.try_group(minutes(2), new).await)
    }

    pub(crate) async fn get_group(
        &self,
        id: &SnapshotGroupId,
        members: &BTreeSet<SnapshotId>,
    ) -> Result<GroupSnapshot, Error> {
        self.disks.snapshotter.get_group(minutes(1), id, members).await
    }

    pub(crate) async fn delete_group(&self, id: &SnapshotGroupId, members: &BTreeSet<SnapshotId>) -> Result<(), Error> {
        self.disks.snapshotter.delete_group(minutes(1), id, members).await
    }

    /// Creates a snapshot through the disk services and waits until it is complete.
    pub(crate) async fn snapshot(&self, name: &str, source: &DiskId) -> SnapshotId {
        self.try_snapshot(minutes(5), &new_snapshot(name, source))
            .await
            .unwrap()
            .id
    }
}

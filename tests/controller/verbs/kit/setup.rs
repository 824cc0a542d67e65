//! The fake cloud of a test, and the disk services of its processes.

use super::*;

/// A fake cloud with two nodes in zone a and one in zone b, and the disk services of one process. Clones are handles to
/// the same process. Flags and configurations are printed, so that the output of a failed test contains its case.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) cloud: Cloud,
    pub(crate) disks: Arc<DiskServices>,
}

impl Setup {
    pub(crate) fn new(flags: &[&str]) -> Self {
        Self::without_canary(flags).with_system_disk()
    }

    /// The same in an account that shows nothing else: no response proves the absence of a disk.
    pub(crate) fn without_canary(flags: &[&str]) -> Self {
        Self::of(
            "--nodes=i-one=cn-beijing-a,i-two=cn-beijing-a,i-far=cn-beijing-b",
            flags,
        )
    }

    fn of(nodes: &str, flags: &[&str]) -> Self {
        println!("cloud: {flags:?}");
        let cloud = memory_cloud::start([nodes].into_iter().chain(flags.iter().copied()));
        let disks = established(Arc::new(client(&cloud)));
        Self { cloud, disks }
    }

    /// One cloud for each documented alternative of its behaviour.
    pub(crate) fn alternatives(flags: &[&str]) -> impl Iterator<Item = Self> {
        ["first", "last"].into_iter().map(move |alternatives| {
            let setup = Self::new(flags);
            setup.configure(&json!({"rules": {"alternatives": alternatives}}));
            setup
        })
    }

    /// With `nodes` nodes in zone a, named `i-0`, `i-1` and so on.
    pub(crate) fn with_nodes(nodes: usize, flags: &[&str]) -> Self {
        Self::with_nodes_of("ecs.g6.large", nodes, flags)
    }

    /// The same with an instance type that supports multi-attach disks.
    pub(crate) fn with_multi_attach_nodes(nodes: usize, flags: &[&str]) -> Self {
        Self::with_nodes_of("ecs.g8i.large", nodes, flags)
    }

    /// The same with an instance type.
    pub(crate) fn with_nodes_of(instance_type: &str, nodes: usize, flags: &[&str]) -> Self {
        let nodes: Vec<_> = (0..nodes)
            .map(|n| format!("i-{n}=cn-beijing-a={instance_type}"))
            .collect();
        Self::of(&format!("--nodes={}", nodes.join(",")), flags)
    }

    /// A new process on the same cloud.
    pub(crate) fn restarted(&self) -> Self {
        self.process_of("test")
    }

    /// The driver of another cluster on the same cloud.
    pub(crate) fn other_cluster(&self) -> Self {
        self.process_of("other-cluster")
    }

    fn process_of(&self, cluster: &str) -> Self {
        let cloud = self.cloud.clone();
        let disks = disk_services(Arc::new(client(&cloud)), cluster);
        Self { cloud, disks }
    }

    pub(crate) fn configure(&self, patch: &Value) {
        println!("configure: {patch}");
        self.cloud.configure(patch).unwrap();
    }

    pub(crate) fn clear_faults(&self) {
        self.configure(&json!({"faults": []}));
    }

    /// Rejects the next call of the action.
    pub(crate) fn reject(&self, action: &str, status: u16, code: &str) {
        self.fault(action, &error_code(status, code));
    }

    /// Injects the fault into the next call of the action.
    pub(crate) fn fault(&self, action: &str, kind: &Value) {
        self.faults(action, 1, kind);
    }

    /// Injects the fault into the next `times` calls of the action.
    pub(crate) fn faults(&self, action: &str, times: u64, kind: &Value) {
        let fault = json!({"action": action, "times": times, "kind": kind});
        self.replace_faults(&json!([fault]));
    }

    /// Replaces all faults.
    pub(crate) fn replace_faults(&self, faults: &Value) {
        // An identical list would continue the count of the previous one.
        self.clear_faults();
        self.configure(&json!({"faults": faults}));
    }

    /// Makes a call while each request of the action has the fault, so that the client's retries fail too. Its error
    /// must not be final.
    pub(crate) async fn lose<T: std::fmt::Debug>(
        &self,
        action: &str,
        kind: &Value,
        call: impl Future<Output = Result<T, Error>>,
    ) {
        self.faults(action, 1_000_000, kind);
        let before = self.calls(action);
        let error = call.await.unwrap_err();
        assert!(self.calls(action) > before, "{action} was not called");
        // The deadline can pass during the pause before a retry.
        assert_unavailable(&error);
        self.clear_faults();
    }

    /// The same for a creation.
    pub(crate) async fn lose_create(&self, kind: &Value, new: &NewDisk) {
        self.lose("CreateDisk", kind, self.try_create(seconds(1), new)).await;
    }

    /// Number of calls of the action.
    pub(crate) fn calls(&self, action: &str) -> u64 {
        self.cloud.counts().get(action).map_or(0, |count| count.calls)
    }

    /// The current state of all data disks, regardless of stale reads.
    pub(crate) fn rows(&self) -> Vec<Value> {
        let state = self.cloud.state();
        let rows = state["disks"].as_array().unwrap().iter();
        rows.filter(|row| row["system"] != true).cloned().collect()
    }

    /// Adds the system disk of a node, which every account with nodes has: a response that contains it proves
    /// something.
    fn with_system_disk(self) -> Self {
        self.cloud.add_disk(&ExistingDisk {
            category: "cloud_essd".to_owned(),
            zone: Some("cn-beijing-a".to_owned()),
            system: true,
            portable: false,
            instance: Some("i-one".to_owned()),
        });
        self
    }

    /// The current state of the disk, or null if it does not exist.
    pub(crate) fn row(&self, disk: &DiskId) -> Value {
        let rows = self.rows();
        let row = rows.into_iter().find(|row| row["id"] == disk.as_str());
        row.unwrap_or_default()
    }

    /// Asserts that exactly one data disk exists and returns its ID.
    pub(crate) fn only_disk(&self) -> DiskId {
        let rows = self.rows();
        assert_eq!(rows.len(), 1, "{rows:#?}");
        rows[0]["id"].as_str().unwrap().parse().unwrap()
    }

    /// The first disk other than this one.
    pub(crate) fn other_disk(&self, disk: &DiskId) -> DiskId {
        let rows = self.rows();
        let other = rows.iter().find(|row| row["id"] != disk.as_str()).unwrap();
        other["id"].as_str().unwrap().parse().unwrap()
    }

    /// Current instance and state of each attachment of the disk.
    pub(crate) fn attachments(&self, disk: &DiskId) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let row = self.row(disk);
        let attachments = row["attachments"].as_array().into_iter().flatten();
        attachments.map(|a| (text(&a["instance"]), text(&a["state"]))).collect()
    }

    /// The current snapshots, regardless of stale reads.
    pub(crate) fn snapshots(&self) -> Vec<Value> {
        self.cloud.state()["snapshots"].as_array().unwrap().clone()
    }

    /// The current snapshot groups, regardless of stale reads.
    pub(crate) fn groups(&self) -> Vec<Value> {
        self.cloud.state()["groups"].as_array().unwrap().clone()
    }

    /// Asserts that exactly one snapshot exists and returns its ID.
    pub(crate) fn only_snapshot(&self) -> SnapshotId {
        let rows = self.snapshots();
        assert_eq!(rows.len(), 1, "{rows:#?}");
        rows[0]["id"].as_str().unwrap().parse().unwrap()
    }
}

/// The services of a process that has been active for ten minutes, so that requests of an earlier one have no effect
/// any longer.
pub(crate) fn established(ecs: Arc<Client>) -> Arc<DiskServices> {
    let since = Instant::now() - Duration::from_secs(600);
    let cluster = "test".parse().unwrap();
    let services = DiskServices::active_since(since, ecs, cluster, &Tasks::default());
    services.record_node(&node_one());
    Arc::new(services)
}

/// The services of a process that has just become active.
pub(crate) fn disk_services(ecs: Arc<Client>, cluster: &str) -> Arc<DiskServices> {
    let services = DiskServices::new(ecs, cluster.parse().unwrap(), &Tasks::default());
    services.record_node(&node_one());
    Arc::new(services)
}

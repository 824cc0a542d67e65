//! NodeGetInfo, computed for each call: kubelet calls it periodically, and the volume limit depends on the other
//! attached disks.

use std::sync::Mutex;
use std::time::Duration;

use super::attach_limits::InstanceTypeLimits;
use super::observe::quick;
use super::staged::{StagedRecord, StagedRecords};
use super::{NodeSettings, Result};
use crate::base::{LogOnce, error_chain, lock};
use crate::linux::{Device, HostError, Mount};
use crate::model::{Category, DriverName, InstanceId, ZoneId};

/// How long an unused disk counts as a volume that is not staged yet. After that it counts as a foreign disk.
const STAGING_GRACE_PERIOD: Duration = Duration::from_secs(600);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeInfo {
    pub id: InstanceId,
    /// The zone of the node; disks are zonal.
    pub zone: ZoneId,
    /// Volume limit, 1 or more; none means no limit.
    pub max_volumes: Option<u32>,
    /// Supported disk categories; empty if unknown, which allows any.
    pub categories: Vec<Category>,
}

#[derive(Debug)]
pub struct NodeInfoReporter {
    pub(super) settings: NodeSettings,
    pub(super) limits: InstanceTypeLimits,
    pub(super) staged: StagedRecords,
    pub(super) driver: DriverName,
    /// The disk categories of the last `NodeGetInfo` response.
    pub(super) reported_categories: Mutex<Vec<Category>>,
    pub(super) log_once: LogOnce,
}

impl NodeInfoReporter {
    /// The node's ID, zone, volume limit and categories. Settings take precedence over the file of instance types. The
    /// limit is that of the type minus the system disk and foreign disks, and at least 1.
    ///
    /// # Errors
    ///
    /// If the file of instance types is unreadable or invalid and no earlier limits are recorded. A missing
    /// file is not an error.
    pub async fn info(&self) -> Result<NodeInfo> {
        let limits = self.limits.attach_limits().await?;
        let max_volumes = match (self.settings.max_volumes, &limits) {
            (Some(limit), _) => Some(limit),
            (None, Some(limits)) => Some(self.volume_limit(limits.disk_quantity).await),
            (None, None) => None,
        };
        let categories = match limits {
            Some(limits) if self.settings.categories.is_empty() => limits.categories,
            _ => self.settings.categories.clone(),
        };
        lock(&self.reported_categories).clone_from(&categories);
        Ok(NodeInfo {
            id: self.settings.id.clone(),
            zone: self.settings.zone.clone(),
            max_volumes,
            categories,
        })
    }

    /// Whether the volume limit is a setting, and not that of the instance type.
    pub fn is_limit_configured(&self) -> bool {
        self.settings.max_volumes.is_some()
    }

    pub fn reported_categories(&self) -> Vec<Category> {
        lock(&self.reported_categories).clone()
    }

    /// The categories that NodeGetInfo would return now; empty if the attach limits of the instance type are unknown.
    pub async fn categories(&self) -> Vec<Category> {
        match self.settings.categories.as_slice() {
            [] => self.limits.listed_categories().await,
            configured => configured.to_vec(),
        }
    }

    async fn volume_limit(&self, quantity: u32) -> u32 {
        let others = match self.foreign_disks().await {
            Ok(others) => {
                self.log_once.should_log("disks", "");
                others
            }
            Err(error) => {
                let error = error_chain(&error);
                if self.log_once.should_log("disks", &error) {
                    tracing::warn!(
                        error,
                        "cannot list the disks; assuming that only the system disk is attached"
                    );
                }
                Vec::new()
            }
        };
        // The system disk counts even if it is not visible.
        let reserved = u32::try_from(others.len().max(1)).unwrap_or(u32::MAX);
        let limit = quantity.saturating_sub(reserved).max(1);
        let foreign = others.join(", ");
        // kubelet calls NodeGetInfo every minute.
        if self
            .log_once
            .should_log("limit", &format!("{quantity} {limit} {foreign}"))
        {
            tracing::info!(
                quantity,
                limit,
                foreign,
                "volume limit: attach limit of the instance type minus the system disk and foreign disks"
            );
        }
        limit
    }

    /// Cloud disks of this node that are not volumes of this driver, including the system disk.
    async fn foreign_disks(&self) -> std::result::Result<Vec<String>, HostError> {
        let mut devices = self.limits.host.devices(quick()).await?;
        devices.retain(is_cloud_disk);
        let mounts = self.limits.host.mounts(quick()).await?;
        let staged = self.staged.all().await;
        // kubelet stages below `plugins/kubernetes.io/csi/DRIVER/HASH/globalmount`.
        let staged_at = format!("/{}/", self.driver);
        let mut others = Vec::new();
        for device in devices {
            let is_volume = match is_used_by_driver(&device, &mounts, &staged, &staged_at) {
                Some(is_volume) => is_volume,
                // Possibly attached to be staged.
                None => {
                    let age = self.limits.host.age(quick(), &device).await;
                    age.is_ok_and(|age| age < STAGING_GRACE_PERIOD)
                }
            };
            if !is_volume {
                others.push(device.to_string());
            }
        }
        Ok(others)
    }
}

/// Whether the user of a disk is this driver: it is recorded as staged or mounted in the driver's staging directory.
/// `None` if it is unused.
fn is_used_by_driver(device: &Device, mounts: &[Mount], staged: &[StagedRecord], staged_at: &str) -> Option<bool> {
    let is_recorded = |record: &StagedRecord| {
        let serial = device.serial.as_ref();
        serial.is_some_and(|serial| serial.as_str() == record.serial)
    };
    let is_of_device = |mount: &&Mount| mount.is_of(device) || mount.is_node_of(device);
    let is_staged = |mount: &Mount| mount.point.to_string_lossy().contains(staged_at);
    let is_used =
        mounts.iter().any(|mount| is_of_device(&mount)) || !device.partitions.is_empty() || !device.holders.is_empty();
    let is_volume = staged.iter().any(is_recorded) || mounts.iter().filter(is_of_device).any(is_staged);
    (is_volume || is_used).then_some(is_volume)
}

/// The model of the cloud's NVMe disks. Local NVMe disks report the model of their manufacturer.
const CLOUD_NVME_MODEL: &str = "Alibaba Cloud Elastic Block Storage";

/// Whether it counts as an attachment: every virtio disk, and every NVMe disk except those of another model, which are
/// local disks of the instance.
fn is_cloud_disk(device: &Device) -> bool {
    let model = device.model.as_deref().map(str::trim);
    device.name.starts_with("vd")
        || device.name.starts_with("nvme") && model.is_none_or(|model| model == CLOUD_NVME_MODEL)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::linux::fake::{FakeHost, FakeState, disk, mount_of, partition};
    use crate::node::InstanceTypeSource;
    use crate::node::observe::CallContext;
    use crate::node::{NodeServices, NodeSettings};

    const FILE: &str = "/config/types.json";

    async fn node_info(state: FakeState, max_volumes: Option<u32>, instance_type: Option<&str>) -> Result<NodeInfo> {
        let dir = tempfile::tempdir().unwrap();
        let settings = NodeSettings {
            id: "i-1".parse().unwrap(),
            zone: "z-a".parse().unwrap(),
            max_volumes,
            categories: Vec::new(),
            instance_types: InstanceTypeSource {
                file: Some(FILE.into()),
                instance_type: instance_type.map(str::to_owned),
            },
            device_dir: None,
            kubelet_dir: dir.path().to_owned(),
            state_dir: dir.path().to_owned(),
        };
        let fake = Arc::new(FakeHost::new(state));
        let node = NodeServices::new(
            Arc::clone(&fake) as _,
            Arc::clone(&fake) as _,
            settings,
            DriverName::default(),
            None,
        );
        // A volume whose pod is restarting.
        let volume = super::super::Volume::new("d-recorded".parse().unwrap(), None);
        let call = CallContext::new(&*fake, &volume, "staging", quick());
        let device = disk("vdz", 400, "recorded");
        node.info.staged.put(call, &device, None).await.unwrap();
        node.info.info().await
    }

    fn with(text: &str) -> FakeState {
        FakeState {
            files: [(FILE.into(), text.to_owned())].into(),
            ..FakeState::default()
        }
    }

    fn small(quantity: u32) -> FakeState {
        with(&format!(
            r#"{{"instanceTypes": {{"ecs.small":
                {{"diskQuantity": {quantity}, "categories": ["cloud_essd"]}}}}}}"#
        ))
    }

    async fn limit(state: FakeState) -> Option<u32> {
        node_info(state, None, Some("ecs.small")).await.unwrap().max_volumes
    }

    #[tokio::test]
    async fn system_disk_and_foreign_disks_reduce_the_limit_and_volumes_do_not() {
        let system = Device {
            partitions: vec![partition(&disk("vda", 0, ""))],
            ..disk("vda", 0, "system")
        };
        let staged = disk("vdb", 16, "bp1");
        let foreign = disk("vdc", 32, "bp2");
        let path = "/k/plugins/kubernetes.io/csi/diskplugin.csi.example/abc/globalmount";
        let mut state = small(9);
        state.mounts = vec![mount_of(&staged, path, "rw"), mount_of(&foreign, "/data", "rw")];
        let unused = disk("vde", 64, "bp3");
        let attached = disk("vdf", 80, "bp4");
        let local = disk("loop0", 96, "");
        state.ages.insert("vdf".to_owned(), Duration::from_secs(5));
        state.devices = vec![
            system,
            staged,
            foreign,
            disk("vdd", 48, "recorded"),
            unused,
            attached,
            local,
        ];
        // Foreign: the system disk, the mounted one, and the one that has been unused for long.
        assert_eq!(limit(state).await, Some(6));
    }

    #[tokio::test]
    async fn local_disks_of_the_instance_do_not_count() {
        let nvme = |name: &str, minor, model: &str| Device {
            model: Some(model.to_owned()),
            ..disk(name, minor, "bp-nvme")
        };
        let formatted = |device: Device| Device {
            partitions: vec![partition(&device)],
            ..device
        };
        let local = [
            formatted(nvme("nvme0n1", 48, "Local NVMe SSD")),
            nvme("nvme1n1", 64, "INTEL SSDPE2KX020T8"),
        ];
        let mut state = small(17);
        state.devices = vec![formatted(disk("vda", 0, ""))];
        state.devices.extend(local.clone());
        assert_eq!(limit(state).await, Some(16));
        let mut state = small(17);
        state.devices = vec![formatted(nvme("nvme2n1", 80, CLOUD_NVME_MODEL))];
        state
            .devices
            .push(nvme("nvme3n1", 96, "Alibaba Cloud Elastic Block Storage     "));
        state.devices.extend(local);
        assert_eq!(limit(state).await, Some(15));
    }

    #[tokio::test]
    async fn cloud_disks_without_a_serial_count() {
        let mut state = small(17);
        state.devices = vec![
            disk("vda", 0, ""),
            disk("vdb", 16, ""),
            Device {
                serial_pending: true,
                ..disk("vdc", 32, "")
            },
            disk("nvme0n1", 48, ""),
        ];
        assert_eq!(limit(state).await, Some(13));
    }

    #[tokio::test]
    async fn the_limit_is_at_least_1_and_an_invisible_system_disk_counts() {
        assert_eq!(limit(small(17)).await, Some(16));
        assert_eq!(limit(small(1)).await, Some(1));
        let mut state = small(2);
        state.devices = vec![disk("vda", 0, "a"), disk("vdb", 16, "b"), disk("vdc", 32, "c")];
        assert_eq!(limit(state).await, Some(1));
    }

    #[tokio::test]
    async fn settings_take_precedence_over_the_file() {
        let info = node_info(small(17), Some(5), Some("ecs.small")).await.unwrap();
        assert_eq!(info.max_volumes, Some(5));
        assert_eq!(info.categories, ["cloud_essd".parse().unwrap()]);
    }

    #[tokio::test]
    async fn without_file_or_type_no_limit_is_reported() {
        assert_eq!(limit(FakeState::default()).await, None);
        for instance_type in [None, Some("ecs.other")] {
            let info = node_info(small(17), None, instance_type).await.unwrap();
            assert_eq!((info.max_volumes, info.categories.len()), (None, 0));
        }
    }

    #[tokio::test]
    async fn an_invalid_file_is_an_error_with_file_and_field() {
        let error = node_info(with("{}"), None, Some("ecs.small")).await.unwrap_err();
        assert_eq!(error.to_string(), "/config/types.json: instanceTypes is missing");
    }
}

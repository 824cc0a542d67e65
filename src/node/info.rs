//! What the node says about itself, anew at each question: kubelet asks again and again, and how
//! many volumes fit changes with what else is attached.

use std::path::PathBuf;
use std::sync::PoisonError;
use std::time::Duration;

use super::observe::quick;
use super::staged::StagedRecord;
use super::{Node, Result};
use crate::base::chain::chain;
use crate::host::{Device, HostError, Mount};
use crate::model::{Category, InstanceId, ZoneId};

/// How long an attached disk may be there before it is staged. One that nobody uses then is not ours.
const ON_ITS_WAY: Duration = Duration::from_secs(600);

/// What the cluster needs to know of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// Its id.
    pub id: InstanceId,
    /// Its zone: disks live in one zone.
    pub zone: ZoneId,
    /// How many volumes it takes, 1 or more; none leaves that to the cluster.
    pub max_volumes: Option<u32>,
    /// The categories of disks that it takes; empty where nobody says, and then any may go to it.
    pub categories: Vec<Category>,
}

/// Where it is told what instance types take.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Types {
    /// The file, which may come later.
    pub file: Option<PathBuf>,
    /// The node's own type, where it is known.
    pub own: Option<String>,
}

impl Node {
    /// The node's id, zone, limit and categories. What is set counts; the rest comes from the file of
    /// instance types: the limit is what the type takes, less the system disk and the disks that are
    /// not ours, but at least 1.
    ///
    /// # Errors
    /// When the file of instance types cannot be read or is not as it must be, and it was never told before what the type
    /// takes. A file that is not there is no error.
    pub async fn info(&self) -> Result<Info> {
        let takes = self.attach_limits().await?;
        let settings = &self.settings;
        let max_volumes = match (settings.max_volumes, &takes) {
            (Some(most), _) => Some(most),
            (None, Some(takes)) => Some(self.limit(takes.disk_quantity).await),
            (None, None) => None,
        };
        let categories = match takes {
            Some(takes) if settings.categories.is_empty() => takes.categories,
            _ => settings.categories.clone(),
        };
        *self
            .reported_categories
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = categories.clone();
        Ok(Info {
            id: settings.id.clone(),
            zone: settings.zone.clone(),
            max_volumes,
            categories,
        })
    }

    /// The categories that were told when the node was last asked what it is.
    #[must_use]
    pub fn reported_categories(&self) -> Vec<Category> {
        let told = self
            .reported_categories
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        told.clone()
    }

    /// The categories that the node would tell now; none where nothing is said of its type.
    pub async fn categories(&self) -> Vec<Category> {
        match self.settings.categories.as_slice() {
            [] => self.listed_categories().await,
            set => set.to_vec(),
        }
    }

    /// How many of this many disks may be ours.
    async fn limit(&self, quantity: u32) -> u32 {
        let others = match self.others().await {
            Ok(others) => {
                self.news.is_new("disks", "");
                others
            }
            Err(error) => {
                let error = chain(&error);
                if self.news.is_new("disks", &error) {
                    tracing::warn!(
                        error,
                        "the disks cannot be listed; only the system disk is assumed"
                    );
                }
                Vec::new()
            }
        };
        // The system disk takes a place also where it does not show.
        let taken = u32::try_from(others.len().max(1)).unwrap_or(u32::MAX);
        let limit = quantity.saturating_sub(taken).max(1);
        let not_ours = others.join(", ");
        // kubelet asks every minute.
        if self
            .news
            .is_new("limit", &format!("{quantity} {limit} {not_ours}"))
        {
            tracing::info!(
                quantity,
                limit,
                not_ours,
                "the limit is what the instance type takes less the system disk and what is not ours"
            );
        }
        limit
    }

    /// The cloud's disks on this node that are not ours, the system disk among them.
    async fn others(&self) -> std::result::Result<Vec<String>, HostError> {
        let mut devices = self.host.devices(quick()).await?;
        devices.retain(is_cloud_disk);
        let mounts = self.host.mounts(quick()).await?;
        let staged = self.staged_records().await;
        // kubelet stages below `plugins/kubernetes.io/csi/DRIVER/HASH/globalmount`.
        let staged_at = format!("/{}/", self.driver);
        let mut others = Vec::new();
        for device in devices {
            let ours = match whose(&device, &mounts, &staged, &staged_at) {
                Whose::Ours => true,
                Whose::Others => false,
                // It may be on its way to be staged.
                Whose::Nobodys => {
                    let age = self.host.age(quick(), &device).await;
                    age.is_ok_and(|age| age < ON_ITS_WAY)
                }
            };
            if !ours {
                others.push(device.to_string());
            }
        }
        Ok(others)
    }
}

enum Whose {
    Ours,
    Others,
    Nobodys,
}

/// Who uses a disk: a volume of this driver is recorded, or staged in its directory.
fn whose(device: &Device, mounts: &[Mount], staged: &[StagedRecord], staged_at: &str) -> Whose {
    let is_recorded = |one: &StagedRecord| {
        let serial = device.serial.as_ref();
        serial.is_some_and(|serial| serial.as_str() == one.serial)
    };
    let own = |mount: &&Mount| mount.is_of(device) || mount.is_node_of(device);
    let is_staged = |mount: &Mount| mount.point.to_string_lossy().contains(staged_at);
    let is_used = mounts.iter().any(|mount| own(&mount))
        || !device.partitions.is_empty()
        || !device.holders.is_empty();
    if staged.iter().any(is_recorded) || mounts.iter().filter(own).any(is_staged) {
        Whose::Ours
    } else if is_used {
        Whose::Others
    } else {
        Whose::Nobodys
    }
}

/// Whether it is a disk as the cloud attaches them: by virtio or NVMe. Other kinds take no place.
fn is_cloud_disk(device: &Device) -> bool {
    ["vd", "nvme"]
        .iter()
        .any(|prefix| device.name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::host::fake::{Fake, State, disk, mount_of};
    use crate::node::Settings;

    const FILE: &str = "/config/types.json";

    async fn ask(state: State, max_volumes: Option<u32>, own: Option<&str>) -> Result<Info> {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings {
            id: "i-1".parse().unwrap(),
            zone: "z-a".parse().unwrap(),
            max_volumes,
            categories: Vec::new(),
            types: Types {
                file: Some(FILE.into()),
                own: own.map(str::to_owned),
            },
            device_dir: None,
            kubelet_dir: dir.path().to_owned(),
            state_dir: dir.path().to_owned(),
        };
        let fake = Arc::new(Fake::new(state));
        let node = Node::new(Arc::clone(&fake) as _, fake, settings);
        // A volume whose pod is just restarting.
        let volume = super::super::Volume::new("d-recorded".parse().unwrap(), None);
        node.put_staged_record(&volume, &disk("vdz", 400, "recorded"))
            .await;
        node.info().await
    }

    fn with(text: &str) -> State {
        State {
            files: [(FILE.into(), text.to_owned())].into(),
            ..State::default()
        }
    }

    fn small(quantity: u32) -> State {
        with(&format!(
            r#"{{"instanceTypes": {{"ecs.small":
                {{"diskQuantity": {quantity}, "categories": ["cloud_essd"]}}}}}}"#
        ))
    }

    async fn limit(state: State) -> Option<u32> {
        ask(state, None, Some("ecs.small"))
            .await
            .unwrap()
            .max_volumes
    }

    #[tokio::test]
    async fn the_system_disk_and_foreign_disks_take_places_and_ours_do_not() {
        let system = Device {
            partitions: vec!["vda1".to_owned()],
            ..disk("vda", 0, "system")
        };
        let staged = disk("vdb", 16, "bp1");
        let foreign = disk("vdc", 32, "bp2");
        let path = "/k/plugins/kubernetes.io/csi/diskplugin.csi.example/abc/globalmount";
        let mut state = small(9);
        state.mounts = vec![
            mount_of(&staged, path, "rw"),
            mount_of(&foreign, "/data", "rw"),
        ];
        let unused = disk("vde", 64, "bp3");
        let arrived = disk("vdf", 80, "bp4");
        let local = Device {
            serial: None,
            ..disk("loop0", 96, "x")
        };
        state.ages.insert("vdf".to_owned(), Duration::from_secs(5));
        state.devices = vec![
            system,
            staged,
            foreign,
            disk("vdd", 48, "recorded"),
            unused,
            arrived,
            local,
        ];
        // Not ours: the system disk, the foreign one, and the one that nobody has used for long.
        assert_eq!(limit(state).await, Some(6));
    }

    #[tokio::test]
    async fn the_limit_is_never_0_and_the_system_disk_counts_also_unseen() {
        assert_eq!(limit(small(17)).await, Some(16));
        assert_eq!(limit(small(1)).await, Some(1));
        let mut state = small(2);
        state.devices = vec![
            disk("vda", 0, "a"),
            disk("vdb", 16, "b"),
            disk("vdc", 32, "c"),
        ];
        assert_eq!(limit(state).await, Some(1));
    }

    #[tokio::test]
    async fn what_is_set_goes_before_the_file() {
        let info = ask(small(17), Some(5), Some("ecs.small")).await.unwrap();
        assert_eq!(info.max_volumes, Some(5));
        assert_eq!(info.categories, ["cloud_essd".parse().unwrap()]);
    }

    #[tokio::test]
    async fn without_file_or_type_no_limit_is_told() {
        assert_eq!(limit(State::default()).await, None);
        for own in [None, Some("ecs.other")] {
            let info = ask(small(17), None, own).await.unwrap();
            assert_eq!((info.max_volumes, info.categories.len()), (None, 0));
        }
    }

    #[tokio::test]
    async fn a_wrong_file_is_an_error_that_names_file_and_field() {
        let error = ask(with("{}"), None, Some("ecs.small")).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "/config/types.json: instanceTypes is missing"
        );
    }
}

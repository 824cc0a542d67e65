//! Prerequisites of the node plugin: the kernel, capabilities, device nodes, mounts that propagate to kubelet, and a
//! writable state directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::observe::{Observer, quick};
use crate::base::error_chain;
use crate::linux::{Capability, Device, Entry, Host, Mount, Records};

/// The directories below kubelet's root directory that contain staging and target paths.
const VOLUME_DIRECTORIES: [&str; 2] = ["plugins", "pods"];

/// The oldest kernel on which the driver is tested, and whose features new filesystems have.
const OLDEST_KERNEL: [u32; 2] = [5, 10];

const KERNEL_RELEASE: &str = "/proc/sys/kernel/osrelease";

/// Checks what the node plugin needs from its host. Errors describe the problem and its solution.
#[derive(Debug, Clone)]
pub struct Prerequisites {
    pub(super) observer: Observer,
    pub(super) records: Records,
}

impl Prerequisites {
    pub fn new(host: Arc<dyn Host>, kubelet_dir: PathBuf, state_dir: PathBuf) -> Self {
        let observer = Observer {
            host,
            kubelet_dir,
            device_dir: None,
        };
        Self {
            observer,
            records: Records::new(state_dir),
        }
    }

    /// Checks the version of the kernel, and returns its release.
    pub async fn check_kernel(&self) -> Result<String, String> {
        let release = self.observer.host.text(quick(), Path::new(KERNEL_RELEASE)).await;
        let release = release.map_err(|error| error_chain(&error))?;
        let release = release.unwrap_or_default().trim().to_owned();
        let numbers = release.split(|c: char| !c.is_ascii_digit());
        let version: Vec<u32> = numbers.map_while(|number| number.parse().ok()).collect();
        let [major, minor] = OLDEST_KERNEL;
        if version.as_slice() < &OLDEST_KERNEL {
            return Err(format!(
                "Linux {release} is not supported: upgrade the operating system of the node to Linux {major}.{minor} \
                 or newer"
            ));
        }
        Ok(format!("Linux {release}"))
    }

    /// Checks that this process may mount filesystems. Returns what it may not do otherwise, if anything.
    pub async fn check_capabilities(&self) -> Result<Option<String>, String> {
        let capabilities = self.observer.host.capabilities(quick()).await;
        let capabilities = capabilities.map_err(|error| error_chain(&error))?;
        let missing = |capability, name, consequence| {
            let advice = "add it, or run the container as root with privileged: true";
            (!capabilities.has(capability)).then(|| format!("{name} is missing: {consequence}; {advice}"))
        };
        if let Some(problem) = missing(Capability::SysAdmin, "CAP_SYS_ADMIN", "no volume can be mounted") {
            return Err(problem);
        }
        let consequence = "ext3 and ext4 cannot be expanded while they are mounted";
        Ok(missing(Capability::SysResource, "CAP_SYS_RESOURCE", consequence))
    }

    /// Checks that the devices can be listed, and that `/dev` has the nodes of the disks in `/sys`: a container without
    /// the host's `/dev` has others or none.
    pub async fn check_devices(&self) -> Result<(), String> {
        let failed = |error| error_chain(&error);
        let devices = self.observer.host.devices(quick()).await.map_err(failed)?;
        // The devices of the fake cloud replace those of the host.
        if self.observer.device_dir.is_some() {
            return Ok(());
        }
        let is_disk = |device: &&Device| ["vd", "nvme"].iter().any(|prefix| device.name.starts_with(prefix));
        for device in devices.iter().filter(is_disk) {
            let entry = self.observer.host.entry(quick(), &device.path).await;
            let problem = match entry.map_err(failed)? {
                Entry::BlockDevice(number) if number == device.number => continue,
                Entry::BlockDevice(number) => format!("is the node of device {number}"),
                Entry::Missing => "does not exist".to_owned(),
                _ => "is not a block device".to_owned(),
            };
            // A disk that was detached meanwhile has no node.
            let now = self.observer.host.device(quick(), &device.name).await;
            if now.map_err(failed)?.is_some_and(|now| now.number == device.number) {
                return Err(format!(
                    "{} {problem}, but /sys lists it as device {}",
                    device.path.display(),
                    device.number
                ));
            }
        }
        Ok(())
    }

    /// Checks that mounts below kubelet's root directory propagate to kubelet. Without propagation, a pod would write
    /// to the directory underneath the mount.
    pub async fn check_mount_propagation(&self) -> Result<(), String> {
        let failed = |error| error_chain(&error);
        let given = &self.observer.kubelet_dir;
        let real = self.observer.host.real(quick(), given).await.map_err(failed)?;
        let entry = self.observer.host.entry(quick(), &real).await.map_err(failed)?;
        if entry != Entry::Directory {
            return Err(format!(
                "--kubelet-dir {} is not a directory: set it to kubelet's --root-dir, and mount that directory into the \
                 container at the same path",
                given.display()
            ));
        }
        let mounts = self.observer.host.mounts(quick()).await.map_err(failed)?;
        for directory in VOLUME_DIRECTORIES.map(|place| real.join(place)) {
            let point = Mount::containing(&mounts, &directory).filter(|mount| !mount.is_shared);
            if let Some(mount) = point {
                return Err(format!(
                    "mounts below {} would not propagate to kubelet: the mount {} is not shared; mount it into the container \
                     with mountPropagation: Bidirectional, or, outside a container, run `mount --make-rshared {}`",
                    directory.display(),
                    mount.point.display(),
                    mount.point.display()
                ));
            }
        }
        Ok(())
    }

    pub async fn check_state_dir(&self) -> Result<(), String> {
        let tested = self.records.test_write().await;
        tested.map_err(|error| format!("--state-dir: {}", error_chain(&error)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::linux::fake::{FakeState, disk, mount_of};
    use crate::linux::{Capabilities, DeviceNumber, Entry, Mount};
    use crate::node::tests::world_below;

    fn at(point: &str, is_shared: bool) -> Mount {
        Mount {
            is_shared,
            ..mount_of(&disk("vda", 0, "system"), point, "rw")
        }
    }

    async fn check(mounts: &[(&str, bool)]) -> Result<(), String> {
        let mounts = mounts.iter().map(|(point, is_shared)| at(point, *is_shared));
        let state = FakeState {
            mounts: mounts.collect(),
            entries: [("/k".into(), Entry::Directory)].into(),
            ..FakeState::default()
        };
        let (_, node) = world_below("/k", state);
        node.prerequisites.check_mount_propagation().await
    }

    #[tokio::test]
    async fn the_topmost_mounts_of_both_directories_must_be_shared() {
        for mounts in [
            [("/", true)].as_slice(),
            // The mounts of the Helm chart.
            &[("/", false), ("/k/plugins", true), ("/k/pods", true)],
            &[("/", false), ("/k", true)],
            // Of two mounts at one path, the later is on top.
            &[("/", false), ("/k", false), ("/k", true)],
            // A mounted volume does not contain the directory.
            &[("/", true), ("/k/pods/uid/volumes/x/mount", false), ("/kk", false)],
        ] {
            assert_eq!(check(mounts).await, Ok(()), "{mounts:?}");
        }
        for (mounts, problem) in [
            (
                [("/", false)].as_slice(),
                "/k/plugins would not propagate to kubelet: the mount / is",
            ),
            (
                &[("/", true), ("/k/pods", false)],
                "/k/pods would not propagate to kubelet: the mount /k/pods is",
            ),
            (
                &[("/k", true), ("/k", false)],
                "/k/plugins would not propagate to kubelet: the mount /k is",
            ),
        ] {
            let error = check(mounts).await.unwrap_err();
            assert!(error.contains(problem) && error.contains("Bidirectional"), "{error}");
        }
    }

    #[tokio::test]
    async fn a_missing_kubelet_directory_is_reported_with_its_flag() {
        let (_, node) = world_below("/k", FakeState::default());
        let error = node.prerequisites.check_mount_propagation().await.unwrap_err();
        assert!(error.starts_with("--kubelet-dir /k is not a directory"), "{error}");
    }

    #[tokio::test]
    async fn kernels_before_5_10_are_not_supported() {
        let check = async |release: &str| {
            let state = FakeState {
                files: HashMap::from([(KERNEL_RELEASE.into(), format!("{release}\n"))]),
                ..FakeState::default()
            };
            let (_, node) = world_below("/k", state);
            node.prerequisites.check_kernel().await
        };
        for release in ["5.10.0-36-cloud-amd64", "6.1.192", "6.12-rc3", "10.0.1"] {
            assert_eq!(check(release).await, Ok(format!("Linux {release}")));
        }
        for release in ["5.4.0-200-generic", "4.19.91-27.al7.x86_64", "unknown"] {
            let error = check(release).await.unwrap_err();
            assert!(
                error.contains(release) && error.contains("Linux 5.10 or newer"),
                "{error}"
            );
        }
    }

    #[tokio::test]
    async fn a_missing_capability_is_named_with_its_use() {
        let check = async |mask| {
            let state = FakeState {
                capabilities: Capabilities::parse(&format!("CapEff:\t{mask}")).unwrap(),
                ..FakeState::default()
            };
            let (_, node) = world_below("/k", state);
            node.prerequisites.check_capabilities().await
        };
        assert_eq!(check("1ffffffffff").await, Ok(None));
        let error = check("1000000").await.unwrap_err();
        assert!(
            error.starts_with("CAP_SYS_ADMIN is missing: no volume can be mounted"),
            "{error}"
        );
        let limitation = check("200000").await.unwrap().unwrap();
        assert!(
            limitation.starts_with("CAP_SYS_RESOURCE is missing: ext3 and ext4 cannot"),
            "{limitation}"
        );
    }

    #[tokio::test]
    async fn device_nodes_must_be_those_of_the_host() {
        let check = async |entry: Entry| {
            let state = FakeState {
                devices: vec![disk("vdb", 16, "bp1"), disk("dm-0", 3, "")],
                entries: [("/dev/vdb".into(), entry)].into(),
                ..FakeState::default()
            };
            let (_, node) = world_below("/k", state);
            node.prerequisites.check_devices().await
        };
        let number = disk("vdb", 16, "").number;
        assert_eq!(check(Entry::BlockDevice(number)).await, Ok(()));
        let other = DeviceNumber { minor: 32, ..number };
        for (entry, problem) in [
            (
                Entry::Missing,
                "/dev/vdb does not exist, but /sys lists it as device 254:16",
            ),
            (Entry::File, "/dev/vdb is not a block device, but"),
            (
                Entry::BlockDevice(other),
                "/dev/vdb is the node of device 254:32, but /sys lists it as device 254:16",
            ),
        ] {
            let error = check(entry).await.unwrap_err();
            assert!(error.starts_with(problem), "{error}");
        }
    }
}

//! NVMe disks that grow while they are mounted. QEMU's NVMe devices cannot grow, so the guest exports a virtio disk as
//! a namespace of the kernel's NVMe target and connects to it over TCP on its loopback interface.

use tonic::Status;

use super::grow::{FILES, assert_expands, compare, end_load, load};
use crate::common::csi::filesystem;
use crate::common::volume::NodeVolume;
use crate::disk::{Attached, Kind, MIB};
use crate::machine::Guest;
use crate::node::Node;

/// Linux 5.10 parses a serial as a hexadecimal number, and reports its bytes in reverse order.
const SERIAL: &str = "1d1d1d1d1d1d1d1d";

const TARGET: &str = "/sys/kernel/config/nvmet";

/// Exports /dev/vda and connects to it.
fn connect() -> String {
    format!(
        "modprobe -a nvmet-tcp nvme-tcp
         mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
         cd {TARGET}
         mkdir subsystems/disk subsystems/disk/namespaces/1 ports/1
         cd subsystems/disk
         echo 1 > attr_allow_any_host
         echo {SERIAL} > attr_serial
         echo 'Alibaba Cloud Elastic Block Storage' > attr_model
         echo /dev/vda > namespaces/1/device_path
         echo 1 > namespaces/1/enable
         cd ../../ports/1
         echo ipv4 > addr_adrfam; echo tcp > addr_trtype; echo 127.0.0.1 > addr_traddr; echo 4420 > addr_trsvcid
         ln -s {TARGET}/subsystems/disk subsystems/disk
         exec 3<> /dev/nvme-fabrics
         echo -n nqn=disk,transport=tcp,traddr=127.0.0.1,trsvcid=4420 >&3
         until [[ -b /dev/nvme0n1 ]]; do sleep 0.02; done
         udevadm settle"
    )
}

/// Disconnects and removes the target.
const DISCONNECT: &str = "echo 1 > /sys/class/nvme/nvme0/delete_controller
     until [[ ! -e /dev/nvme0n1 ]]; do sleep 0.02; done
     cd /sys/kernel/config/nvmet
     rm ports/1/subsystems/disk
     echo 0 > subsystems/disk/namespaces/1/enable
     rmdir subsystems/disk/namespaces/1 subsystems/disk ports/1";

/// The cloud expands the disk during the call of kubelet. The NVMe controller reports that with an asynchronous event.
async fn grow(guest: &Guest, volume: &NodeVolume, attached: &Attached<'_>, size: u64) -> Result<u64, Status> {
    let announce = format!(
        "until [[ $(cat /sys/block/vda/size) == {} ]]; do sleep 0.02; done
         echo 1 > {TARGET}/subsystems/disk/namespaces/1/revalidate_size",
        size / 512
    );
    let (grown, ()) = tokio::join!(volume.expand(size), async {
        attached.grow(size).await;
        guest.sh(&announce).await;
    });
    grown
}

async fn expands_under_load(guest: &Guest, node: &Node, parent: &str, fs_type: &str, [size, larger]: [u64; 2]) {
    let attached = guest.attach_new(Kind::Virtio, "bp1backing0000000001", size).await;
    guest.sh("until [[ -b /dev/vda ]]; do sleep 0.02; done").await;
    guest.sh(&connect()).await;
    let found = guest.sh("basename $(realpath /sys/block/nvme0n1/device)").await;
    assert_eq!(found, parent);
    let mut disk = attached.disk.clone();
    SERIAL.clone_into(&mut disk.serial);
    let volume = node.volume(&disk, filesystem(fs_type));
    volume.mount().await;
    let source = format!("findmnt -rno SOURCE -M {}", volume.target);
    assert_eq!(guest.sh(&source).await, "/dev/nvme0n1");
    guest.sh(&load(&volume.target)).await;
    assert_expands(guest, &volume, larger, grow(guest, &volume, &attached, larger)).await;
    end_load(guest, &volume.target).await;
    volume.unmount().await;
    guest.sh(DISCONNECT).await;
    guest.sh(&connect()).await;
    volume.mount().await;
    assert_eq!(guest.sh(&compare(&volume.target)).await, FILES.to_string());
    volume.unmount().await;
    guest.sh(DISCONNECT).await;
    guest.has_no_mounts().await;
    attached.detach().await;
}

/// Expands ext4 and xfs on a disk with this parent in sysfs.
async fn filesystems_expand(guest: &Guest, parent: &str) {
    let node = guest.node().await;
    for (fs_type, sizes) in [("ext4", [64 * MIB, 512 * MIB]), ("xfs", [320 * MIB, 1024 * MIB])] {
        eprintln!("{fs_type}");
        expands_under_load(guest, &node, parent, fs_type, sizes).await;
    }
}

#[tokio::test]
async fn an_nvme_disk_with_multipath_expands_under_load() {
    let Some(guest) = Guest::fresh().await else {
        return;
    };
    filesystems_expand(&guest, "nvme-subsys0").await;
}

#[tokio::test]
async fn an_nvme_disk_without_multipath_expands_under_load() {
    let Some(guest) = Guest::booted("nvme_core.multipath=N").await else {
        return;
    };
    filesystems_expand(&guest, "nvme0").await;
}

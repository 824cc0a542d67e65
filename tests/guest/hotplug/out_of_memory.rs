//! A filesystem tool that exhausts the memory of the container. kubelet sets `memory.oom.group` on cgroup v2, with
//! which the kernel terminates all processes of the container.

use tonic::Code;

use crate::common::csi::{assert_fails, filesystem};
use crate::disk::{Kind, MIB};
use crate::hotplug::started;

const SIZE: u64 = 64 * MIB;

/// Moves the node plugin into a cgroup like that of a container. The limit covers only new pages.
const CONTAINER: &str = "mount -t cgroup2 cgroup2 /sys/fs/cgroup
    echo +memory > /sys/fs/cgroup/cgroup.subtree_control
    mkdir /sys/fs/cgroup/container
    echo 48M > /sys/fs/cgroup/container/memory.max
    echo 1 > /sys/fs/cgroup/container/memory.oom.group
    cat /run/node.pid > /sys/fs/cgroup/container/cgroup.procs";

/// Replaces e2fsck by a program that exceeds the limit.
const REPLACE: &str = r"printf '%s\n' '#!/bin/bash' 'text=$(head -c 200M /dev/zero | tr \\0 x)' > /tmp/e2fsck
    chmod +x /tmp/e2fsck
    mount --bind /tmp/e2fsck $(readlink -f $(command -v e2fsck))";

const RESTORE: &str = "umount $(readlink -f $(command -v e2fsck))";

const OOM_KILLS: &str = "sed -n 's/^oom_kill //p' /sys/fs/cgroup/container/memory.events";

#[tokio::test]
async fn a_tool_without_memory_is_terminated_and_not_the_node_plugin() {
    let Some((guest, node)) = started().await else { return };
    let attached = guest.attach_new(Kind::Virtio, "bp1outofmemory000001", SIZE).await;
    let volume = node.volume(&attached.disk, filesystem("ext4"));
    volume.mount().await;
    volume.unmount().await;
    guest.sh(CONTAINER).await;
    guest.sh(REPLACE).await;

    assert_fails(volume.stage().await, Code::Internal, &["TOOL_FAILED"]);
    let kills = guest.sh(OOM_KILLS).await;
    assert_ne!(kills, "0", "the memory was sufficient");

    guest.sh(RESTORE).await;
    guest.sh("kill -0 $(cat /run/node.pid)").await;
    volume.mount().await;
    volume.unmount().await;
    guest.has_no_mounts().await;
}

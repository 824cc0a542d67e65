//! The calls whose outcome docs/reference/node-rpcs.md defines, according to the state of the node.

use crate::model::world::{
    Access, Call, Content, DeviceLookup, MOUNT_POINTS, Mount, Stage, World, look_up_device, mounts_elsewhere,
};

/// Whether the reference defines the outcome of the call.
pub(crate) fn is_defined(world: &World, call: Call) -> bool {
    let has = |predicate: fn(Mount) -> bool, volume| mounts_elsewhere(world, volume, &[]).any(predicate);
    match call {
        Call::Stage(Stage { volume, access, .. }) => match access {
            Access::Block => true,
            Access::Mount => !has(Mount::is_node, volume),
            // The disk may be too small for the other filesystem type.
            Access::MountOtherType => !has(Mount::is_node, volume) && world.volumes[volume].content != Content::Blank,
        },
        // The volume may be mounted at other paths in addition to its only target.
        Call::Publish(call) if call.single && world.top(call.target).is_some() => false,
        Call::Publish(call) => match call.access {
            Access::Block => !has(Mount::is_filesystem, call.volume),
            Access::Mount | Access::MountOtherType => !has(Mount::is_node, call.volume),
        },
        Call::Expand { volume, .. } => {
            // A mount that is covered by a foreign mount cannot be grown by path.
            let undersized = matches!(
                world.volumes[volume].content,
                Content::Filesystem { undersized: true, .. }
            );
            !undersized || (0..MOUNT_POINTS).all(|mount_point| !is_covered(world, volume, mount_point))
        }
        // Orchestrators do not unstage a volume at a wrong path while it is in use.
        Call::Unstage { volume, staging } => {
            let own = [staging];
            let mut others = mounts_elsewhere(world, volume, &own);
            world.top(staging).is_some() || others.next().is_none()
        }
        // Undefined if the device is not found, or if the path belongs to another volume, whose device may reuse the
        // name of a removed one.
        Call::Stats { volume, mount_point } => {
            let other = world.top(mount_point).and_then(Mount::volume);
            look_up_device(world, volume) == DeviceLookup::Found && other.is_none_or(|other| other == volume)
        }
        Call::Unpublish { .. } => true,
    }
}

fn is_covered(world: &World, volume: usize, mount_point: usize) -> bool {
    let stack = &world.mount_points[mount_point].stack;
    let below = stack.split_last().map_or(&[][..], |(_, below)| below);
    below.iter().any(|mount| mount.volume() == Some(volume))
}

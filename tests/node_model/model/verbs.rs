//! The expected outcome and effects of each call according to docs/reference/node-rpcs.md, independent of the driver's
//! code.

use crate::model::world::{
    Access, Call, Content, Device, DeviceLookup, Entry, FsType, Mount, Outcome, Publish, Stage, VOLUMES, World,
    look_up_device, mounts_elsewhere,
};

/// Applies the call to the model and returns its expected outcome.
pub(crate) fn apply(world: &mut World, call: Call) -> Outcome {
    let result = match call {
        Call::Stage(call) => {
            let result = stage(world, call);
            if result.is_ok() {
                set_staged(world, call.volume, true);
            }
            result
        }
        Call::Publish(call) if call.access == Access::Block => publish_block(world, call),
        Call::Publish(call) => publish(world, call),
        Call::Unpublish { volume, target } => unmount_all(world, volume, target, false),
        Call::Unstage { volume, staging } => {
            let result = unmount_all(world, volume, staging, true);
            if result.is_ok() {
                set_staged(world, volume, false);
            }
            result
        }
        Call::Expand { volume, mount_point } => expand(world, volume, mount_point),
        Call::Stats { volume, mount_point } => stats(world, volume, mount_point),
    };
    result.err().unwrap_or(Outcome::Ok)
}

type CallResult = Result<(), Outcome>;

/// Calls that wait for the device.
fn find_device(world: &World, volume: usize) -> CallResult {
    match is_device_present(world, volume)? {
        true => Ok(()),
        false => Err(Outcome::DeadlineExceeded),
    }
}

/// Calls that do not wait for the device.
fn is_device_present(world: &World, volume: usize) -> Result<bool, Outcome> {
    match look_up_device(world, volume) {
        DeviceLookup::Found => Ok(true),
        DeviceLookup::Missing => Ok(false),
        DeviceLookup::Ambiguous => Err(Outcome::FailedPrecondition),
    }
}

fn fail_if(condition: bool) -> CallResult {
    match condition {
        true => Err(Outcome::FailedPrecondition),
        false => Ok(()),
    }
}

fn stage(world: &mut World, call: Stage) -> CallResult {
    let Stage {
        volume,
        staging,
        access,
        read_only,
    } = call;
    find_device(world, volume)?;
    let used = mounts_elsewhere(world, volume, &[staging]).any(Mount::is_filesystem);
    let own = &world.volumes[volume];
    match (world.top(staging), access) {
        (Some(Mount::Filesystem { volume: other, .. }), _) if other != volume => Err(Outcome::FailedPrecondition),
        (Some(Mount::Filesystem { .. }), Access::Block | Access::MountOtherType) => Err(Outcome::AlreadyExists),
        (Some(Mount::Filesystem { read_only: is, .. }), Access::Mount) => {
            if is != read_only {
                return Err(Outcome::AlreadyExists);
            }
            if own.fs != FsType::Ext4 && !read_only {
                set_grown(world, volume);
            }
            Ok(())
        }
        (Some(_), _) => Err(Outcome::FailedPrecondition),
        (None, Access::Block) => fail_if(used),
        (None, Access::MountOtherType) => Err(Outcome::FailedPrecondition),
        (None, Access::Mount) => {
            fail_if(used)?;
            fail_if(own.content == Content::Foreign)?;
            fail_if(own.content == Content::Blank && read_only)?;
            ensure_entry(world, staging, Entry::Directory)?;
            if world.volumes[volume].content == Content::Blank {
                world.volumes[volume].content = Content::Filesystem {
                    undersized: false,
                    data: None,
                };
            }
            if !read_only {
                set_grown(world, volume);
                set_write_protected(world, volume, false);
            }
            let mount = Mount::Filesystem { volume, read_only };
            world.mount_points[staging].stack.push(mount);
            Ok(())
        }
    }
}

fn set_staged(world: &mut World, volume: usize, value: bool) {
    if let Device::Present { staged, .. } = &mut world.volumes[volume].device {
        *staged = value;
    }
}

/// Creates the entry if it is missing.
fn ensure_entry(world: &mut World, mount_point: usize, requested: Entry) -> CallResult {
    let entry = &mut world.mount_points[mount_point].entry;
    match (*entry, requested) {
        (Entry::Missing, _) => *entry = requested,
        (Entry::Directory | Entry::NonEmptyDirectory, Entry::Directory)
        | (Entry::File | Entry::NonEmptyFile, Entry::File) => {}
        _ => return Err(Outcome::FailedPrecondition),
    }
    Ok(())
}

fn set_grown(world: &mut World, volume: usize) {
    if let Content::Filesystem { undersized, .. } = &mut world.volumes[volume].content {
        *undersized = false;
    }
}

fn set_write_protected(world: &mut World, volume: usize, requested: bool) {
    if let Device::Present { write_protected, .. } = &mut world.volumes[volume].device {
        *write_protected = requested;
    }
}

fn publish(world: &mut World, call: Publish) -> CallResult {
    let (volume, read_only) = (call.volume, call.read_only);
    find_device(world, volume)?;
    let Some(Mount::Filesystem {
        volume: staged,
        read_only: staged_read_only,
    }) = world.top(call.staging)
    else {
        return Err(Outcome::FailedPrecondition);
    };
    fail_if(staged != volume)?;
    if call.access == Access::MountOtherType {
        return Err(Outcome::AlreadyExists);
    }
    fail_if(staged_read_only && !read_only)?;
    let others = mounts_elsewhere(world, volume, &[call.staging, call.target]).any(Mount::is_filesystem);
    let requested = Mount::Filesystem { volume, read_only };
    mount(world, call.target, Entry::Directory, requested, call.single && others)
}

/// Mounts the volume at the target, unless other mounts exclude that.
fn mount(world: &mut World, target: usize, entry: Entry, requested: Mount, excluded: bool) -> CallResult {
    match world.top(target) {
        Some(top) if top.is_filesystem() == requested.is_filesystem() && top.volume() == requested.volume() => {
            if top.is_read_only() && !requested.is_read_only() {
                return Err(Outcome::AlreadyExists);
            }
            fail_if(excluded)?;
            world.mount_points[target].stack.pop();
        }
        Some(_) => return Err(Outcome::FailedPrecondition),
        None => {
            let mut after = world.clone();
            ensure_entry(&mut after, target, entry)?;
            fail_if(excluded)?;
            *world = after;
        }
    }
    world.mount_points[target].stack.push(requested);
    Ok(())
}

fn publish_block(world: &mut World, call: Publish) -> CallResult {
    let (volume, read_only) = (call.volume, call.read_only);
    find_device(world, volume)?;
    let others: Vec<Mount> = mounts_elsewhere(world, volume, &[call.target])
        .filter(|mount| mount.is_node())
        .collect();
    let requested = Mount::DeviceNode { volume, read_only };
    fail_if(others.iter().any(|other| *other != requested))?;
    mount(
        world,
        call.target,
        Entry::File,
        requested,
        call.single && !others.is_empty(),
    )?;
    set_write_protected(world, volume, read_only);
    Ok(())
}

fn unmount_all(world: &mut World, volume: usize, mount_point: usize, unstage: bool) -> CallResult {
    loop {
        // A stale link does not matter, and a disk without its symlink is still attached.
        let is_present = match world.volumes[volume].device {
            Device::Absent | Device::StaleLink(_) => false,
            Device::Present { linked, staged, .. } => {
                let is_mounted = world.top(mount_point).and_then(Mount::volume) == Some(volume);
                linked || is_mounted || unstage && staged
            }
        };
        let Some(top) = world.top(mount_point) else {
            return remove_entry(world, mount_point, unstage);
        };
        let others: Vec<Mount> = mounts_elsewhere(world, volume, &[mount_point]).collect();
        fail_if(unstage && is_present && !others.is_empty())?;
        fail_if(top.volume() != Some(volume))?;
        world.mount_points[mount_point].stack.pop();
        if is_present && top.is_node() && !others.iter().any(|other| other.is_node()) {
            set_write_protected(world, volume, false);
        }
        let last = world.mount_points[mount_point].stack.is_empty();
        world.remove_unused_devices();
        if last {
            return remove_entry(world, mount_point, unstage);
        }
    }
}

/// Removes the entry if it is empty.
fn remove_entry(world: &mut World, mount_point: usize, unstage: bool) -> CallResult {
    let entry = &mut world.mount_points[mount_point].entry;
    match *entry {
        Entry::Missing | Entry::Directory | Entry::File => {
            *entry = Entry::Missing;
            Ok(())
        }
        Entry::NonEmptyDirectory | Entry::NonEmptyFile if unstage => Ok(()),
        Entry::NonEmptyDirectory | Entry::NonEmptyFile => Err(Outcome::FailedPrecondition),
        Entry::Symlink => Err(Outcome::FailedPrecondition),
    }
}

fn expand(world: &mut World, volume: usize, mount_point: usize) -> CallResult {
    stats(world, volume, mount_point)?;
    let Content::Filesystem { undersized: true, .. } = world.volumes[volume].content else {
        return Ok(());
    };
    if !world.is_mounted(volume) {
        return Ok(());
    }
    let writable = |mount| matches!(mount, Mount::Filesystem { read_only: false, .. });
    fail_if(!mounts_elsewhere(world, volume, &[]).any(writable))?;
    fail_if(world.volumes[volume].fs == FsType::Ext4 && !crate::common::machine::can_resize_mounted_ext())?;
    set_grown(world, volume);
    Ok(())
}

fn stats(world: &World, volume: usize, mount_point: usize) -> CallResult {
    let is_present = is_device_present(world, volume)?;
    let is_visible = world.top(mount_point).and_then(Mount::volume) == Some(volume);
    match is_present && is_visible {
        true => Ok(()),
        false => Err(Outcome::NotFound),
    }
}

/// `1 - volume` is the index of the other volume.
const _: () = assert!(VOLUMES == 2);

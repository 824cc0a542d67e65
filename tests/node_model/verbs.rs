//! What each call must answer and do, as docs/reference/node-rpcs.md states: written without a look at how the
//! driver decides.

use crate::world::{
    Access, Answer, Call, Content, Device, Fs, Layer, PLACES, Under, VOLUMES, World,
};

/// How a volume's device is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Here,
    Missing,
    Misled,
}

fn see(world: &World, volume: usize) -> Seen {
    match world.volumes[volume].device {
        Device::Absent | Device::There { linked: false, .. } => Seen::Missing,
        Device::Stale(_) => Seen::Misled,
        Device::There { linked: true, .. } => Seen::Here,
    }
}

/// Whether the semantics say what comes of the call.
pub(crate) fn is_defined(world: &World, call: Call) -> bool {
    let has = |wanted: fn(Layer) -> bool, volume: usize| {
        let layers = world.places.iter().flat_map(|place| &place.stack);
        layers
            .into_iter()
            .any(|layer| layer.volume() == Some(volume) && wanted(*layer))
    };
    let is_node = |layer| matches!(layer, Layer::Node { .. });
    let is_fs = |layer| matches!(layer, Layer::Fs { .. });
    match call {
        Call::Stage { volume, access, .. } => match access {
            Access::Block => true,
            Access::Mount => !has(is_node, volume),
            // A tool may find the disk too small for it.
            Access::WrongMount => {
                !has(is_node, volume) && world.volumes[volume].content != Content::Blank
            }
        },
        // What is at the only target already may be anywhere else besides.
        Call::Publish {
            single: true,
            target,
            ..
        } if world.top(target).is_some() => false,
        Call::Publish { volume, access, .. } => match access {
            Access::Block => !has(is_fs, volume),
            Access::Mount | Access::WrongMount => !has(is_node, volume),
        },
        Call::Expand { volume, .. } => {
            // What a foreign mount covers cannot be named to the tool that grows.
            let small = matches!(
                world.volumes[volume].content,
                Content::Ours { small: true, .. }
            );
            !small || (0..PLACES).all(|place| !is_covered(world, volume, place))
        }
        // That a volume is unstaged where it is not staged, while it is in use, happens to no orchestrator.
        Call::Unstage { volume, staging } => {
            let own = [staging];
            let mut others = elsewhere(world, volume, &own);
            world.top(staging).is_some() || others.next().is_none()
        }
        // Of a volume whose device cannot be found, and of a path where another volume is, which may have taken
        // the name of a device that is gone, statistics tell what they can.
        Call::Stats { volume, place } => {
            let other = world.top(place).and_then(Layer::volume);
            see(world, volume) == Seen::Here && other.is_none_or(|other| other == volume)
        }
        Call::Unpublish { .. } => true,
    }
}

fn is_covered(world: &World, volume: usize, place: usize) -> bool {
    let stack = &world.places[place].stack;
    let below = stack.split_last().map_or(&[][..], |(_, below)| below);
    below.iter().any(|layer| layer.volume() == Some(volume))
}

/// The volume's filesystem or nodes, anywhere but at these places.
fn elsewhere<'a>(
    world: &'a World,
    volume: usize,
    except: &'a [usize],
) -> impl Iterator<Item = Layer> + 'a {
    let places = world.places.iter().enumerate();
    places
        .filter(|(place, _)| !except.contains(place))
        .flat_map(|(_, place)| place.stack.iter().copied())
        .filter(move |layer| layer.volume() == Some(volume))
}

fn is_fs(layer: &Layer) -> bool {
    matches!(layer, Layer::Fs { .. })
}

fn is_node(layer: &Layer) -> bool {
    matches!(layer, Layer::Node { .. })
}

/// Does the call to the model; what it must answer.
pub(crate) fn apply(world: &mut World, call: Call) -> Answer {
    let done = match call {
        Call::Stage {
            volume,
            staging,
            access,
            read_only,
        } => {
            let done = stage(world, volume, staging, access, read_only);
            if done.is_ok() {
                note_staged(world, volume, true);
            }
            done
        }
        Call::Publish {
            volume,
            access: Access::Block,
            target,
            read_only,
            single,
            ..
        } => publish_node(world, volume, target, read_only, single),
        Call::Publish {
            volume,
            staging,
            target,
            access,
            read_only,
            single,
        } => {
            let wrong = access == Access::WrongMount;
            publish(world, volume, (staging, target), wrong, read_only, single)
        }
        Call::Unpublish { volume, target } => leave(world, volume, target, false),
        Call::Unstage { volume, staging } => {
            let done = leave(world, volume, staging, true);
            if done.is_ok() {
                note_staged(world, volume, false);
            }
            done
        }
        Call::Expand { volume, place } => expand(world, volume, place),
        Call::Stats { volume, place } => stats(world, volume, place),
    };
    done.err().unwrap_or(Answer::Ok)
}

type Done = Result<(), Answer>;

/// A device that must be there by the deadline.
fn find(world: &World, volume: usize) -> Done {
    match see(world, volume) {
        Seen::Here => Ok(()),
        Seen::Missing => Err(Answer::Late),
        Seen::Misled => Err(Answer::Refused),
    }
}

/// A device that is there or not.
fn present(world: &World, volume: usize) -> Result<bool, Answer> {
    match see(world, volume) {
        Seen::Here => Ok(true),
        Seen::Missing => Ok(false),
        Seen::Misled => Err(Answer::Refused),
    }
}

fn refuse_if(refused: bool) -> Done {
    if refused {
        Err(Answer::Refused)
    } else {
        Ok(())
    }
}

fn stage(
    world: &mut World,
    volume: usize,
    staging: usize,
    access: Access,
    read_only: bool,
) -> Done {
    find(world, volume)?;
    let used = elsewhere(world, volume, &[staging]).any(|layer| is_fs(&layer));
    let own = &world.volumes[volume];
    match (world.top(staging), access) {
        (Some(Layer::Fs { volume: other, .. }), _) if other != volume => Err(Answer::Refused),
        (Some(Layer::Fs { .. }), Access::Block | Access::WrongMount) => Err(Answer::Otherwise),
        (Some(Layer::Fs { read_only: is, .. }), Access::Mount) => {
            if is != read_only {
                return Err(Answer::Otherwise);
            }
            if own.fs != Fs::Ext4 && !read_only {
                grown(world, volume);
            }
            Ok(())
        }
        (Some(_), _) => Err(Answer::Refused),
        (None, Access::Block) => refuse_if(used),
        (None, Access::WrongMount) => Err(Answer::Refused),
        (None, Access::Mount) => {
            refuse_if(used)?;
            refuse_if(own.content == Content::Foreign)?;
            refuse_if(own.content == Content::Blank && read_only)?;
            make(world, staging, Under::Dir)?;
            if world.volumes[volume].content == Content::Blank {
                world.volumes[volume].content = Content::Ours {
                    small: false,
                    mark: None,
                };
            }
            if !read_only {
                grown(world, volume);
                lock(world, volume, false);
            }
            let layer = Layer::Fs { volume, read_only };
            world.places[staging].stack.push(layer);
            Ok(())
        }
    }
}

fn is_staged(world: &World, volume: usize) -> bool {
    matches!(
        world.volumes[volume].device,
        Device::There { staged: true, .. }
    )
}

fn note_staged(world: &mut World, volume: usize, is: bool) {
    if let Device::There { staged, .. } = &mut world.volumes[volume].device {
        *staged = is;
    }
}

/// The path becomes what can be mounted on, if it is not.
fn make(world: &mut World, place: usize, wanted: Under) -> Done {
    let under = &mut world.places[place].under;
    match (*under, wanted) {
        (Under::Missing, _) => *under = wanted,
        (Under::Dir | Under::FullDir, Under::Dir)
        | (Under::File | Under::FullFile, Under::File) => {}
        _ => return Err(Answer::Refused),
    }
    Ok(())
}

fn grown(world: &mut World, volume: usize) {
    if let Content::Ours { small, .. } = &mut world.volumes[volume].content {
        *small = false;
    }
}

fn lock(world: &mut World, volume: usize, wanted: bool) {
    if let Device::There { locked, .. } = &mut world.volumes[volume].device {
        *locked = wanted;
    }
}

fn publish(
    world: &mut World,
    volume: usize,
    (staging, target): (usize, usize),
    wrong: bool,
    read_only: bool,
    single: bool,
) -> Done {
    find(world, volume)?;
    let Some(Layer::Fs {
        volume: staged,
        read_only: only_read,
    }) = world.top(staging)
    else {
        return Err(Answer::Refused);
    };
    refuse_if(staged != volume)?;
    if wrong {
        return Err(Answer::Otherwise);
    }
    refuse_if(only_read && !read_only)?;
    let others = elsewhere(world, volume, &[staging, target]).any(|layer| is_fs(&layer));
    match world.top(target) {
        Some(Layer::Fs {
            volume: other,
            read_only: is,
        }) if other == volume => {
            if is && !read_only {
                return Err(Answer::Otherwise);
            }
            refuse_if(single && others)?;
            world.places[target].stack.pop();
        }
        Some(_) => return Err(Answer::Refused),
        None => {
            let mut after = world.clone();
            make(&mut after, target, Under::Dir)?;
            refuse_if(single && others)?;
            *world = after;
        }
    }
    let layer = Layer::Fs { volume, read_only };
    world.places[target].stack.push(layer);
    Ok(())
}

fn publish_node(
    world: &mut World,
    volume: usize,
    target: usize,
    read_only: bool,
    single: bool,
) -> Done {
    find(world, volume)?;
    let others: Vec<Layer> = elsewhere(world, volume, &[target])
        .filter(is_node)
        .collect();
    let wish = Layer::Node { volume, read_only };
    refuse_if(others.iter().any(|other| *other != wish))?;
    match world.top(target) {
        Some(Layer::Node {
            volume: other,
            read_only: is,
        }) if other == volume => {
            if is && !read_only {
                return Err(Answer::Otherwise);
            }
            refuse_if(single && !others.is_empty())?;
            world.places[target].stack.pop();
        }
        Some(_) => return Err(Answer::Refused),
        None => {
            let mut after = world.clone();
            make(&mut after, target, Under::File)?;
            refuse_if(single && !others.is_empty())?;
            *world = after;
        }
    }
    lock(world, volume, read_only);
    world.places[target].stack.push(wish);
    Ok(())
}

fn leave(world: &mut World, volume: usize, place: usize, unstage: bool) -> Done {
    loop {
        let mut here = present(world, volume)?;
        // A disk that does not say who it is any more is not gone.
        here |= unstage && is_staged(world, volume);
        let Some(top) = world.top(place) else {
            return clear(world, place, unstage);
        };
        let others: Vec<Layer> = elsewhere(world, volume, &[place]).collect();
        refuse_if(unstage && here && !others.is_empty())?;
        refuse_if(top.volume() != Some(volume))?;
        world.places[place].stack.pop();
        if here && is_node(&top) && !others.iter().any(is_node) {
            lock(world, volume, false);
        }
        let last = world.places[place].stack.is_empty();
        world.let_go();
        if last {
            return clear(world, place, unstage);
        }
    }
}

/// The path goes, unless something is in it that is not the driver's.
fn clear(world: &mut World, place: usize, unstage: bool) -> Done {
    let under = &mut world.places[place].under;
    match *under {
        Under::Missing | Under::Dir | Under::File => {
            *under = Under::Missing;
            Ok(())
        }
        Under::FullDir | Under::FullFile if unstage => Ok(()),
        Under::FullDir | Under::FullFile => Err(Answer::Refused),
        Under::Symlink => Err(Answer::Refused),
    }
}

fn expand(world: &mut World, volume: usize, place: usize) -> Done {
    stats(world, volume, place)?;
    let Content::Ours { small: true, .. } = world.volumes[volume].content else {
        return Ok(());
    };
    let layers: Vec<Layer> = elsewhere(world, volume, &[]).filter(is_fs).collect();
    if layers.is_empty() {
        return Ok(());
    }
    let writable = |layer: &Layer| {
        matches!(
            layer,
            Layer::Fs {
                read_only: false,
                ..
            }
        )
    };
    refuse_if(!layers.iter().any(writable))?;
    refuse_if(
        world.volumes[volume].fs == Fs::Ext4 && !crate::common::machine::can_resize_mounted_ext(),
    )?;
    grown(world, volume);
    Ok(())
}

fn stats(world: &World, volume: usize, place: usize) -> Done {
    let here = present(world, volume)?;
    let is_seen = world.top(place).and_then(Layer::volume) == Some(volume);
    match here && is_seen {
        true => Ok(()),
        false => Err(Answer::NotHere),
    }
}

/// That each volume is one of the model's.
const _: () = assert!(VOLUMES == 2);

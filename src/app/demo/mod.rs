//! `diskplugin demo`: one volume's whole life, shown as it happens, and nothing left behind.

use super::signal;
use crate::base::chain::chain;
use crate::cli;

mod clean;
mod client;
mod controller;
mod data;
mod life;
mod node;
mod show;
mod world;

use show::{Show, say};
use world::World;

/// Ended by a signal.
#[derive(Debug, thiserror::Error)]
#[error("stopped by a signal")]
pub(super) struct Interrupted;

pub(crate) async fn run(args: cli::Demo) -> anyhow::Result<()> {
    let stop = signal::stop_or_hangup()?;
    tokio::pin!(stop);
    let root = super::is_root();
    if !root {
        say("This is not root, so only the cloud's half is shown: block devices, mkfs and mount")?;
        say("need root. For the whole life: sudo make demo\n")?;
    }
    let mut world = World::new(root, args.signature)?;
    let told = tokio::select! {
        told = tell(&mut world, &args, root) => told,
        () = &mut stop => Err(Interrupted.into()),
    };
    let mut told = told;
    if told.is_ok() && args.keep {
        told = world.invite();
        if told.is_ok() {
            stop.await;
        }
    }
    // From here on signals are ignored: taking down is what they ask for. What cannot be printed is
    // no reason not to do it.
    let _ = match &told {
        Err(error) if error.is::<Interrupted>() => {
            say("\nStopped: what runs is finished, then everything is taken down.")
        }
        _ => say("\nTaking everything down."),
    };
    let cleaned = world.take_down().await;
    if cleaned.is_ok() {
        let _ = say("Nothing is left behind: no mount, no loop device, no file.");
    }
    match (told, cleaned) {
        (told, Ok(())) => told,
        (Ok(()), Err(left)) => Err(left),
        (Err(error), Err(left)) => Err(left.context(format!(
            "{}; then not everything could be taken down",
            chain(error.as_ref())
        ))),
    }
}

async fn tell(world: &mut World, args: &cli::Demo, root: bool) -> anyhow::Result<()> {
    world.start().await?;
    let mut show = Show::new(world.fake()?);
    show.opening(world)?;
    let filesystem = match args.fs_type {
        Some(filesystem) => filesystem,
        None if root => world.filesystem().await?,
        None => crate::model::Filesystem::default(),
    };
    show.head()?;
    let life = life::Life::new(world, filesystem).await?;
    if root {
        life.whole(&mut show, args.keep).await?;
    } else {
        life.cloud_half(&mut show).await?;
    }
    show.summary(&world.fake()?)
}

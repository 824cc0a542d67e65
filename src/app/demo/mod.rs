//! `diskplugin demo`: runs a volume through its life cycle, prints every step, and cleans up.

use super::{signal, user};
use crate::base::error_chain;
use crate::cli;

mod data;
mod show;
mod steps;
mod world;

use show::{Show, print_line};
use steps::Steps;
use world::World;

#[derive(Debug, thiserror::Error)]
#[error("stopped by a signal")]
struct Interrupted;

pub(crate) async fn run(args: cli::Demo) -> anyhow::Result<()> {
    let stop = signal::stop_or_hangup()?;
    tokio::pin!(stop);
    let root = user::is_root();
    if !root {
        print_line("Not running as root: only the cloud steps are shown, because block devices, mkfs and mount")?;
        print_line("require root. For the complete life cycle: sudo make demo\n")?;
    }
    let mut world = World::new(root, args.signature)?;
    let mut outcome = tokio::select! {
        outcome = run_steps(&mut world, &args) => outcome,
        () = &mut stop => Err(Interrupted.into()),
    };
    if outcome.is_ok() && args.keep {
        outcome = world.print_endpoints();
        if outcome.is_ok() {
            stop.await;
        }
    }
    // From here on signals are ignored: cleanup is what they request. It also runs if printing fails.
    let _ = print_line(match &outcome {
        Err(error) if error.is::<Interrupted>() => "\nStopped: waiting for running calls, then cleaning up.",
        _ => "\nCleaning up.",
    });
    let cleaned = world.clean_up().await;
    if cleaned.is_ok() {
        let _ = print_line("Cleanup complete: no mount, loop device or file is left.");
    }
    match (outcome, cleaned) {
        (outcome, Ok(())) => outcome,
        (Ok(()), Err(left)) => Err(left),
        (Err(error), Err(left)) => {
            Err(left.context(format!("{}; then the cleanup failed", error_chain(error.as_ref()))))
        }
    }
}

async fn run_steps(world: &mut World, args: &cli::Demo) -> anyhow::Result<()> {
    world.start().await?;
    let filesystem = match args.fs_type {
        Some(filesystem) => filesystem,
        None => world.filesystem().await?,
    };
    let mut show = Show::start(world.fake()?, &world.directory)?;
    let mut steps = Steps::new(world, filesystem).await?;
    steps.run(&mut show, world.root, args.keep).await?;
    show.print_summary()
}

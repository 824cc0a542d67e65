//! `diskplugin mark`: a person says which disk a device without a serial is.

use std::io::Write;
use std::sync::Arc;

use anyhow::Context;

use crate::base::chain::chain;
use crate::cli;
use crate::host::{Linux, Processes, Roots};
use crate::node::Marks;

pub(crate) async fn run(args: cli::Mark) -> anyhow::Result<()> {
    let host = Arc::new(Linux::new(Arc::new(Processes), Roots::default()));
    let state_dir = args.state_dir;
    let marks = Marks::new(host, state_dir.clone());
    if args.list {
        let (all, broken) = marks.list().await?;
        if all.is_empty() && broken.is_empty() {
            say(&format!("no marks in {}", state_dir.display()))?;
        }
        for listed in all {
            let worth = if listed.counts {
                "counts"
            } else {
                "counts no more: the device has left since, or the machine was started anew"
            };
            say(&format!(
                "{} {}: {worth}",
                listed.disk, listed.mark.appearance
            ))?;
        }
        for one in &broken {
            say(&chain(one))?;
        }
        anyhow::ensure!(broken.is_empty(), "not every mark can be read");
        return Ok(());
    }
    let disk = args.disk.context("a disk is wanted")?;
    if args.remove {
        return say(&if marks.remove(&disk).await? {
            format!("the mark of {disk} is removed")
        } else {
            format!("{disk} had no mark in {}", state_dir.display())
        });
    }
    let device = args.device.context("a device is wanted")?;
    let device = marks.put(&disk, &device).await?;
    say(&format!(
        "{disk} is {device}, until that leaves or the machine is started anew"
    ))
}

fn say(line: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{line}").context("cannot print")
}

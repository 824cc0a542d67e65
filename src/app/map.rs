//! `diskplugin map`: maps a device that has no serial to a disk.

use std::io::Write;
use std::sync::Arc;

use anyhow::Context;

use crate::base::error_chain;
use crate::cli;
use crate::host::{Linux, ProcessExec, Roots};
use crate::node::Mappings;

pub(crate) async fn run(args: cli::MapDevice) -> anyhow::Result<()> {
    let host = Arc::new(Linux::new(Arc::new(ProcessExec), Roots::default()));
    let state_dir = args.state_dir;
    let mappings = Mappings::new(host, state_dir.clone());
    if args.list {
        let (all, broken) = mappings.list().await?;
        if all.is_empty() && broken.is_empty() {
            print_line(&format!("no mappings in {}", state_dir.display()))?;
        }
        for listed in all {
            let validity = if listed.is_valid {
                "valid"
            } else {
                "invalid: the device was detached, or the machine was restarted"
            };
            print_line(&format!(
                "{} {}: {validity}",
                listed.disk, listed.mapping.incarnation
            ))?;
        }
        for error in &broken {
            print_line(&error_chain(error))?;
        }
        anyhow::ensure!(broken.is_empty(), "some mappings are unreadable");
        return Ok(());
    }
    let disk = args.disk.context("the disk is required")?;
    if args.remove {
        return print_line(&if mappings.remove(&disk).await? {
            format!("mapping of {disk} removed")
        } else {
            format!("{disk} has no mapping in {}", state_dir.display())
        });
    }
    let device = args.device.context("the device is required")?;
    let device = mappings.add(&disk, &device).await?;
    print_line(&format!(
        "{disk} is mapped to {device} until the device is detached or the machine restarts"
    ))
}

fn print_line(line: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{line}").context("cannot print")
}

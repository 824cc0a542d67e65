//! `diskplugin mock-cloud`: the fake ECS API over HTTP.

use std::ffi::OsStr;
use std::io::Write;
use std::net::TcpListener;
use std::sync::Arc;

use anyhow::Context;
use async_trait::async_trait;
use fake_ecs::{Backing, Cloud, CommandError, Options, RunCommand, SystemClock, introduction};

use super::{signal, user};
use crate::base::Deadline;
use crate::cli;
use crate::linux::{Command, Exec, ProcessExec};

pub(crate) async fn run(args: cli::MockCloud) -> anyhow::Result<()> {
    let stop = signal::stop()?;
    let options = Options {
        region: args.region.to_string(),
        ..args.mock
    };
    let listener = TcpListener::bind(args.listen).with_context(|| format!("cannot listen on {}", args.listen))?;
    let cloud = start(&options, listener).await?;
    let printed = write!(std::io::stdout(), "{}", introduction(&cloud, &options, args.listen));
    // With a closed output, as behind `head`, it exits and cleans up.
    if printed.is_ok() {
        stop.await;
    }
    cloud.shutdown().await?;
    printed.context("cannot print")
}

/// Runs the commands of the fake cloud as those of the node plugin: no process starts while a device is opened
/// exclusively.
#[derive(Debug)]
struct Commands;

#[async_trait]
impl RunCommand for Commands {
    async fn run(&self, program: &str, arguments: &[&OsStr]) -> Result<String, CommandError> {
        let command = Command::new(program).args(arguments);
        // The caller has a timeout.
        let output = ProcessExec.run(&command, Deadline::never()).await?;
        Ok(command.check_exit_code(output)?.stdout)
    }
}

/// Starts a fake cloud that uses the system clock.
pub(crate) async fn start(options: &Options, listener: TcpListener) -> anyhow::Result<Cloud> {
    anyhow::ensure!(
        options.back_with == Backing::None || user::is_root(),
        "--back-with loop requires root, for loop devices"
    );
    let cloud = Cloud::start(options, Arc::new(SystemClock), Arc::new(Commands), listener).await;
    cloud.context("cannot start the fake cloud")
}

//! `diskplugin mock-cloud`: the fake ECS API over HTTP.

use std::ffi::OsStr;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use anyhow::Context;
use async_trait::async_trait;
use fake_ecs::options::{DEFAULT_KEY, DEFAULT_SECRET};
use fake_ecs::{Backing, Cloud, CommandError, Options, RunCommand, SystemClock};

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

/// Endpoints and credentials of the fake cloud. Only the default secret, which protects nothing, is shown.
fn introduction(cloud: &Cloud, options: &Options, listen: SocketAddr) -> String {
    let endpoint = cloud.endpoint().unwrap_or_default();
    let mut lines = vec![
        format!("fake cloud of region {} at {endpoint}", options.region),
        format!("  zones          {}", options.zones().join(", ")),
        control_path(endpoint, listen),
    ];
    for node in cloud.nodes() {
        lines.push(format!("  node           {} in {}", node.id, node.zone));
        let metadata = cloud.metadata_endpoint(&node.id).unwrap_or_default();
        lines.push(format!("                 --metadata-endpoint {metadata}"));
        if let Some(directory) = cloud.device_dir(&node.id) {
            let directory = directory.display();
            lines.push(format!("                 --device-dir {directory}"));
        }
    }
    let key = match options.access_key_id.expose() {
        DEFAULT_KEY => DEFAULT_KEY,
        _ => "(as given by --access-key-id)",
    };
    let secret = match options.access_key_secret.expose() {
        DEFAULT_SECRET => DEFAULT_SECRET,
        _ => "(as given by --access-key-secret)",
    };
    lines.push(format!("  driver         ACCESS_KEY_ID={key}"));
    lines.push(format!("                 ACCESS_KEY_SECRET={secret}"));
    lines.push(format!("                 --ecs-endpoint {endpoint}"));
    lines.join("\n") + "\n"
}

fn control_path(endpoint: &str, listen: SocketAddr) -> String {
    if !listen.ip().is_loopback() {
        return format!(
            "  control path   not served on {listen}: it has no authentication; listen on a loopback address to use it"
        );
    }
    format!(
        "  state, calls   {endpoint}/_control/state {endpoint}/_control/calls\n  \
         configuration  {endpoint}/_control/config (GET, PATCH)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_path_is_shown_only_if_served() {
        let shown = |listen: &str| control_path("http://x", listen.parse().unwrap());
        assert!(shown("127.0.0.1:8480").contains("http://x/_control/state"));
        assert!(shown("[::1]:8480").contains("\n  configuration  http://x/_control/config"));
        assert!(!shown("0.0.0.0:8480").contains("http://x/_control"));
    }
}

//! Flags of the CSI server of a role.

use std::time::Duration;

use clap::Args;

use super::parse::duration;
use super::{DriverArgs, HttpArgs};
use crate::csi::socket::Endpoint;

/// Settings of the CSI server of a role.
#[derive(Debug, Args)]
pub struct ServerArgs {
    #[command(flatten)]
    pub driver: DriverArgs,

    /// The CSI socket: unix:///absolute/path.
    #[arg(long, env = "DISKPLUGIN_ENDPOINT", default_value = "unix:///csi/csi.sock")]
    pub endpoint: Endpoint,

    /// How long running calls may take to finish after SIGTERM.
    #[arg(long, env = "DISKPLUGIN_DRAIN_TIMEOUT", default_value = "25s", value_parser = duration)]
    pub drain_timeout: Duration,

    #[command(flatten, next_help_heading = "Options for the HTTP port")]
    pub http: HttpArgs,
}

//! Flags of `mock-cloud` and `demo`.

use clap::Args;
use ecs::sign::Scheme;

use crate::model::RegionId;

#[derive(Debug, Args)]
pub struct MockCloud {
    /// Address to listen on. The control path has no authentication and is served
    /// only on a loopback address.
    #[arg(long, env = "DISKPLUGIN_LISTEN", default_value = "127.0.0.1:8480")]
    pub listen: std::net::SocketAddr,
    /// Region that the fake cloud simulates.
    #[arg(long, env = "DISKPLUGIN_REGION", default_value = "cn-beijing")]
    pub region: RegionId,
    #[command(flatten)]
    pub mock: fake_ecs::Options,
}

#[derive(Debug, Args)]
pub struct Demo {
    /// Filesystem of the volume. Default: ext4 if this machine can grow a mounted one, otherwise xfs.
    #[arg(long)]
    pub fs_type: Option<crate::model::Filesystem>,
    /// Signature version of cloud requests.
    #[arg(long, env = "DISKPLUGIN_SIGNATURE", value_enum, default_value_t)]
    pub signature: Scheme,
    /// Keep everything running at the end and print the endpoints, until Ctrl-C.
    #[arg(long)]
    pub keep: bool,
}

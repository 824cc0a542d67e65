//! Flags of `all-in-one`.

use clap::{Args, ValueEnum};

use super::{CloudArgs, ControllerArgs, LocationArgs, NodeArgs, OwnerArgs, PageArgs, ServerArgs};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum CloudKind {
    /// The cloud of the region, or of `--ecs-endpoint`.
    #[default]
    Real,
    /// An embedded fake cloud.
    #[cfg(feature = "mock-cloud")]
    Mock,
}

#[derive(Debug, Args)]
pub struct AllInOne {
    #[command(flatten)]
    pub server: ServerArgs,
    #[command(flatten)]
    pub location: LocationArgs,
    #[command(flatten)]
    pub cloud: CloudArgs,
    #[command(flatten)]
    pub owner: OwnerArgs,
    #[command(flatten)]
    pub controller: ControllerArgs,
    #[command(flatten, next_help_heading = "Options for the HTTP port")]
    pub pages: PageArgs,
    #[command(flatten)]
    pub node: NodeArgs,
    /// Cloud to use.
    #[arg(long = "cloud", env = "DISKPLUGIN_CLOUD", value_enum, default_value_t)]
    pub cloud_kind: CloudKind,
    #[cfg(feature = "mock-cloud")]
    #[command(flatten, next_help_heading = "With --cloud mock")]
    pub mock: fake_ecs::Options,
}

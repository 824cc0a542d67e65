//! Flags of `all-in-one`.

use clap::{Args, ValueEnum};

use super::{ControllerRoleArgs, NodeArgs};

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
    pub common: ControllerRoleArgs,
    #[command(flatten)]
    pub node: NodeArgs,
    /// Cloud to use.
    #[arg(long = "cloud", env = "DISKPLUGIN_CLOUD", value_enum, default_value_t)]
    pub cloud_kind: CloudKind,
    #[cfg(feature = "mock-cloud")]
    #[command(flatten, next_help_heading = "With --cloud mock")]
    pub mock: fake_ecs::Options,
}

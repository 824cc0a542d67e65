//! Flags of `bundle`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{ProcessArgs, duration};

#[derive(Debug, Args)]
pub struct Bundle {
    /// The archive to write, such as diskplugin.tar.gz. It must not exist.
    #[arg(long)]
    pub out: PathBuf,

    /// Volume whose objects and histories are included, repeatable: disk ID, name of a PersistentVolume, or
    /// NAMESPACE/NAME of a PersistentVolumeClaim.
    #[arg(long)]
    pub volume: Vec<String>,

    /// Age of the oldest log lines.
    #[arg(long, default_value = "1h", value_parser = duration)]
    pub since: Duration,

    #[command(flatten)]
    pub processes: ProcessArgs,
}

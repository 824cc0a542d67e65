//! Flags of `bundle`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::cli::parse::duration;
use crate::ops::process::ProcessArgs;

#[derive(Debug, Args)]
pub struct Flags {
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

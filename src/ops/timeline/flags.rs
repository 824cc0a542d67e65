//! Flags of `timeline`.

use clap::Args;

use crate::cli::OutputFormat;
use crate::ops::process::ProcessArgs;

#[derive(Debug, Args)]
pub struct Flags {
    /// Disk ID, name of a PersistentVolume, or NAMESPACE/NAME of a PersistentVolumeClaim.
    pub volume: String,

    #[command(flatten)]
    pub processes: ProcessArgs,

    /// Format of the output.
    #[arg(long, value_enum, default_value_t)]
    pub output: OutputFormat,
}

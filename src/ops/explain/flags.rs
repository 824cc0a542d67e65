//! Flags of `explain`.

use clap::Args;

use crate::cli::{CloudArgs, DriverArgs, LocationArgs, OutputFormat};
use crate::model::{Bytes, quantity};

#[derive(Debug, Args)]
pub struct Flags {
    /// YAML files with classes and claims; - is standard input. A claim is explained with the classes that it names, if
    /// they are in one of the files.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<String>,

    #[command(flatten)]
    pub driver: DriverArgs,

    /// Size of a volume of a class without a claim, such as 35Gi.
    #[arg(long, default_value = "100Gi", value_parser = size)]
    pub size: Bytes,

    /// Query the stock of the region, and show zones and categories in the order in which they would be tried. Requires
    /// credentials.
    #[arg(long)]
    pub live: bool,

    /// Format of the output.
    #[arg(long, value_enum, default_value_t)]
    pub output: OutputFormat,

    #[command(flatten, next_help_heading = "Options for --live")]
    pub location: LocationArgs,

    #[command(flatten, next_help_heading = "Options for --live")]
    pub cloud: CloudArgs,
}

/// A number without a unit is bytes, as in a claim, and most probably not meant.
fn size(text: &str) -> Result<Bytes, String> {
    match quantity::parse(text) {
        Ok(size) if size.0 >= 1 << 20 => Ok(size),
        Ok(_) => Err("allowed: a size of 1Mi or more, such as 35Gi".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

//! The format of what a command prints.

use clap::ValueEnum;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum OutputFormat {
    /// Text for people.
    #[default]
    Table,
    /// One JSON document for programs.
    Json,
}

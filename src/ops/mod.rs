//! The commands of operators, one folder each: its flags, what it reads, what it concludes, and the text. They change
//! something only if a flag requests it.

use std::fmt::Display;
use std::io::Write;

use anyhow::Context;

pub mod bundle;
mod cloud;
pub mod doctor;
pub mod explain;
mod kubeconfig;
pub mod orphans;
mod process;
pub(crate) mod process_client;
pub mod timeline;

pub use cloud::{CloudClient, Connect};

/// Prints the result of a command. A closed output is an error.
fn print(text: impl Display) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{text}").context("cannot print")
}

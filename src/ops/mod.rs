//! The commands of operators, one folder each: its flags, what it reads, what it concludes, and the text. They change
//! something only if a flag requests it.

use std::fmt::Display;
use std::io::Write;
use std::sync::Arc;

use anyhow::Context;
use comfy_table::{ColumnConstraint, Table, presets};
use ecs::Client;
use ecs::credential::CredentialProvider;
use ecs::metadata::Metadata;

use crate::cli::CloudArgs;
use crate::model::RegionId;

pub mod bundle;
pub mod doctor;
pub mod explain;
pub mod import;
mod kubeconfig;
pub mod orphans;
mod process;
pub(crate) mod process_client;
pub mod timeline;

/// A client and its credentials.
#[derive(Debug)]
pub struct CloudClient {
    pub ecs: Arc<Client>,
    pub credentials: Arc<dyn CredentialProvider>,
}

/// Creates the client that the flags describe. `app` selects the source of its credentials.
pub type Connect = fn(CloudArgs, Metadata, &RegionId) -> anyhow::Result<CloudClient>;

/// Prints the result of a command. A closed output is an error.
fn print(text: impl Display) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{text}").context("cannot print")
}

/// The name of a value, as in flags and JSON.
pub(crate) fn value_name(value: &impl clap::ValueEnum) -> String {
    let value = value.to_possible_value().expect("no value is hidden");
    value.get_name().to_owned()
}

/// The rows in columns, of which empty ones are hidden, without spaces at the ends of lines.
fn text_table<const COLUMNS: usize>(
    header: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
) -> String {
    let rows: Vec<_> = rows.into_iter().collect();
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_header(header)
        .add_rows(rows.clone());
    for (n, column) in table.column_iter_mut().enumerate() {
        if rows.iter().all(|row| row[n].is_empty()) {
            column.set_constraint(ColumnConstraint::Hidden);
        }
    }
    let lines: Vec<_> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

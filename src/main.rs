//! Entry point: parses the command line, starts telemetry and the runtime, runs the role.

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use diskplugin::app;
use diskplugin::cli::Cli;

/// A wrong command line (`EX_USAGE` of sysexits.h).
const USAGE: u8 = 64;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Nothing can be done about a closed terminal.
            let _ = error.print();
            return match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
                _ => ExitCode::from(USAGE),
            };
        }
    };
    app::run(cli)
}

//! Parses the command line, and prints why no role runs.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{FromArgMatches, Parser};

use super::kubectl;
use super::program::Cli;
use crate::cli::LOG_FORMAT;

/// Exit code of an invalid command line (`EX_USAGE` of sysexits.h).
const USAGE: u8 = 64;

/// The command line of this process.
///
/// # Errors
///
/// The exit code of a process that has no role to run: help was requested, or a flag is invalid. The message has been
/// printed.
pub fn parse<P: Parser>() -> Result<P, ExitCode> {
    P::try_parse().map_err(|error| ended(&error))
}

/// The command line of `diskplugin`, or of the kubectl plugin if the program has its name.
///
/// # Errors
///
/// As [`parse`].
pub fn parse_program() -> Result<Cli, ExitCode> {
    let mut args = std::env::args_os();
    if !kubectl::is_plugin(args.next().as_deref()) {
        return parse();
    }
    let mut command = kubectl::command();
    let matches = command.try_get_matches_from_mut(std::env::args_os());
    let cli = matches.and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = cli.map_err(|error| ended(&error.format(&mut command)))?;
    let program = kubectl::PLUGIN;
    Ok(Cli { program, ..cli })
}

/// Prints why no role runs.
fn ended(error: &clap::Error) -> ExitCode {
    // A closed terminal cannot be handled.
    let _ = match error.kind() {
        // The complete help text, which has no reason in it.
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            error.print()
        }
        _ => {
            let is_json = wants_json(std::env::args_os(), std::env::var_os(LOG_FORMAT));
            writeln!(std::io::stderr(), "{}", message(error, is_json))
        }
    };
    match error.use_stderr() {
        true => ExitCode::from(USAGE),
        false => ExitCode::SUCCESS,
    }
}

/// The usage hints and then the reason: Kubernetes shows the last line of a container that does not start.
fn message(error: &clap::Error, is_json: bool) -> String {
    let text = error.render().to_string();
    let (reason, usage) = text.split_once("\n\n").unwrap_or((&text, ""));
    let reason: Vec<&str> = reason.lines().map(str::trim).collect();
    let reason = reason.join(" ");
    match usage.trim() {
        _ if is_json => serde_json::json!({"level": "ERROR", "message": reason}).to_string(),
        "" => reason,
        usage => format!("{usage}\n\n{reason}"),
    }
}

/// Whether JSON lines are wanted. The command line is invalid, so the flag is searched in the raw arguments.
fn wants_json(args: impl IntoIterator<Item = OsString>, variable: Option<OsString>) -> bool {
    let args: Vec<_> = args.into_iter().collect();
    let given = args.iter().enumerate().find_map(|(at, arg)| {
        let arg = arg.to_str()?;
        match arg.strip_prefix("--log-format")? {
            "" => args.get(at + 1)?.to_str(),
            value => value.strip_prefix('='),
        }
    });
    match given {
        Some(given) => given == "json",
        None => variable.is_some_and(|value| value == "json"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_takes_precedence_over_the_variable() {
        let wants = |line: &str, variable: Option<&str>| {
            let args = line.split(' ').map(OsString::from);
            wants_json(args, variable.map(OsString::from))
        };
        assert!(wants("diskplugin node --log-format=json", None));
        assert!(wants("diskplugin node --log-format json --nope", None));
        assert!(wants("diskplugin --nope", Some("json")));
        assert!(!wants("diskplugin --log-format text", Some("json")));
        assert!(!wants("diskplugin --log-formats=json", None));
    }
}

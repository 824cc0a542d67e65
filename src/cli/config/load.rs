//! Reads the command line together with the configuration file that it names.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, Parser};

use super::{ConfigFile, InvalidConfig, VARIABLE, flags};

/// Error of reading the command line and the configuration file.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum Failed {
    /// The command line is invalid, or requests help.
    #[error(transparent)]
    CommandLine(#[from] clap::Error),
    #[error(transparent)]
    Config(#[from] InvalidConfig),
}

/// The command line of this process, completed with the settings of its configuration file, and that file.
///
/// # Errors
/// The command line or the file is invalid.
pub(in crate::cli) fn load<P: Parser>() -> Result<(P, Option<ConfigFile>), Failed> {
    let mut args: Vec<_> = std::env::args_os().collect();
    if !may_name_file(&args) {
        return Ok((P::try_parse_from(args)?, None));
    }
    let mut command = P::command();
    command.build();
    let Some((path, role, matches)) = config(&command, &args) else {
        return Ok((P::try_parse_from(args)?, None));
    };
    let (mut file, flags) = ConfigFile::read(&path, &[role])?;
    let given = flags::allowed(role).filter(|arg| is_given(&matches, arg));
    file.override_with(given.map(flags::key).collect());
    let used = flags
        .into_iter()
        .filter(|flag| file.is_effective(&flag.key));
    args.extend(used.flat_map(|flag| flag.args));
    Ok((P::try_parse_from(args)?, Some(file)))
}

/// Whether there may be a file. A second definition of the command line would be kept in memory.
fn may_name_file(args: &[OsString]) -> bool {
    let names_file = |arg: &OsString| arg.as_encoded_bytes().starts_with(b"--config-file");
    args.iter().any(names_file) || std::env::var_os(VARIABLE).is_some()
}

/// The file that the command line or the environment names, the role, and its flags as far as they are valid without the
/// file.
fn config<'a>(
    command: &'a Command,
    args: &[OsString],
) -> Option<(PathBuf, &'a Command, ArgMatches)> {
    let lenient = command.clone().ignore_errors(true);
    let mut matches = lenient.try_get_matches_from(args).ok()?;
    let (name, matches) = matches.remove_subcommand()?;
    let path = matches.try_get_one::<PathBuf>("config_file").ok()??.clone();
    Some((path, command.find_subcommand(name)?, matches))
}

/// Whether a flag is on the command line or in the environment.
fn is_given(matches: &ArgMatches, arg: &Arg) -> bool {
    let in_environment = |name: &OsStr| std::env::var_os(name).is_some();
    matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
        || arg.get_env().is_some_and(in_environment)
}

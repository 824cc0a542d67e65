//! The kubectl plugin: `diskplugin` under the name `kubectl-diskplugin` has only the commands of operators, as
//! `kubectl diskplugin COMMAND`.

use std::ffi::OsStr;
use std::path::Path;

use clap::{Command, CommandFactory};

use super::program::Cli;

/// The name by which kubectl finds the program.
const FILE: &str = "kubectl-diskplugin";

/// The program in usage lines and errors.
pub const PLUGIN: &str = "kubectl diskplugin";

/// The commands of operators: they do not serve anything, and run on any machine.
pub const OPERATOR_COMMANDS: &[&str] = &["bundle", "doctor", "explain", "import", "orphans", "timeline"];

/// Whether the program was started as the plugin. kubectl and krew keep this file name.
pub(super) fn is_plugin(program: Option<&OsStr>) -> bool {
    program.is_some_and(|program| Path::new(program).file_name() == Some(OsStr::new(FILE)))
}

/// The command line of the plugin.
pub(super) fn command() -> Command {
    let complete = Cli::command();
    let commands = complete.get_subcommands();
    let offered = commands.filter(|command| OPERATOR_COMMANDS.contains(&command.get_name()));
    Command::new(FILE)
        .bin_name(PLUGIN)
        .version(env!("CARGO_PKG_VERSION"))
        .about("Commands for operators of the CSI driver for Alibaba-style ECS cloud disks")
        .arg_required_else_help(true)
        .subcommand_required(true)
        .args(complete.get_arguments().cloned())
        .subcommands(offered.cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plugin_is_recognized_by_its_file_name() {
        for (program, expected) in [
            ("kubectl-diskplugin", true),
            ("/root/.krew/bin/kubectl-diskplugin", true),
            ("/usr/bin/diskplugin", false),
            ("kubectl-diskplugin/diskplugin", false),
        ] {
            assert_eq!(is_plugin(Some(OsStr::new(program))), expected, "{program}");
        }
        assert!(!is_plugin(None));
    }

    #[test]
    fn the_plugin_offers_exactly_the_commands_of_operators() {
        let mut command = command();
        let mut offered: Vec<_> = command.get_subcommands().map(Command::get_name).collect();
        offered.sort_unstable();
        assert_eq!(offered, OPERATOR_COMMANDS);
        let usage = command.render_usage().to_string();
        assert!(usage.contains("kubectl diskplugin"), "{usage}");
        command.debug_assert();
    }
}

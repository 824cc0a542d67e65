//! `--help` documents every flag.

use clap::{Arg, Command, CommandFactory as _};
use diskplugin::app::Cli;

use crate::common::process::diskplugin;

#[tokio::test]
async fn the_help_of_a_role_documents_exactly_its_flags() {
    let command = Cli::command();
    let of = |command: &Command| {
        let names = command.get_arguments().filter_map(Arg::get_long);
        names.map(|name| format!("--{name}")).collect::<Vec<_>>()
    };
    let everywhere = of(&command);
    for role in command.get_subcommands() {
        let ended = diskplugin([role.get_name(), "--help"]).ended().await;
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        let mut wanted = [of(role), everywhere.clone(), vec!["--help".to_owned()]].concat();
        wanted.sort_unstable();
        assert_eq!(shown(&ended.stdout), wanted, "{}", role.get_name());
    }
}

#[tokio::test]
async fn help_and_version_succeed() {
    for line in [["--help"], ["--version"]] {
        let ended = diskplugin(line).ended().await;
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        assert!(ended.stdout.contains("diskplugin"), "{}", ended.stdout);
    }
}

/// The flags in a help text, sorted. Each begins a line, and its description is on the next line.
fn shown(help: &str) -> Vec<&str> {
    let lines: Vec<_> = help.lines().collect();
    let mut flags: Vec<_> = lines
        .windows(2)
        .filter_map(|pair| {
            let flag = pair[0].split_whitespace().find(|word| word.starts_with("--"))?;
            let begins = pair[0].trim_start().starts_with(['-']) && pair[0].starts_with("  ");
            let is_flag = begins && !pair[0].trim_start().starts_with("- ");
            assert!(!is_flag || !pair[1].trim().is_empty(), "no description of {flag}");
            is_flag.then_some(flag)
        })
        .collect();
    flags.sort_unstable();
    flags
}

//! `docs/reference/command-line.md` lists the flags of `--help`.

use clap::{Arg, Command, CommandFactory};
use diskplugin::app::{Cli, OPERATOR_COMMANDS};

use crate::page::{list_item, read};

const PAGE: &str = "docs/reference/command-line.md";
const ROLES: [&str; 12] = [
    "controller",
    "node",
    "all-in-one",
    "explain",
    "timeline",
    "bundle",
    "doctor",
    "orphans",
    "import",
    "pre-stop-hook",
    "mock-cloud",
    "demo",
];

/// A flag and the roles that share its definition.
#[derive(Debug)]
struct Flag {
    name: String,
    description: String,
    roles: Vec<&'static str>,
}

#[test]
fn the_reference_has_every_flag_of_every_role() {
    let (own, fake) = lists();
    let page = read(PAGE);
    for (name, wanted) in [("roles", own), ("fake", fake)] {
        let begin = format!("<!-- flags of the {name} -->\n\n");
        let rest = page.split_once(&begin).expect("the page has the comment").1;
        let list = rest.split("\n\n").next().unwrap_or_default().trim_end();
        assert!(
            list == wanted,
            "{PAGE} differs from --help; the list of the {name} should be\n\n{wanted}\n"
        );
    }
}

#[test]
fn the_reference_has_every_role() {
    let command = Cli::command();
    let roles: Vec<_> = command.get_subcommands().map(Command::get_name).collect();
    assert_eq!(roles, ROLES);
    let page = read(PAGE);
    for role in command.get_subcommands() {
        let about = role.get_about().unwrap().to_string();
        let row = format!("| `{}` | {about} |", role.get_name());
        assert!(page.contains(&row), "{PAGE} lacks the row\n{row}");
    }
}

#[test]
fn the_guide_has_every_command_of_the_kubectl_plugin() {
    let page = read("docs/guides/kubectl-plugin.md");
    for command in OPERATOR_COMMANDS {
        let row = format!("| `{command}` | ");
        assert!(page.contains(&row), "no row {row}");
    }
}

/// The lists of the roles' own flags and of the fake cloud's flags.
fn lists() -> (String, String) {
    let mut command = Cli::command();
    command.build();
    let all_in_one = command.find_subcommand("all-in-one").unwrap();
    let fake: Vec<_> = all_in_one
        .get_arguments()
        .filter(|arg| arg.get_help_heading() == Some("With --cloud mock"))
        .map(|arg| arg.get_id().clone())
        .collect();
    let (mut own_flags, mut fake_flags) = (Vec::new(), Vec::new());
    for name in ROLES {
        let role = command.find_subcommand(name).unwrap();
        for arg in role.get_arguments().filter(|arg| is_flag(arg)) {
            let flags = if fake.contains(arg.get_id()) {
                &mut fake_flags
            } else {
                &mut own_flags
            };
            add(flags, arg, name);
        }
    }
    (list(&own_flags), list(&fake_flags))
}

/// Positional arguments are documented in the text.
fn is_flag(arg: &Arg) -> bool {
    arg.get_id() != "help" && !arg.is_positional()
}

fn add(flags: &mut Vec<Flag>, arg: &Arg, role: &'static str) {
    let name = format!("--{}", arg.get_long().expect("only long flags"));
    let description = description(arg);
    let same = |flag: &&mut Flag| flag.name == name && flag.description == description;
    match flags.iter_mut().find(same) {
        Some(flag) => flag.roles.push(role),
        None => flags.push(Flag {
            name,
            description,
            roles: vec![role],
        }),
    }
}

/// The help of a flag, with its values, default and environment variable.
fn description(arg: &Arg) -> String {
    let help = arg.get_help().expect("every flag has help");
    let mut sentences = vec![format!("{help}.")];
    if arg.get_action().takes_values() {
        for value in arg.get_possible_values() {
            let help = value.get_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            sentences.push(format!("`{}`: {help}.", value.get_name()));
        }
        for default in arg.get_default_values() {
            sentences.push(format!("Default: `{}`.", default.display()));
        }
    }
    if let Some(variable) = arg.get_env() {
        sentences.push(format!("Environment: `{}`.", variable.display()));
    }
    sentences.join(" ").replace('\n', " ")
}

fn list(flags: &[Flag]) -> String {
    let item = |flag: &Flag| {
        let roles = flag.roles.join(", ");
        list_item(&format!("* `{}` ({roles}): {}", flag.name, flag.description))
    };
    flags.iter().map(item).collect::<Vec<_>>().join("\n")
}

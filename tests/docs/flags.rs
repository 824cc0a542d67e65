//! The table of flags is the one that `--help` shows.

use clap::{Arg, Command, CommandFactory};
use diskplugin::cli::Cli;

use crate::page::read;

const PAGE: &str = "docs/reference/command-line.md";
const ROLES: [&str; 6] = [
    "controller",
    "node",
    "mark",
    "all-in-one",
    "mock-cloud",
    "demo",
];

/// A flag and the roles that have it in the same way.
#[derive(Debug)]
struct Row {
    cells: [String; 4],
    roles: Vec<&'static str>,
}

#[test]
fn the_reference_has_every_flag_of_every_role() {
    let (own, fake) = tables();
    let page = read(PAGE);
    for (name, wanted) in [("roles", own), ("fake", fake)] {
        let begin = format!("<!-- flags of the {name} -->\n\n");
        let rest = page.split_once(&begin).expect("the page has the mark").1;
        let table = rest.split("\n\n").next().unwrap_or_default().trim_end();
        assert!(
            table == wanted,
            "{PAGE} is not as --help; the table of the {name} should be\n\n{wanted}\n"
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

/// The roles' own flags, and those of the fake cloud.
fn tables() -> (String, String) {
    let mut command = Cli::command();
    command.build();
    let all_in_one = command.find_subcommand("all-in-one").unwrap();
    let fake: Vec<_> = all_in_one
        .get_arguments()
        .filter(|arg| arg.get_help_heading() == Some("With --cloud mock"))
        .map(|arg| arg.get_id().clone())
        .collect();
    let (mut own_rows, mut fake_rows) = (Vec::new(), Vec::new());
    for name in ROLES {
        let role = command.find_subcommand(name).unwrap();
        for arg in role.get_arguments().filter(|arg| is_flag(arg)) {
            let rows = if fake.contains(arg.get_id()) {
                &mut fake_rows
            } else {
                &mut own_rows
            };
            add(rows, cells(arg), name);
        }
    }
    (table(&own_rows), table(&fake_rows))
}

/// Not what is given without a name, which the usage shows.
fn is_flag(arg: &Arg) -> bool {
    arg.get_id() != "help" && !arg.is_positional()
}

fn add(rows: &mut Vec<Row>, cells: [String; 4], role: &'static str) {
    match rows.iter_mut().find(|row| row.cells == cells) {
        Some(row) => row.roles.push(role),
        None => rows.push(Row {
            cells,
            roles: vec![role],
        }),
    }
}

fn cells(arg: &Arg) -> [String; 4] {
    let code = |text: String| format!("`{text}`");
    let flag = code(format!("--{}", arg.get_long().expect("only long flags")));
    let variable = arg.get_env().map(|name| code(name.display().to_string()));
    let takes_value = arg.get_action().takes_values();
    let defaults = arg.get_default_values().iter().filter(|_| takes_value);
    let default = defaults.map(|text| code(text.display().to_string())).next();
    let mut meaning = arg.get_help().expect("every flag has help").to_string();
    if takes_value {
        for value in arg.get_possible_values() {
            let help = value.get_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            meaning.push_str(&format!("; `{}`: {help}", value.get_name()));
        }
    }
    let meaning = meaning.replace('|', "\\|").replace('\n', " ");
    [
        flag,
        meaning,
        default.unwrap_or_default(),
        variable.unwrap_or_default(),
    ]
}

fn table(rows: &[Row]) -> String {
    let mut lines = vec![
        "| flag | meaning | default | environment | roles |".to_owned(),
        "| --- | --- | --- | --- | --- |".to_owned(),
    ];
    for row in rows {
        let roles = row.roles.join(", ");
        let cells = row.cells.join(" | ").replace("|  |", "| |");
        lines.push(format!("| {cells} | {roles} |").replace("|  |", "| |"));
    }
    lines.join("\n")
}

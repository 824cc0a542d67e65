use std::collections::HashSet;

use clap::{Command, CommandFactory};

use super::flags::{allowed, key};
use super::*;
use crate::cli::{Cli, LogLevel};

fn command() -> Command {
    let mut command = Cli::command();
    command.build();
    command
}

fn write(content: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), content).unwrap();
    file
}

fn document(kind: &str, settings: &str) -> String {
    format!("apiVersion: {API_VERSION}\nkind: {kind}\n{settings}")
}

/// The flags that a file for the controller stands for.
fn flags(settings: &str) -> Result<Vec<String>, Vec<String>> {
    let file = write(&document("ControllerConfiguration", settings));
    let command = command();
    let role = command.find_subcommand("controller").unwrap();
    let (_, flags) = ConfigFile::read(file.path(), &[role]).map_err(|error| error.problems)?;
    let args = flags.into_iter().flat_map(|flag| flag.args);
    Ok(args.map(|arg| arg.into_string().unwrap()).collect())
}

/// The single problem of a file for the controller.
fn problem(settings: &str) -> String {
    let problems = flags(settings).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems[0].clone()
}

#[test]
fn every_flag_of_a_role_has_its_own_key() {
    let command = command();
    for (kind, role) in KINDS {
        let role = command.find_subcommand(role).unwrap();
        let keys: Vec<_> = allowed(role).map(key).collect();
        let unique: HashSet<_> = keys.iter().collect();
        assert_eq!(keys.len(), unique.len(), "{kind}");
        for known in ["drainTimeout", "httpTlsCertFile", "logFormat", "logLevel"] {
            assert!(keys.iter().any(|key| key == known), "{kind} lacks {known}");
        }
        assert!(!keys.iter().any(|key| key == "configFile"), "{kind}");
    }
}

#[test]
fn settings_become_flags_of_their_types() {
    let settings = "clusterId: \"007\"\ndrainTimeout: 5s\nevents: true\nstatusPage: false\n\
                    rateLimits: {DescribeDisks: 2.5, account: 20}\n";
    let mut flags = flags(settings).unwrap();
    flags.sort_unstable();
    let expected = [
        "--cluster-id=007",
        "--drain-timeout=5s",
        "--events",
        "--rate-limits=DescribeDisks=2.5,account=20",
    ];
    assert_eq!(flags, expected);
    assert_eq!(super::tests::flags("rateLimits: {}\n"), Ok(Vec::new()));
}

#[test]
fn unknown_keys_and_wrong_types_are_problems_with_what_is_allowed() {
    for (settings, expected) in [
        (
            "drainTimeOut: 5s",
            &["drainTimeOut: unknown key", "drainTimeout"][..],
        ),
        ("configFile: x", &["configFile: unknown key"]),
        ("clusterId: 007", &["clusterId: is 7", "in quotes"]),
        ("clusterId: null", &["clusterId: is null"]),
        ("clusterId: [a]", &["clusterId", "one string"]),
        ("events: \"yes\"", &["events", "true, false"]),
        (
            "drainTimeout: soon",
            &["drainTimeout: invalid value 'soon'", "such as 500ms, 25s"],
        ),
        ("network: moon", &["network: invalid value 'moon'", "vpc"]),
        ("rateLimits: 5", &["rateLimits", "a map"]),
        (
            "rateLimits: {'DescribeDisks=3,account': 5}",
            &["rateLimits", "is not an action"],
        ),
        (
            "logLevel: debgu",
            &["logLevel: invalid value 'debgu'", "info"],
        ),
        (
            "rateLimits: {DescribeDisks: fast}",
            &["rateLimits: DescribeDisks", "a number"],
        ),
        (
            "rateLimits: {DescribeDiscs: 5}",
            &["rateLimits", "DescribeDiscs", "DescribeDisks"],
        ),
        (
            "rateLimits: {DescribeDisks: 0}",
            &["rateLimits", "0.01 to 1000"],
        ),
        ("logLevel: loud=loud=loud", &["logLevel: invalid value"]),
        ("logLevel: info\nlogLevel: debug", &["logLevel", "uplicate"]),
    ] {
        let problem = problem(settings);
        for part in expected {
            assert!(problem.contains(part), "{settings}: {problem}");
        }
    }
}

#[test]
fn all_problems_of_a_file_are_reported() {
    let problems = flags("drainTimeout: soon\nnope: 1\nregion: [a]\n").unwrap_err();
    let keys: Vec<_> = problems
        .iter()
        .map(|line| line.split(':').next().unwrap())
        .collect();
    assert_eq!(keys, ["drainTimeout", "nope", "region"]);
}

#[test]
fn a_file_names_its_version_and_the_kind_of_its_role() {
    let command = command();
    let node = command.find_subcommand("node").unwrap();
    for (content, expected) in [
        ("", "apiVersion: is missing"),
        ("kind: NodeConfiguration\n", "apiVersion: is missing"),
        (
            &document("Node", ""),
            "kind: is \"Node\"; allowed: ControllerConfiguration",
        ),
        (
            &document("ControllerConfiguration", ""),
            "allowed: NodeConfiguration",
        ),
        (&document("NodeConfiguration", "zone: a\nzone: b\n"), "zone"),
        ("- a\n", ""),
        ("a: [", ""),
    ] {
        let file = write(content);
        let error = ConfigFile::read(file.path(), &[node])
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{content:?}: {error}");
        assert!(error.contains(file.path().to_str().unwrap()), "{error}");
    }
    let missing = ConfigFile::read("/nowhere/config.yaml".as_ref(), &[node]).unwrap_err();
    assert!(missing.to_string().contains("cannot be read"), "{missing}");
}

#[test]
fn a_reload_adopts_what_it_may_and_names_what_needs_a_restart() {
    let before = document(
        "ControllerConfiguration",
        "logLevel: info\nzone: a\nregion: r\n",
    );
    let file = write(&before);
    let mut config = ConfigFile::check(file.path()).unwrap();
    assert_eq!(config.role(), "controller");
    let after = "logLevel: debug\nrateLimits: {account: 5}\nzone: b\nclusterId: c\n";
    let reloaded = config
        .reload(&document("ControllerConfiguration", after))
        .unwrap();
    let debug: LogLevel = "debug".parse().unwrap();
    assert_eq!(reloaded.log_level, Some(Some(debug)));
    let limits = reloaded.rate_limits.unwrap();
    assert_eq!(
        (limits[0].action, limits[0].calls_per_second),
        ("account", 5.0)
    );
    assert_eq!(reloaded.after_restart, ["region", "zone", "clusterId"]);
    // Removed settings return to their defaults.
    let reloaded = config
        .reload(&document("ControllerConfiguration", ""))
        .unwrap();
    assert_eq!(reloaded.log_level, Some(None));
    assert_eq!(reloaded.rate_limits, Some(Vec::new()));
}

#[test]
fn an_invalid_reload_changes_nothing() {
    let file = write(&document("NodeConfiguration", "zone: a\n"));
    let mut config = ConfigFile::check(file.path()).unwrap();
    let invalid = document("NodeConfiguration", "zone: b\nnope: 1\n");
    assert!(config.reload(&invalid).is_err());
    let reloaded = config
        .reload(&document("NodeConfiguration", "zone: a\n"))
        .unwrap();
    assert!(reloaded.after_restart.is_empty());
    assert_eq!(reloaded.rate_limits, None, "a node makes no cloud call");
}

#[test]
fn overridden_settings_are_not_adopted() {
    let file = write(&document("ControllerConfiguration", ""));
    let mut config = ConfigFile::check(file.path()).unwrap();
    let given = ["logLevel", "rateLimits", "zone"];
    config.override_with(given.map(str::to_owned).into());
    let after = document("ControllerConfiguration", "logLevel: debug\nzone: a\n");
    let reloaded = config.reload(&after).unwrap();
    assert_eq!((reloaded.log_level, reloaded.rate_limits), (None, None));
    assert!(reloaded.after_restart.is_empty());
    assert_eq!(reloaded.overridden, ["logLevel", "zone"]);
}

#[test]
fn settings_that_return_to_those_of_the_start_need_no_restart() {
    let file = write(&document("NodeConfiguration", "zone: a\n"));
    let mut config = ConfigFile::check(file.path()).unwrap();
    let mut pending = |settings| {
        let content = document("NodeConfiguration", settings);
        config.reload(&content).unwrap().after_restart
    };
    assert_eq!(pending("zone: b\n"), ["zone"]);
    assert_eq!(pending("# unchanged\nzone: b\n"), ["zone"]);
    assert!(pending("zone: a\n").is_empty());
}

#[test]
fn a_secret_in_a_wrong_place_is_not_printed() {
    for settings in [
        "accessKeySecret: hunter2\n",
        "accessKeySecret: hunter2\nregion: [\n",
    ] {
        let problems = flags(settings).unwrap_err().join("\n");
        assert!(!problems.contains("hunter2"), "{problems}");
    }
}

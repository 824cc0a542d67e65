//! The chart and the driver agree on the format of each value: a value that the driver refuses is refused by the chart
//! before anything is installed. `formats.json` has the values; `<64>` stands for 64 letters.

use std::collections::{BTreeMap, HashMap};

use clap::{Command, CommandFactory as _};
use diskplugin::app::{Cli, ControllerCli, NodeCli};
use diskplugin::csi::param::snapshot::SnapshotClass;
use diskplugin::csi::param::{Class, mutable};
use serde_json::{Value, json};

use crate::render::{arguments, list, read, strict, text, texts};
use crate::report;

/// Values with the flag or parameter, and the chart's values that contain them.
struct Row {
    at: String,
    value: String,
    chart: Value,
    /// Whether chart and driver must accept it.
    good: bool,
    /// Whether the driver accepts it.
    accepted: bool,
}

fn table() -> Value {
    let mut text = read("tests/helm/formats.json");
    for length in [63, 64, 65, 128, 129, 254, 255, 256] {
        text = text.replace(&format!("<{length}>"), &"a".repeat(length));
        text = text.replace(&format!("<ü{length}>"), &"ü".repeat(length));
    }
    serde_json::from_str(&text).unwrap()
}

fn program(role: &str) -> Command {
    match role {
        "node" => NodeCli::command(),
        "controller" => ControllerCli::command(),
        _ => Cli::command(),
    }
}

/// The values of a format, with whether they are good.
fn values(format: &Value) -> Vec<(&Value, bool)> {
    let of = |key, good| list(format, key).into_iter().map(move |value| (value, good));
    of("/good", true).chain(of("/bad", false)).collect()
}

/// Fails for each row whose value the chart or the driver treats otherwise; true if the rows were checked.
fn check(rows: &[Row]) -> bool {
    let inputs = rows.iter().map(|row| json!({"values": row.chart}));
    let Some(outputs) = strict("values", &[], inputs) else {
        return false;
    };
    report(rows.iter().zip(&outputs).filter_map(|(row, output)| {
        let chart = output["refused"].is_null() && output["problems"].is_null();
        let Row {
            at,
            value,
            good,
            accepted,
            ..
        } = row;
        (chart != *good || accepted != good).then(|| {
            format!(
                "{at}{value:?}: wanted {good}; chart: {chart} {}; driver: {accepted}",
                output["refused"]
            )
        })
    }));
    true
}

#[test]
fn chart_and_flags_accept_the_same_values() {
    let table = table();
    let mut rows = Vec::new();
    for format in list(&table, "/flags") {
        let path = text(format, "/value");
        let is_name = ["clusterId", "region", "zone", "driverName"].contains(&path);
        let names = list(&table, "/names")
            .into_iter()
            .filter(|_| is_name)
            .map(|name| (name, false));
        for flag in texts(format, "/flags") {
            let (role, flag) = flag.split_once(' ').unwrap();
            for (value, good) in values(format).into_iter().chain(names.clone()) {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let port = if path == "listenAddress" { ":9808" } else { "" };
                let arg = format!("{flag}{text}{port}");
                let accepted = program(role).try_get_matches_from(["diskplugin", role, &arg]).is_ok();
                let chart = path.rsplit('.').fold(value.clone(), |inner, key| json!({ key: inner }));
                rows.push(Row {
                    at: format!("{path}, {flag}"),
                    value: text,
                    chart,
                    good,
                    accepted,
                });
            }
        }
    }
    assert!(rows.len() > 400, "{}", rows.len());
    check(&rows);
}

/// No pod has this address, or kubelet's probes do not reach it.
#[test]
fn chart_refuses_addresses_that_only_the_flag_accepts() {
    let addresses = ["127.0.0.1", "[::1]", "192.0.2.7"];
    let inputs = addresses.map(|address| json!({"values": {"listenAddress": address}}));
    for output in strict("values", &[], inputs).into_iter().flatten() {
        assert!(
            output["refused"].as_str().unwrap().contains("/listenAddress"),
            "{output}"
        );
    }
}

/// The driver's error about the parameters of a class.
fn rejection(class: &str, parameters: [(&str, &str); 1]) -> Option<String> {
    let map: HashMap<_, _> = parameters
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    let error = match class {
        "storageClasses" => Class::read(&map).err(),
        "volumeSnapshotClasses" => SnapshotClass::read(&map).err(),
        "volumeGroupSnapshotClasses" => SnapshotClass::read_of_group(&map).err(),
        _ => mutable::read(&map).err(),
    };
    error.map(|error| error.to_string())
}

fn parameter(class: &str, key: &str, value: &str, good: bool) -> Row {
    Row {
        at: format!("{class} {key}="),
        value: value.to_owned(),
        chart: json!({class: [{"name": "c", "parameters": {key: value}}]}),
        good,
        accepted: rejection(class, [(key, value)]).is_none(),
    }
}

#[test]
fn chart_and_driver_accept_the_same_parameters() {
    let table = table();
    let mut rows = Vec::new();
    for row in list(&table, "/parameters") {
        let (class, key) = (text(row, "/0"), text(row, "/1"));
        rows.extend(texts(row, "/2").iter().map(|value| parameter(class, key, value, true)));
        rows.extend(texts(row, "/3").iter().map(|value| parameter(class, key, value, false)));
    }
    for class in [
        "storageClasses",
        "volumeSnapshotClasses",
        "volumeGroupSnapshotClasses",
        "volumeAttributesClasses",
    ] {
        // The error lists all names.
        let error = rejection(class, [("?", "")]).unwrap();
        let (_, names) = error.split_once("allowed: ").unwrap();
        let names = names.split([',', ' ']).filter(|name| !["", "and"].contains(name));
        let names = names.map(|name| name.replace("<key>", "a").replace('*', "a"));
        rows.extend(names.map(|name| {
            // A value that needs no other parameter.
            let known = ["cloud", "1", "PL1", "ext4", "none", "4096", "Delete", "cn-a", ""];
            let fits = known.iter().find(|value| rejection(class, [(&name, value)]).is_none());
            parameter(
                class,
                &name,
                fits.unwrap_or_else(|| panic!("no value of {name} is known")),
                true,
            )
        }));
    }
    assert!(rows.len() > 100, "{}", rows.len());
    check(&rows);
}

/// Values that the schema describes, generated: no object has a key twice or another error, and the driver accepts its
/// flags. Values that templates refuse are refused by name.
#[test]
fn generated_values_are_refused_or_work() {
    let Some(inputs) = strict("generate", &["20261127", "250"], []) else {
        return;
    };
    let outputs = strict("values", &[], inputs).unwrap();
    let mut counts: BTreeMap<bool, usize> = BTreeMap::new();
    report(outputs.iter().flat_map(|output| {
        *counts.entry(output["refused"].is_null()).or_default() += 1;
        let problems = list(output, "/problems").into_iter().map(Value::to_string);
        let flags = list(output, "/objects").into_iter().filter_map(invalid_flags);
        let found: Vec<String> = problems.chain(flags).collect();
        found
            .into_iter()
            .map(|problem| format!("{problem}\n    with {}", output["values"]))
    }));
    assert!(counts[&true] > 100 && counts[&false] > 20, "{counts:?}");
}

/// The driver's error about the flags of an object's containers.
fn invalid_flags(object: &Value) -> Option<String> {
    let pods = [
        "/spec/template/spec/containers",
        "/spec/template/spec/initContainers",
        "/spec/containers",
    ];
    let containers = pods.iter().flat_map(|pod| list(object, pod));
    let mut driver = containers.filter(|container| ["diskplugin", "doctor"].contains(&text(container, "/name")));
    driver.find_map(|container| {
        let args = arguments(container);
        let command = texts(container, "/command");
        let role = command.first().and_then(|path| path.strip_prefix("/diskplugin-"));
        let pod = args
            .contains(&"--leader-election")
            .then_some("--leader-election-identity=pod");
        let line = ["diskplugin"].into_iter().chain(args).chain(pod);
        let error = program(role.unwrap_or_default()).try_get_matches_from(line).err()?;
        Some(error.to_string())
    })
}

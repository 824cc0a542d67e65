//! The flags that the settings of a file stand for.

use std::any::TypeId;
use std::ffi::OsString;

use clap::builder::Resettable;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command};
use serde_json::Value;

use super::document::Settings;

/// A setting of the file as a flag of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flag {
    pub(super) key: String,
    /// Empty for a switch that is off.
    pub(super) args: Vec<OsString>,
}

/// The role's flags that may be in a file: not another file, and not the secret of the fake cloud.
pub(super) fn allowed(role: &Command) -> impl Iterator<Item = &Arg> {
    let excluded = ["help", "version", "config-file", "access-key-secret"];
    role.get_arguments()
        .filter(move |arg| arg.get_long().is_some_and(|long| !excluded.contains(&long)))
}

/// The key of a flag: its name in camel case.
pub(super) fn key(arg: &Arg) -> String {
    let mut words = arg.get_long().unwrap_or_default().split('-');
    let mut key = words.next().unwrap_or_default().to_owned();
    for word in words {
        let (first, rest) = word.split_at(word.len().min(1));
        key += &first.to_ascii_uppercase();
        key += rest;
    }
    key
}

/// The flags of the settings, or what is wrong with each invalid one.
pub(super) fn flags(role: &Command, settings: &Settings) -> Result<Vec<Flag>, Vec<String>> {
    let mut flags = Vec::new();
    let mut problems = Vec::new();
    for (key, value) in settings {
        match flag(role, key, value) {
            Ok(flag) => flags.push(flag),
            Err(problem) => problems.push(format!("{key}: {problem}")),
        }
    }
    match problems.is_empty() {
        true => Ok(flags),
        false => Err(problems),
    }
}

fn flag(role: &Command, name: &str, value: &Value) -> Result<Flag, String> {
    let Some(arg) = allowed(role).find(|arg| key(arg) == name) else {
        let mut keys: Vec<_> = allowed(role).map(key).collect();
        keys.sort_unstable();
        return Err(format!("unknown key; allowed: {}", keys.join(", ")));
    };
    let flag = Flag {
        key: name.to_owned(),
        args: args(arg, value)?,
    };
    check(role, &flag)?;
    Ok(flag)
}

/// The arguments that set a flag to a value.
fn args(arg: &Arg, value: &Value) -> Result<Vec<OsString>, String> {
    let flag = format!("--{}", arg.get_long().unwrap_or_default());
    if matches!(arg.get_action(), ArgAction::SetTrue) {
        return match value {
            Value::Bool(true) => Ok(vec![flag.into()]),
            Value::Bool(false) => Ok(Vec::new()),
            _ => Err(wrong(value, "true, false")),
        };
    }
    let text = match (value, arg.get_value_delimiter()) {
        (value, Some(_)) if has_pairs(arg) && !value.is_object() => {
            return Err(wrong(value, "a map, such as {DescribeDisks: 5}"));
        }
        (Value::Array(items), Some(delimiter)) => {
            let item = |item: &Value| match scalar(arg, item)? {
                text if text.contains(delimiter) => Err(wrong(item, "one value per item")),
                text => Ok(text),
            };
            let items: Result<Vec<_>, _> = items.iter().map(item).collect();
            items?.join(delimiter.encode_utf8(&mut [0; 4]))
        }
        (Value::Object(pairs), Some(delimiter)) if has_pairs(arg) => {
            let pair = |(name, value): (&String, &Value)| match value {
                _ if name.contains([delimiter, '=']) || name.trim() != name => {
                    Err(format!("{name:?} is not an action"))
                }
                Value::Number(number) => Ok(format!("{name}={number}")),
                _ => Err(format!("{name}: {}", wrong(value, "a number"))),
            };
            let pairs: Result<Vec<_>, _> = pairs.iter().map(pair).collect();
            pairs?.join(delimiter.encode_utf8(&mut [0; 4]))
        }
        _ => scalar(arg, value)?,
    };
    // An empty list or map leaves the default.
    let is_empty = text.is_empty() && arg.get_value_delimiter().is_some();
    Ok(match is_empty {
        true => Vec::new(),
        false => vec![format!("{flag}={text}").into()],
    })
}

/// Whether the values of a flag are `NAME=VALUE`, which a file has as a map.
fn has_pairs(arg: &Arg) -> bool {
    let names = arg.get_value_names().unwrap_or_default();
    names.iter().any(|name| name.contains('='))
}

/// A single value. Numbers are accepted only for numeric flags: YAML reads the cluster ID 007 as 7.
fn scalar(arg: &Arg, value: &Value) -> Result<String, String> {
    let parser = arg.get_value_parser().type_id();
    let numeric = [
        TypeId::of::<u16>(),
        TypeId::of::<u32>(),
        TypeId::of::<u64>(),
        TypeId::of::<usize>(),
        TypeId::of::<f64>(),
    ];
    let is_numeric = numeric.into_iter().any(|number| parser == number);
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) if is_numeric => Ok(number.to_string()),
        _ if is_numeric => Err(wrong(value, "a number")),
        _ if has_pairs(arg) => Err(wrong(value, "a map, such as {DescribeDisks: 5}")),
        Value::Array(_) | Value::Object(_) => Err(wrong(value, "one string")),
        _ => Err(wrong(value, "a string; put the value in quotes")),
    }
}

fn wrong(value: &Value, allowed: &str) -> String {
    format!("is {value}; allowed: {allowed}")
}

/// Checks the value of a flag, but not its relations to other flags, which may be on the command line.
fn check(role: &Command, flag: &Flag) -> Result<(), String> {
    let Err(error) = without_environment(role).try_get_matches_from(&flag.args) else {
        return Ok(());
    };
    match error.kind() {
        ErrorKind::InvalidValue | ErrorKind::ValueValidation | ErrorKind::TooManyValues => {
            let text = error.render().to_string();
            let reason = text.split("\n\n").next().unwrap_or_default();
            let lines: Vec<_> = reason.lines().map(str::trim).collect();
            Err(lines.join(" ").trim_start_matches("error: ").to_owned())
        }
        _ => Ok(()),
    }
}

/// The role's command line, read from arguments only.
pub(super) fn without_environment(role: &Command) -> Command {
    let role = role.clone().no_binary_name(true);
    role.mut_args(|arg| arg.env(Resettable::Reset))
}

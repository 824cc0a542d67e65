//! Every value has a comment, a rule in the schema and a row in the chart's README.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::render::{read, root, yaml};
use crate::report;

const CHART: &str = "deploy/helm/diskplugin";

/// A value as values.yaml has it.
#[derive(Debug)]
struct Row {
    /// With dots.
    path: String,
    /// Of the lines above it, in one.
    comment: String,
    /// None where values are below it.
    default: Option<String>,
}

/// Reads the file by its lines, because comments are what YAML leaves out. A list or map that is written out is the
/// default of its key; what is indented by two more is below it, unless the schema takes any keys there.
fn rows(text: &str, is_leaf: impl Fn(&str) -> bool) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let (mut parents, mut comment): (Vec<String>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut inside: Option<usize> = None;
    for line in text.lines() {
        let depth = line.len() - line.trim_start().len();
        if inside.is_some_and(|leaf| depth > leaf && !line.trim().is_empty()) {
            let default = rows.last_mut().unwrap().default.get_or_insert_default();
            if !default.is_empty() {
                default.push('\n');
            }
            default.push_str(line);
            continue;
        }
        inside = None;
        let line = line.trim();
        if let Some(said) = line.strip_prefix("# ") {
            comment.push(said);
            continue;
        }
        let Some((key, default)) = line.split_once(':') else {
            assert!(line.is_empty(), "values.yaml: {line}");
            comment.clear();
            continue;
        };
        parents.truncate(depth / 2);
        parents.push(key.to_owned());
        let path = parents.join(".");
        let leaf = is_leaf(&path);
        let default = default.trim().to_owned();
        inside = (leaf && default.is_empty()).then_some(depth);
        rows.push(Row {
            comment: std::mem::take(&mut comment).join(" "),
            default: leaf.then_some(default),
            path,
        });
    }
    rows
}

/// What of the schema is at a path, if it is described there.
fn schema<'a>(schema: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.')
        .try_fold(schema, |at, key| at.get("properties")?.get(key))
}

fn known() -> (Value, Vec<Row>) {
    let rules: Value = serde_json::from_str(&read(format!("{CHART}/values.schema.json"))).unwrap();
    let values = read(format!("{CHART}/values.yaml"));
    let rows = rows(&values, |path| {
        schema(&rules, path)
            .is_none_or(|rule| rule.get("properties").is_none() || path.ends_with("resources"))
    });
    (rules, rows)
}

/// The paths of the schema, to the leaves.
fn described(rule: &Value, path: &str, found: &mut BTreeSet<String>) {
    let below = rule.get("properties").and_then(Value::as_object);
    match below {
        Some(below) if !path.ends_with("resources") => {
            for (key, rule) in below {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                described(rule, &path, found);
            }
        }
        _ => {
            found.insert(path.to_owned());
        }
    }
}

#[test]
fn every_value_has_a_comment_and_a_rule_and_every_rule_a_value() {
    let (rules, rows) = known();
    let leaves = rows.iter().filter(|row| row.default.is_some());
    let there: BTreeSet<String> = leaves.clone().map(|row| row.path.clone()).collect();
    assert!(there.len() > 80, "the walk misses values: {there:?}");
    let mut wanted = BTreeSet::new();
    described(&rules, "", &mut wanted);
    // Helm's own, for charts within charts.
    wanted.remove("global");
    let silent = leaves.filter(|row| row.comment.is_empty());
    let silent = silent.map(|row| format!("{} has no comment", row.path));
    let lost = wanted
        .difference(&there)
        .map(|path| format!("{path} is only in the schema"));
    let unruled = there
        .difference(&wanted)
        .map(|path| format!("{path} is not in the schema"));
    report(silent.chain(lost).chain(unruled));
}

#[test]
fn the_lines_are_read_as_yaml_reads_them() {
    let (_, rows) = known();
    let values = yaml(&read(format!("{CHART}/values.yaml"))).remove(0);
    report(rows.iter().filter_map(|row| {
        let pointer = format!("/{}", row.path.replace('.', "/"));
        let Some(there) = values.pointer(&pointer) else {
            return Some(format!("{} is not there", row.path));
        };
        let default = row.default.as_ref()?;
        let read = yaml(default).into_iter().next().unwrap_or_default();
        (read != *there).then(|| format!("{} is {there} and not {read}", row.path))
    }));
}

/// A misspelt name must be an error wherever names are given.
#[test]
fn no_object_of_the_schema_takes_unknown_keys_unless_its_keys_are_the_users() {
    let (rules, _) = known();
    // What Kubernetes has a rule for, and checks itself.
    let open = [
        "affinity",
        "allowedTopologies",
        "extraEgress",
        "global",
        "metricsFrom",
    ];
    let mut wrong = Vec::new();
    let mut rest: Vec<(String, &Value)> = vec![(String::new(), &rules)];
    let mut seen = 0;
    while let Some((path, rule)) = rest.pop() {
        if rule.get("type").and_then(Value::as_str) == Some("object") {
            seen += 1;
            let strict = rule
                .get("additionalProperties")
                .is_some_and(|more| match more {
                    Value::Bool(taken) => !taken,
                    // A map whose values have a rule.
                    Value::Object(rule) => rule.contains_key("type"),
                    _ => false,
                });
            if !strict
                && !open
                    .iter()
                    .any(|name| path.split('.').any(|part| part == *name))
            {
                wrong.push(format!("{path} takes any key"));
            }
        }
        let named = rule
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        rest.extend(named.map(|(key, rule)| (format!("{path}.{key}"), rule)));
        let inner = ["items", "additionalProperties"]
            .into_iter()
            .filter_map(|key| rule.get(key));
        rest.extend(inner.map(|rule| (path.clone(), rule)));
    }
    assert!(seen > 40, "only {seen} objects were seen");
    report(wrong);
}

/// The README's table.
fn table(rows: &[Row]) -> String {
    let sections: BTreeMap<&str, &str> = rows
        .iter()
        .filter(|row| row.default.is_none())
        .map(|row| (row.path.as_str(), row.comment.as_str()))
        .collect();
    let mut lines = vec![
        "| value | meaning | default |".to_owned(),
        "| --- | --- | --- |".to_owned(),
    ];
    for row in rows {
        let comment = row.comment.replace('|', "\\|");
        let Some(default) = &row.default else {
            if !sections[row.path.as_str()].is_empty() {
                lines.push(format!("| `{}` | {comment} | |", row.path));
            }
            continue;
        };
        let default = match yaml(default).into_iter().next().unwrap_or_default() {
            Value::String(text) if text.is_empty() => String::new(),
            Value::String(text) => format!("`{text}`"),
            value => format!("`{value}`"),
        };
        let line = format!(
            "| `{}` | {comment} | {} |",
            row.path,
            default.replace('|', "\\|")
        );
        lines.push(line.replace("|  |", "| |"));
    }
    lines.join("\n")
}

#[test]
fn the_readme_of_the_chart_has_every_value() {
    let (_, rows) = known();
    let (file, begin) = (format!("{CHART}/README.md"), "<!-- values -->\n\n");
    let page = read(&file);
    let (head, found) = page.split_once(begin).expect("the page has the mark");
    let wanted = table(&rows);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(root().join(&file), format!("{head}{begin}{wanted}\n")).unwrap();
        return;
    }
    assert!(
        found.trim_end() == wanted,
        "{file} is not as values.yaml; UPDATE=1 cargo test --test helm makes the table"
    );
}

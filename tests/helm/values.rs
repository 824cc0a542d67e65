//! Every value has a comment, a schema and a row in the chart's README.

use std::collections::{BTreeMap, BTreeSet};

use ecs::client::ACTIONS;
use ecs::rate_limit::ACCOUNT;
use serde_json::Value;

use crate::render::{read, root, yaml};
use crate::report;

const CHART: &str = "deploy/helm/diskplugin";

/// A value of values.yaml.
#[derive(Debug)]
struct Row {
    /// The heading `## ...` that begins a section with this value.
    heading: Option<String>,
    /// Dotted, such as `controller.replicas`.
    path: String,
    /// The comment lines above it, joined.
    comment: String,
    /// None for a section of values.
    default: Option<String>,
}

/// Reads values.yaml line by line, because YAML parsers drop comments. A list or map in block style is the default of
/// its key if the schema describes no properties of it.
fn rows(text: &str, is_leaf: impl Fn(&str) -> bool) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let (mut parents, mut comment): (Vec<String>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut inside: Option<usize> = None;
    let mut heading = None;
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
        if let Some(title) = line.strip_prefix("## ") {
            heading = Some(title.to_owned());
            continue;
        }
        if let Some(text) = line.strip_prefix("# ") {
            comment.push(text);
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
            heading: heading.take(),
            comment: std::mem::take(&mut comment).join(" "),
            default: leaf.then_some(default),
            path,
        });
    }
    rows
}

/// The schema at a path.
fn schema<'a>(schema: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.')
        .try_fold(schema, |at, key| at.get("properties")?.get(key))
}

fn known() -> (Value, Vec<Row>) {
    let rules: Value = serde_json::from_str(&read(format!("{CHART}/values.schema.json"))).unwrap();
    let values = read(format!("{CHART}/values.yaml"));
    let rows = rows(&values, |path| {
        schema(&rules, path).is_none_or(|rule| rule.get("properties").is_none() || path.ends_with("resources"))
    });
    (rules, rows)
}

/// Collects the paths of the schema's leaves.
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
fn values_and_schema_match_and_every_value_has_a_comment() {
    let (rules, rows) = known();
    let leaves = rows.iter().filter(|row| row.default.is_some());
    let present: BTreeSet<String> = leaves.clone().map(|row| row.path.clone()).collect();
    assert!(present.len() > 80, "values are missing: {present:?}");
    let mut expected = BTreeSet::new();
    described(&rules, "", &mut expected);
    // Reserved by Helm for subcharts.
    expected.remove("global");
    let uncommented = leaves.filter(|row| row.comment.is_empty());
    let uncommented = uncommented.map(|row| format!("{} has no comment", row.path));
    let unused = expected
        .difference(&present)
        .map(|path| format!("{path} is only in the schema"));
    let undescribed = present
        .difference(&expected)
        .map(|path| format!("{path} is not in the schema"));
    report(uncommented.chain(unused).chain(undescribed));
}

#[test]
fn line_reader_agrees_with_the_yaml_parser() {
    let (_, rows) = known();
    let values = yaml(&read(format!("{CHART}/values.yaml"))).remove(0);
    report(rows.iter().filter_map(|row| {
        let pointer = format!("/{}", row.path.replace('.', "/"));
        let Some(parsed) = values.pointer(&pointer) else {
            return Some(format!("{} is missing", row.path));
        };
        let default = row.default.as_ref()?;
        let read = yaml(default).into_iter().next().unwrap_or_default();
        (read != *parsed).then(|| format!("{} is {parsed} and not {read}", row.path))
    }));
}

/// A misspelled value must be an error.
#[test]
fn schema_rejects_unknown_keys_except_in_maps_of_the_user() {
    let (rules, _) = known();
    // Kubernetes validates these.
    let open = [
        "affinity",
        "allowedTopologies",
        "authorization",
        "extraEgress",
        "extraVolumes",
        "global",
        "metricsFrom",
        "tlsConfig",
    ];
    let mut wrong = Vec::new();
    let mut rest: Vec<(String, &Value)> = vec![(String::new(), &rules)];
    let definitions = rules["definitions"].as_object().into_iter().flatten();
    rest.extend(definitions.map(|(name, rule)| (format!(".{name}"), rule)));
    let mut count = 0;
    while let Some((path, rule)) = rest.pop() {
        if rule.get("type").and_then(Value::as_str) == Some("object") {
            count += 1;
            let strict = rule.get("additionalProperties").is_some_and(|more| match more {
                Value::Bool(allowed) => !allowed,
                // A map whose values have a schema.
                Value::Object(rule) => rule.contains_key("type"),
                _ => false,
            });
            if !strict && !open.iter().any(|name| path.split('.').any(|part| part == *name)) {
                wrong.push(format!("{path} accepts any key"));
            }
        }
        for key in ["properties", "patternProperties"] {
            let named = rule.get(key).and_then(Value::as_object).into_iter().flatten();
            rest.extend(named.map(|(key, rule)| (format!("{path}.{key}"), rule)));
        }
        let inner = ["items", "additionalProperties"]
            .into_iter()
            .filter_map(|key| rule.get(key));
        rest.extend(inner.map(|rule| (path.clone(), rule)));
    }
    assert!(count > 40, "only {count} objects were found");
    report(wrong);
}

/// The README's tables, one per heading.
fn tables(rows: &[Row]) -> String {
    let sections: BTreeMap<&str, &str> = rows
        .iter()
        .filter(|row| row.default.is_none())
        .map(|row| (row.path.as_str(), row.comment.as_str()))
        .collect();
    let mut lines: Vec<String> = Vec::new();
    for row in rows {
        if let Some(heading) = &row.heading {
            if !lines.is_empty() {
                lines.push(String::new());
            }
            lines.extend([format!("### {heading}"), String::new()]);
            lines.push("| value | meaning | default |".to_owned());
            lines.push("| --- | --- | --- |".to_owned());
        }
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
        let line = format!("| `{}` | {comment} | {} |", row.path, default.replace('|', "\\|"));
        lines.push(line.replace("|  |", "| |"));
    }
    lines.join("\n")
}

#[test]
fn readme_lists_every_value() {
    let (_, rows) = known();
    let (file, begin) = (format!("{CHART}/README.md"), "<!-- values -->\n\n");
    let page = read(&file);
    let (head, found) = page.split_once(begin).expect("the page has the begin mark");
    let expected = tables(&rows);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(root().join(&file), format!("{head}{begin}{expected}\n")).unwrap();
        return;
    }
    assert!(
        found.trim_end() == expected,
        "{file} differs from values.yaml; UPDATE=1 cargo test --test helm updates it"
    );
}

#[test]
fn schema_allows_rate_limits_for_exactly_the_actions_of_the_driver() {
    let (rules, _) = known();
    let names = rules.pointer("/properties/rateLimits/propertyNames/enum");
    let names: Vec<_> = names.and_then(Value::as_array).unwrap().iter().collect();
    let allowed: Vec<_> = [ACCOUNT].iter().chain(ACTIONS).collect();
    assert_eq!(names, allowed);
}

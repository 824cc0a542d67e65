//! Errors, values of the chart, keys of classes and pages that the guides name exist.

use std::collections::BTreeSet;

use diskplugin::csi::param::Class;
use diskplugin::model::Failure;
use serde_json::Value;

use crate::complete::{allowed, unknown};
use crate::errors::code_name;
use crate::page::{Page, page, pages, read};
use crate::report;

/// Words in capitals that are neither failures nor codes of gRPC.
const OTHER_WORDS: [&str; 4] = [
    "CAP_SYS_RESOURCE",
    "DISKPLUGIN_CLUSTER_ID",
    "MAX_VOLUMES_PERNODE",
    "SOURCE_DATE_EPOCH",
];

/// Dotted names that are fields of the log, not values of the chart.
const LOG_FIELDS: [&str; 1] = ["node.id"];

fn prose() -> Vec<Page> {
    let all = pages();
    let prose = all.into_iter().filter(|page| {
        let path = page.path.display().to_string();
        path.starts_with("docs/guides/") || path.starts_with("docs/explanation/")
    });
    let prose: Vec<Page> = prose.collect();
    assert!(prose.len() > 12, "pages are missing");
    prose
}

fn names() -> BTreeSet<&'static str> {
    Failure::ALL.iter().map(|failure| failure.name()).collect()
}

#[test]
fn every_error_that_a_guide_names_exists() {
    let names = names();
    let codes: BTreeSet<_> = Failure::ALL.iter().map(|f| code_name(f.kind())).collect();
    let mut found = 0;
    report(prose().iter().flat_map(|page| {
        let is_name = |span: &&String| span.contains('_') && span.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        let variables = ["ACCESS_KEY_", "SECURITY_", "ALIBABA_", "HTTPS_PROXY", "SSL_CERT_"];
        let is_a_variable = |span: &str| variables.iter().any(|start| span.starts_with(start));
        let spans = page.spans.iter().filter(is_name);
        let spans = spans.filter(|span| !is_a_variable(span)).inspect(|_| found += 1);
        let wrong = spans.filter(|span| {
            let span = span.as_str();
            !names.contains(span) && !codes.contains(span) && !OTHER_WORDS.contains(&span)
        });
        let wrong = wrong.map(|span| format!("{}: {span} does not exist", page.path.display()));
        wrong.collect::<Vec<_>>()
    }));
    assert!(found > 100, "only {found} names were found");
}

#[test]
fn troubleshooting_has_every_error_and_those_of_nodes_below_failed_mount() {
    let page = page("docs/guides/troubleshoot.md");
    let section = page.text.split_once("### FailedMount").unwrap().1;
    let section = section.split("\n## ").next().unwrap();
    report(Failure::ALL.iter().filter_map(|failure| {
        let name = failure.name();
        let is_of_nodes = *failure >= Failure::DeviceNotFound;
        if is_of_nodes && !section.contains(&format!("`{name}`")) {
            return Some(format!("{name} is not below FailedMount"));
        }
        (!page.has_span(name)).then(|| format!("{name} is missing"))
    }));
}

/// A value by its dotted name, as `--set` takes it.
fn has_value(values: &Value, name: &str) -> bool {
    let path = name.split('[').next().unwrap_or(name).replace('.', "/");
    values.pointer(&format!("/{path}")).is_some()
}

#[test]
fn every_value_of_the_chart_that_a_page_names_exists() {
    let values: Value = serde_saphyr::from_str(&read("deploy/helm/diskplugin/values.yaml")).unwrap();
    let sections: Vec<&String> = values.as_object().unwrap().keys().collect();
    let mut found = 0;
    report(prose().iter().flat_map(|page| {
        let spans = page.spans.iter().filter_map(|span| {
            let name = span.split('=').next().unwrap_or(span);
            let section = name.split_once('.')?.0;
            let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '.');
            (is_plain && sections.iter().any(|known| *known == section)).then(|| name.to_owned())
        });
        let set = page.blocks.iter().flat_map(|block| block.text.lines());
        let set = set.filter_map(|line| line.split_once("--set ").map(|(_, rest)| rest));
        let set = set.filter_map(|rest| rest.split_whitespace().next());
        // Quoted if the shell would expand a bracket.
        let set = set.flat_map(|pairs| pairs.trim_matches('\'').split(','));
        let set = set.filter_map(|pair| Some(pair.split_once('=')?.0.to_owned()));
        let names = spans.chain(set).inspect(|_| found += 1);
        let wrong = names.filter(|name| !has_value(&values, name) && !LOG_FIELDS.contains(&name.as_str()));
        let wrong = wrong.map(|name| format!("{}: the chart has no {name}", page.path.display()));
        wrong.collect::<Vec<_>>()
    }));
    assert!(found > 40, "only {found} values were found");
}

#[test]
fn the_index_has_every_page_of_the_docs() {
    let index = page("docs/README.md");
    let pages = pages();
    let paths = pages.iter().filter_map(|page| page.path.strip_prefix("docs").ok());
    let paths = paths.map(|path| path.display().to_string());
    let missing = paths.filter(|path| path != "README.md" && !index.links.contains(path));
    report(missing.map(|path| format!("docs/README.md does not have {path}")));
}

/// The rows of the table of keys, supported and unsupported ones.
#[test]
fn the_keys_of_the_vendors_classes_are_supported_or_rejected_as_in_the_guide() {
    let rejection = Class::read(&unknown()).unwrap_err();
    let known = allowed(&rejection.to_string());
    let text = read("docs/guides/migrate.md");
    let table = text.split_once("| the vendor's key | here |").unwrap().1;
    let table = table.split("\n\n").next().unwrap();
    let rows = table.lines().filter_map(|line| line.trim().strip_prefix("| `"));
    let mut found = 0;
    report(rows.flat_map(|row| {
        let (keys, here) = row.split_once(" | ").unwrap();
        let same = here.starts_with("the same");
        let keys = keys.split('`').filter(|key| key.starts_with(char::is_alphabetic));
        let keys = keys.inspect(|_| found += 1);
        let wrong = keys.filter(|key| known.iter().any(|known| known == key) != same);
        wrong.map(|key| format!("{key} is {here}")).collect::<Vec<_>>()
    }));
    assert!(found > 20, "only {found} keys were found");
}

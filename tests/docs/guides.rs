//! The guides name what there is: errors, values of the chart, keys of classes, and one another.

use std::collections::{BTreeSet, HashMap};

use diskplugin::csi::param::Class;
use diskplugin::model::Failure;
use serde_json::Value;

use crate::page::{Page, page, pages, read};
use crate::report;

/// Words in capitals that are no failure's name, nor a code of gRPC.
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
    assert!(prose.len() > 12, "the walk misses pages");
    prose
}

fn names() -> BTreeSet<&'static str> {
    Failure::ALL.iter().map(|failure| failure.name()).collect()
}

#[test]
fn every_error_that_a_guide_names_is_one_that_there_is() {
    let names = names();
    let codes: BTreeSet<_> = Failure::ALL.iter().map(|f| f.kind().code_name()).collect();
    let mut found = 0;
    report(prose().iter().flat_map(|page| {
        let is_name = |span: &&String| span.contains('_') && span.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        let is_a_variable = |span: &str| {
            ["ACCESS_KEY_", "SECURITY_", "ALIBABA_"]
                .iter()
                .any(|start| span.starts_with(start))
        };
        let spans = page.spans.iter().filter(is_name);
        let spans = spans.filter(|span| !is_a_variable(span)).inspect(|_| found += 1);
        let wrong = spans.filter(|span| {
            let span = span.as_str();
            !names.contains(span) && !codes.contains(span) && !OTHER_WORDS.contains(&span)
        });
        let wrong = wrong.map(|span| format!("{}: there is no {span}", page.path.display()));
        wrong.collect::<Vec<_>>()
    }));
    assert!(found > 100, "only {found} names were found");
}

#[test]
fn troubleshooting_knows_every_error_and_those_of_nodes_where_pods_wait() {
    let page = page("docs/guides/troubleshoot.md");
    let section = page.text.split_once("### FailedMount").unwrap().1;
    let section = section.split("\n## ").next().unwrap();
    report(Failure::ALL.iter().filter_map(|failure| {
        let name = failure.name();
        let is_of_nodes = *failure >= Failure::DeviceNotFound;
        if is_of_nodes && !section.contains(&format!("`{name}`")) {
            return Some(format!("{name} is not below FailedMount"));
        }
        (!page.has_span(name)).then(|| format!("{name} is nowhere"))
    }));
}

/// A value by its dotted name, as `--set` takes it.
fn has_value(values: &Value, name: &str) -> bool {
    let path = name.split('[').next().unwrap_or(name).replace('.', "/");
    values.pointer(&format!("/{path}")).is_some()
}

#[test]
fn every_value_of_the_chart_that_a_page_names_is_there() {
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
        let set = set.flat_map(|rest| {
            rest.split_whitespace()
                .next()
                .unwrap_or_default()
                // Where the shell would take a bracket for a pattern.
                .trim_matches('\'')
                .split(',')
        });
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
    let of_docs = pages.iter().filter_map(|page| page.path.strip_prefix("docs").ok());
    report(
        of_docs
            .map(|path| path.display().to_string())
            .filter(|path| path != "README.md" && !index.links.contains(path))
            .map(|path| format!("docs/README.md does not have {path}")),
    );
}

/// The rows of the table of keys: those that are there, and those that are not.
#[test]
fn the_keys_of_the_vendors_classes_are_taken_or_refused_as_the_guide_says() {
    let refusal = Class::read(&HashMap::from([("unknown".to_owned(), String::new())]));
    let refusal = refusal.unwrap_err().to_string();
    let known = refusal
        .split_once("allowed: ")
        .expect("it says so")
        .1
        .replace(" and ", ", ");
    let known: BTreeSet<&str> = known.split(", ").collect();
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
        let wrong = keys.filter(|key| known.contains(key) != same);
        wrong.map(|key| format!("{key} is {here}")).collect::<Vec<_>>()
    }));
    assert!(found > 20, "only {found} keys were found");
}

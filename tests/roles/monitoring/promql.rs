//! Finds metrics and labels in queries. `prometheus` checks the syntax.

use std::collections::{BTreeMap, BTreeSet};

use diskplugin::telemetry::catalog::METRICS;

/// The labels of every sample: those of the scrape, and the bounds of histograms.
const SCRAPE: [&str; 7] = ["job", "namespace", "pod", "node", "release", "instance", "le"];

/// The names of all samples with their labels.
pub(crate) fn samples() -> BTreeMap<String, BTreeSet<&'static str>> {
    let mut samples = BTreeMap::from([("up".to_owned(), BTreeSet::from(SCRAPE))]);
    for metric in METRICS {
        let labels: BTreeSet<_> = metric.labels.iter().copied().chain(SCRAPE).collect();
        let suffixes: &[&str] = match metric.kind() {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_sum", "_count"],
            "info" => &["_info"],
            _ => &[""],
        };
        for suffix in suffixes {
            samples.insert(format!("{}{suffix}", metric.full_name()), labels.clone());
        }
    }
    samples
}

/// The names in a query that the driver does not have.
pub(crate) fn problems(query: &str) -> Vec<String> {
    let known = samples();
    let used = used(query);
    let mut problems = Vec::new();
    if used.is_empty() {
        problems.push(format!("no metric in {query}"));
    }
    let mut labels: BTreeSet<&str> = BTreeSet::new();
    for metric in &used {
        match known.get(metric) {
            Some(of_metric) => labels.extend(of_metric),
            None => problems.push(format!("{metric} is not a sample of the catalog: {query}")),
        }
    }
    let unknown = label_names(query).into_iter();
    let unknown = unknown.filter(|name| !labels.contains(name.as_str()));
    problems.extend(unknown.map(|name| format!("no metric has the label {name}: {query}")));
    problems
}

/// The names of the metrics: identifiers before `{`, and those with the prefix.
pub(crate) fn used(query: &str) -> BTreeSet<String> {
    let plain = without_strings(query);
    let mut used = BTreeSet::new();
    for (name, rest) in identifiers(&plain) {
        if name.starts_with("diskplugin_") || rest.starts_with('{') {
            used.insert(name.to_owned());
        }
    }
    used
}

/// The labels of selectors, of `by (…)` and of `on (…)`.
fn label_names(query: &str) -> BTreeSet<String> {
    let plain = without_strings(query);
    let mut names = BTreeSet::new();
    for part in plain.split('{').skip(1) {
        let selector = part.split('}').next().unwrap();
        names.extend(identifiers(selector).map(|(name, _)| name.to_owned()));
    }
    for (name, rest) in identifiers(&plain) {
        let Some(list) = rest.trim_start().strip_prefix('(') else {
            continue;
        };
        if ["by", "on"].contains(&name) {
            let list = list.split(')').next().unwrap();
            names.extend(identifiers(list).map(|(name, _)| name.to_owned()));
        }
    }
    names
}

/// Label values are not queries.
fn without_strings(query: &str) -> String {
    let parts = query.split('"').enumerate();
    parts.filter(|(at, _)| at % 2 == 0).map(|(_, part)| part).collect()
}

/// Each identifier with the text after it.
fn identifiers(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.find(is_part)?;
        let end = rest[start..].find(|c| !is_part(c)).map_or(rest.len(), |at| start + at);
        let name = &rest[start..end];
        rest = &rest[end..];
        Some((name, rest))
    })
    .filter(|(name, _)| !name.starts_with(|c: char| c.is_ascii_digit()))
}

#[test]
fn an_unknown_metric_and_an_unknown_label_are_found() {
    let fine = r#"sum by (method) (rate(diskplugin_rpc_duration_seconds_count{code!="OK"}[5m]))"#;
    assert!(problems(fine).is_empty(), "{:?}", problems(fine));
    for wrong in [
        "diskplugin_rpc_duration_seconds",
        r#"node_disk_io_now{device="vda"}"#,
        r#"up{disk_id="d-1"}"#,
        "sum by (disk_id) (diskplugin_stockout)",
        "vector(0)",
    ] {
        assert!(!problems(wrong).is_empty(), "{wrong}");
    }
}

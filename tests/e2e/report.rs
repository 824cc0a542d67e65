//! The report of ginkgo, and the page that lists skipped specs.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Deserialize;

use crate::page::list_item;
use crate::upstream::Plan;

/// The page that ends with the output of [`list`].
const PAGE: &str = "docs/reference/upstream-suite.md";
/// The heading of the list of skipped specs.
const BEGINNING: &str = "## Skipped specs\n";

/// The specs of a run, and its setup and teardown.
#[derive(Debug)]
pub(crate) struct Report {
    specs: Vec<Spec>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Spec {
    #[serde(default)]
    container_hierarchy_texts: Option<Vec<String>>,
    leaf_node_type: String,
    #[serde(default)]
    leaf_node_text: String,
    state: String,
    /// Nanoseconds.
    #[serde(default)]
    run_time: u64,
    #[serde(default)]
    failure: Failure,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Failure {
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Suite {
    spec_reports: Vec<Spec>,
}

impl Report {
    /// Reads a file that ginkgo wrote.
    pub(crate) fn read(file: &Path) -> Self {
        let text = std::fs::read(file).expect("ginkgo has written its report");
        let suites: Vec<Suite> = serde_json::from_slice(&text).expect("the report is valid");
        let specs = suites.into_iter().flat_map(|suite| suite.spec_reports);
        Self { specs: specs.collect() }
    }

    pub(crate) fn passed(&self) -> impl Iterator<Item = &Spec> {
        self.own().filter(|spec| spec.state == "passed")
    }

    /// Including setup and teardown.
    pub(crate) fn failed(&self) -> impl Iterator<Item = &Spec> {
        let other = ["passed", "skipped", "pending"];
        let specs = self.specs.iter();
        specs.filter(move |spec| !other.contains(&spec.state.as_str()))
    }

    fn skipped(&self) -> impl Iterator<Item = &Spec> {
        self.own()
            .filter(|spec| ["skipped", "pending"].contains(&spec.state.as_str()))
    }

    fn own(&self) -> impl Iterator<Item = &Spec> {
        self.specs.iter().filter(|spec| spec.leaf_node_type == "It")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut slow: Vec<&Spec> = self.passed().collect();
        slow.sort_by_key(|spec| std::cmp::Reverse(spec.run_time));
        for spec in slow.iter().take(5) {
            writeln!(f, "{:4} s  {}", spec.run_time / 1_000_000_000, spec.name())?;
        }
        for spec in self.failed() {
            writeln!(f, "FAILED  {}\n  {}", spec.name(), spec.failure.message)?;
        }
        let (passed, failed) = (self.passed().count(), self.failed().count());
        write!(
            f,
            "{passed} passed, {failed} failed, {} skipped",
            self.skipped().count()
        )
    }
}

impl Spec {
    /// The text that ginkgo matches its patterns with.
    pub(crate) fn name(&self) -> String {
        let above = self.container_hierarchy_texts.iter().flatten();
        let parts: Vec<&str> = above.chain([&self.leaf_node_text]).map(String::as_str).collect();
        parts.join(" ")
    }

    /// Its test pattern, such as `Dynamic PV (xfs)`, and the rest of its name.
    fn parts(&self) -> (String, String) {
        let name = self.name();
        let inner = name.split_once("[Testpattern: ").map_or("", |(_, rest)| rest);
        let (pattern, rest) = inner.split_once("] ").unwrap_or(("", &name));
        let words = rest.split_whitespace();
        // Without labels.
        let plain: Vec<&str> = words.filter(|word| !word.starts_with('[')).collect();
        (pattern.trim().to_owned(), plain.join(" "))
    }

    fn reason(&self, plan: &Plan) -> String {
        if !self.failure.message.is_empty() {
            return self.failure.message.trim().to_owned();
        }
        let name = self.name();
        let left_out = plan.left_out.iter().find(|one| name.contains(&one.specs));
        let reason = left_out.map(|one| format!("Left out \"{}\": {}", one.specs, one.because));
        reason.unwrap_or_else(|| "no reason is known".to_owned())
    }
}

/// The specs that are skipped on every machine, by reason.
fn list(report: &Report, plan: &Plan) -> String {
    let mut reasons: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    for spec in report.skipped() {
        let name = spec.name();
        let beyond = plan.beyond_this_machine();
        if !name.starts_with(&plan.focus) || beyond.iter().any(|text| name.contains(text)) {
            continue;
        }
        let (pattern, what) = spec.parts();
        let specs = reasons.entry(spec.reason(plan)).or_default();
        specs.entry(what).or_default().push(pattern);
    }
    let mut out = String::from(BEGINNING);
    for (reason, specs) in reasons {
        let count: usize = specs.values().map(Vec::len).sum();
        out += &format!("\n### {reason} ({count})\n\n");
        for (what, mut patterns) in specs {
            patterns.sort();
            out += &list_item(&format!("* {what}: {}", patterns.join("; ")));
            out.push('\n');
        }
    }
    out
}

/// The error if the page does not list exactly the skipped specs of a whole run. `UPDATE=1` writes the page.
pub(crate) fn difference(report: &Report, plan: &Plan) -> Option<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let text = std::fs::read_to_string(&file).expect("the page exists");
    let (before, _) = text.split_once(BEGINNING).expect("the page has the heading");
    let wanted = format!("{before}{}", list(report, plan));
    if text == wanted {
        return None;
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, wanted).expect("the page can be written");
        return None;
    }
    Some(format!(
        "{PAGE} does not list the skipped specs; UPDATE=1 make e2e-upstream updates it"
    ))
}

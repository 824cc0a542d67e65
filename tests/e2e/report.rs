//! What ginkgo reports of a run, and the page that names what was skipped.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Deserialize;

use crate::page::list_item;
use crate::upstream::Plan;

/// The page whose end is what [`list`] writes.
const PAGE: &str = "docs/reference/upstream-suite.md";
/// The heading of the list of skipped specs.
const BEGINNING: &str = "## Skipped specs\n";

/// A run's specs, and whatever was around them.
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
        let suites: Vec<Suite> = serde_json::from_slice(&text).expect("it is ginkgo's");
        let specs = suites.into_iter().flat_map(|suite| suite.spec_reports);
        Self { specs: specs.collect() }
    }

    pub(crate) fn passed(&self) -> impl Iterator<Item = &Spec> {
        self.own().filter(|spec| spec.state == "passed")
    }

    /// Also what failed before and after all specs.
    pub(crate) fn failed(&self) -> impl Iterator<Item = &Spec> {
        let well = ["passed", "skipped", "pending"];
        self.specs
            .iter()
            .filter(move |spec| !well.contains(&spec.state.as_str()))
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
        write!(
            f,
            "{} passed, {} failed, {} skipped",
            self.passed().count(),
            self.failed().count(),
            self.skipped().count()
        )
    }
}

impl Spec {
    /// What ginkgo looks for its patterns in.
    pub(crate) fn name(&self) -> String {
        let above = self.container_hierarchy_texts.iter().flatten();
        let parts: Vec<&str> = above
            .map(String::as_str)
            .chain([self.leaf_node_text.as_str()])
            .collect();
        parts.join(" ")
    }

    /// The pattern that it is of, such as `Dynamic PV (xfs)`, and the rest of its name behind the driver's.
    fn parts(&self) -> (String, String) {
        let name = self.name();
        let inner = name.split_once("[Testpattern: ").map_or("", |(_, rest)| rest);
        let (pattern, rest) = inner.split_once("] ").unwrap_or(("", &name));
        let words = rest.split_whitespace();
        // Labels are for choosing.
        let plain: Vec<&str> = words.filter(|word| !word.starts_with('[')).collect();
        (pattern.trim().to_owned(), plain.join(" "))
    }

    fn reason(&self, plan: &Plan) -> String {
        if !self.failure.message.is_empty() {
            return self.failure.message.trim().to_owned();
        }
        let name = self.name();
        let left_out = plan.left_out.iter().find(|one| name.contains(&one.specs));
        left_out.map_or_else(
            || "no reason is known".to_owned(),
            |one| format!("Left out \"{}\": {}", one.specs, one.because),
        )
    }
}

/// What was skipped on every machine, by reason.
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

/// Whether the page names all that a whole run has skipped, and no more. `UPDATE=1` writes it anew.
pub(crate) fn compared(report: &Report, plan: &Plan) -> Option<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let text = std::fs::read_to_string(&file).expect("the page is there");
    let (before, _) = text.split_once(BEGINNING).expect("it has this heading");
    let wanted = format!("{before}{}", list(report, plan));
    if text == wanted {
        return None;
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, wanted).expect("the page can be written");
        return None;
    }
    Some(format!(
        "{PAGE} does not name what was skipped as it was; UPDATE=1 make e2e-upstream writes it anew"
    ))
}

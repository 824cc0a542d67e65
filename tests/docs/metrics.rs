//! The page of metrics has every metric and phase. `UPDATE=1 cargo test --test docs metrics` writes it.

use diskplugin::base::Phase;
use diskplugin::telemetry::catalog::METRICS;

use crate::errors::assert_generated;
use crate::page::root;

const METRICS_BEGIN: &str =
    "<!-- Generated from src/telemetry/catalog.rs by UPDATE=1 cargo test --test docs metrics -->\n";
const METRICS_END: &str = "<!-- End of the generated table -->";
const PHASES_BEGIN: &str = "<!-- Generated from src/base/phase.rs by UPDATE=1 cargo test --test docs metrics -->\n";
const PHASES_END: &str = "<!-- End of the generated phases -->";

/// The text with the part between the markers replaced.
fn with_part(text: &str, begin: &str, part: &str, end: &str) -> String {
    let (before, rest) = text.split_once(begin).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    format!("{before}{begin}\n{part}\n{end}{after}")
}

#[test]
fn the_page_of_metrics_lists_every_metric_and_phase() {
    let path = root().join("docs/reference/metrics.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut metrics = "| metric | type | labels | roles | meaning |\n| --- | --- | --- | --- | --- |\n".to_owned();
    for metric in METRICS {
        let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        metrics.push_str(&format!(
            "| `{}` | {} | {} | {} | {} |\n",
            metric.full_name(),
            metric.kind(),
            labels.join(", "),
            metric.roles,
            metric.help
        ));
    }
    let mut phases = "| phase | meaning |\n| --- | --- |\n".to_owned();
    for phase in Phase::ALL {
        phases.push_str(&format!("| `{}` | {} |\n", phase.as_str(), phase.describe()));
    }
    let text = with_part(&text, METRICS_BEGIN, &metrics, METRICS_END);
    assert_generated(path, &with_part(&text, PHASES_BEGIN, &phases, PHASES_END));
}

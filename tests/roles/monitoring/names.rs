//! Queries use metrics and labels of the catalog.

use std::collections::BTreeSet;

use diskplugin::telemetry::catalog::METRICS;

use crate::monitoring::files::{alerts, dashboards};
use crate::monitoring::promql::{problems, used};
use crate::monitoring::report;

#[test]
fn alerts_and_panels_use_only_metrics_and_labels_of_the_catalog() {
    let alerts = alerts().into_iter().map(|alert| (alert.name, alert.expr));
    let boards = dashboards();
    let panels = boards.iter().flat_map(|board| board.panels());
    let panels = panels.flat_map(|panel| {
        let at = panel.at.clone();
        panel.queries.into_iter().map(move |query| (at.clone(), query))
    });
    report(alerts.chain(panels).flat_map(|(at, query)| {
        let problems = problems(&query).into_iter();
        problems.map(move |problem| format!("{at}: {problem}"))
    }));
}

/// A metric without a panel is not needed.
#[test]
fn every_metric_is_in_a_dashboard() {
    let mut seen = BTreeSet::new();
    for panel in dashboards().iter().flat_map(|board| board.panels()) {
        seen.extend(panel.queries.iter().flat_map(|query| used(query)));
    }
    report(METRICS.iter().filter_map(|metric| {
        let name = metric.full_name();
        let suffixes = ["", "_total", "_count", "_sum", "_bucket", "_info"];
        let found = suffixes.iter().any(|suffix| seen.contains(&format!("{name}{suffix}")));
        (!found).then(|| format!("{name} is in no dashboard"))
    }));
}

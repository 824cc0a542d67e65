//! The rules and dashboards in the chart.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// An alert of the rules.
#[derive(Debug)]
pub(crate) struct Alert {
    pub(crate) name: String,
    pub(crate) expr: String,
    pub(crate) body: Value,
}

/// A panel of a dashboard with its queries.
#[derive(Debug)]
pub(crate) struct Panel {
    /// `dashboard: title`.
    pub(crate) at: String,
    /// Whether Grafana evaluates the queries at one time, not over a period.
    pub(crate) is_instant: bool,
    pub(crate) queries: Vec<String>,
    pub(crate) body: Value,
}

#[derive(Debug)]
pub(crate) struct Dashboard {
    pub(crate) name: String,
    pub(crate) body: Value,
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Reads a file of the repository.
pub(crate) fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

pub(crate) fn text<'a>(body: &'a Value, key: &str) -> &'a str {
    let found = body[key].as_str();
    found.unwrap_or_else(|| panic!("no string {key} in {body}"))
}

/// The files below a folder with this ending, sorted.
pub(crate) fn files_below(folder: &str, ending: &str) -> Vec<PathBuf> {
    let (mut folders, mut paths) = (vec![root().join(folder)], Vec::new());
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(folder).unwrap();
        let (inner, files): (Vec<_>, Vec<_>) = entries
            .map(|entry| entry.unwrap().path())
            .partition(|path| path.is_dir());
        folders.extend(inner);
        paths.extend(
            files
                .into_iter()
                .filter(|path| path.extension().is_some_and(|found| found == ending)),
        );
    }
    paths.sort();
    assert!(!paths.is_empty(), "{folder} has no {ending}");
    paths
}

pub(crate) fn rules_path() -> PathBuf {
    root().join("deploy/helm/diskplugin/files/alerts.yaml")
}

pub(crate) fn alerts() -> Vec<Alert> {
    let rules: Value = serde_saphyr::from_str(&read(rules_path())).unwrap();
    let groups = rules["groups"].as_array().unwrap().iter();
    let alerts = groups.flat_map(|group| group["rules"].as_array().unwrap());
    let alerts: Vec<_> = alerts
        .map(|body| Alert {
            name: text(body, "alert").to_owned(),
            expr: text(body, "expr").to_owned(),
            body: body.clone(),
        })
        .collect();
    assert!(alerts.len() > 15, "only {} alerts were found", alerts.len());
    alerts
}

pub(crate) fn dashboards() -> Vec<Dashboard> {
    let paths = files_below("deploy/helm/diskplugin/files/dashboards", "json").into_iter();
    paths
        .map(|path| Dashboard {
            name: path.file_stem().unwrap().to_str().unwrap().to_owned(),
            body: serde_json::from_str(&read(path)).unwrap(),
        })
        .collect()
}

impl Dashboard {
    pub(crate) fn panels(&self) -> Vec<Panel> {
        let panels = self.body["panels"].as_array().unwrap().iter();
        let panels = panels.filter(|panel| panel["type"] != "row");
        panels
            .map(|body| {
                let targets = body["targets"].as_array().unwrap().iter();
                Panel {
                    at: format!("{}: {}", self.name, text(body, "title")),
                    is_instant: targets.clone().all(|target| target["instant"] == true),
                    queries: targets.map(|it| text(it, "expr").to_owned()).collect(),
                    body: body.clone(),
                }
            })
            .collect()
    }
}

//! The YAML document of a configuration file.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::UserMessageFormatter;

use super::{API_VERSION, KINDS};

/// The settings by key.
pub(super) type Settings = BTreeMap<String, Value>;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(flatten)]
    settings: Settings,
}

/// Returns the role and the settings of a document.
pub(super) fn parse(text: &str) -> Result<(&'static str, Settings), Vec<String>> {
    let document: Document =
        // Without the lines around the error, which may contain a secret in a wrong place.
        serde_saphyr::from_str(text).map_err(|error| {
            vec![error.without_snippet().render_with_formatter(&UserMessageFormatter)]
        })?;
    let mut problems = Vec::new();
    if document.api_version != API_VERSION {
        let value = shown(&document.api_version);
        problems.push(format!("apiVersion: {value}; allowed: {API_VERSION}"));
    }
    let kind = KINDS.iter().find(|(kind, _)| *kind == document.kind);
    if kind.is_none() {
        let allowed: Vec<_> = KINDS.iter().map(|(kind, _)| *kind).collect();
        let allowed = allowed.join(", ");
        let value = shown(&document.kind);
        problems.push(format!("kind: {value}; allowed: {allowed}"));
    }
    match kind.filter(|_| problems.is_empty()) {
        Some((_, role)) => Ok((role, document.settings)),
        None => Err(problems),
    }
}

fn shown(value: &str) -> String {
    match value.is_empty() {
        true => "is missing".to_owned(),
        false => format!("is {value:?}"),
    }
}

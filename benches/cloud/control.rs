//! The control API of the fake cloud.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;

/// Calls and throttled calls by action.
#[derive(Debug, Clone, Copy, Default, serde::Serialize)]
pub(crate) struct Count {
    pub(crate) calls: u64,
    pub(crate) throttled: u64,
    /// Refused for any reason, including throttling.
    pub(crate) refused: u64,
}

pub(crate) async fn get(endpoint: &str, what: &str) -> anyhow::Result<Value> {
    let url = format!("{endpoint}/_control/{what}");
    let client = reqwest::Client::builder().timeout(Duration::from_secs(10)).build()?;
    let response = client.get(url).send().await?.error_for_status()?;
    Ok(response.json().await?)
}

/// The IDs of disks or instances.
pub(crate) async fn ids(endpoint: &str, kind: &str) -> anyhow::Result<Vec<String>> {
    let state = get(endpoint, "state").await?;
    let rows = state[kind].as_array().into_iter().flatten();
    Ok(rows.filter_map(|row| row["id"].as_str().map(str::to_owned)).collect())
}

/// The calls since the start of the cloud.
pub(crate) async fn counts(endpoint: &str) -> anyhow::Result<BTreeMap<String, Count>> {
    let calls = get(endpoint, "calls").await?;
    let counts = calls["counts"].as_object().context("no counts")?;
    let number = |value: &Value, name: &str| value[name].as_u64().unwrap_or_default();
    let mut by_action: BTreeMap<String, Count> = BTreeMap::new();
    for (action, count) in counts {
        let entry = by_action.entry(action.clone()).or_default();
        entry.calls = number(count, "calls");
        entry.refused = number(count, "refused");
    }
    let audit = get(endpoint, "audit").await?;
    for minute in audit["minutes"].as_array().into_iter().flatten() {
        let action = minute["action"].as_str().context("no action")?;
        let entry = by_action.entry(action.to_owned()).or_default();
        entry.throttled += number(minute, "throttled");
    }
    Ok(by_action)
}

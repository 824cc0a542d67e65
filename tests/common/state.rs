//! Accessors for the fake cloud's state, `GET /_control/state`.

use serde_json::Value;

static NULL: Value = Value::Null;

fn rows(rows: &Value) -> impl Iterator<Item = &Value> {
    rows.as_array().into_iter().flatten()
}

pub(crate) fn row<'a>(all: &'a Value, id: &str) -> &'a Value {
    rows(all).find(|row| row["id"] == *id).unwrap_or(&NULL)
}

/// The disk with this ID; null if it does not exist.
pub(crate) fn disk<'a>(state: &'a Value, id: &str) -> &'a Value {
    row(&state["disks"], id)
}

/// The rows tagged with the CSI name.
pub(crate) fn named<'a>(all: &'a Value, name: &str) -> Vec<&'a Value> {
    rows(all)
        .filter(|row| row["tags"]["diskplugin.csi.example/name"] == *name)
        .collect()
}

pub(crate) fn disks_named<'a>(state: &'a Value, name: &str) -> Vec<&'a Value> {
    let mut named = named(&state["disks"], name);
    named.retain(|row| row["phase"] != "Deleting");
    named
}

/// The instance and state of each attachment.
pub(crate) fn attachments(row: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    rows(&row["attachments"])
        .map(|held| (text(&held["instance"]), text(&held["state"])))
        .collect()
}

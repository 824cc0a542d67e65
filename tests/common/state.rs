//! The words to read the fake cloud's state with, as `GET /_control/state` gives it.

use serde_json::Value;

static NULL: Value = Value::Null;

fn rows(rows: &Value) -> impl Iterator<Item = &Value> {
    rows.as_array().into_iter().flatten()
}

pub(crate) fn row<'a>(all: &'a Value, id: &str) -> &'a Value {
    rows(all).find(|row| row["id"] == *id).unwrap_or(&NULL)
}

/// The disk of this id as it is; null when it is not there.
pub(crate) fn disk<'a>(state: &'a Value, id: &str) -> &'a Value {
    row(&state["disks"], id)
}

/// Those that carry the CSI name.
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

/// Who holds the disk, and how far each attachment is.
pub(crate) fn links(row: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    rows(&row["attachments"])
        .map(|held| (text(&held["instance"]), text(&held["link"])))
        .collect()
}

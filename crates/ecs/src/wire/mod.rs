//! Parameters and JSON responses of the ECS API.

pub mod params;
#[cfg(test)]
mod tests;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::action::{Page, UndeletedSnapshot, Unreadable};
use crate::model::read::{Row, column, list};
use crate::model::{TaskId, ZoneStock};

/// Parses the JSON object of a response. Fields that are null or empty are removed and count as missing.
pub fn parse(body: &[u8]) -> serde_json::Result<Value> {
    // An array would be read as the fields of the result in their order.
    let members: Map<String, Value> = serde_json::from_slice(body)?;
    let mut json = Value::Object(members);
    remove_empty(&mut json);
    Ok(json)
}

/// Parses a response into its type, as [`parse`].
pub fn read<T: DeserializeOwned>(body: &[u8]) -> serde_json::Result<T> {
    serde_json::from_value(parse(body)?)
}

fn remove_empty(json: &mut Value) {
    match json {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null() && member.as_str() != Some(""));
            members.values_mut().for_each(remove_empty);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_empty),
        _ => {}
    }
}

#[derive(Debug, Deserialize)]
pub struct Created<Id> {
    #[serde(alias = "DiskId", alias = "SnapshotId", alias = "SnapshotGroupId")]
    pub id: Id,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Modified {
    /// The task of a change of the category.
    pub task_id: Option<TaskId>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DescribedStock {
    #[serde(default, deserialize_with = "list")]
    pub available_zones: Vec<ZoneStock>,
}

/// The response of `DeleteSnapshotGroup`: a success, even if snapshots remain.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DeletedGroup {
    #[serde(default, deserialize_with = "list")]
    operation_progress_set: Vec<Progress>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Progress {
    operation_status: Option<String>,
    error_code: Option<String>,
    #[serde(default)]
    error_msg: String,
    #[serde(default, deserialize_with = "values")]
    related_item_set: Vec<Option<String>>,
}

fn values<'de, D: Deserializer<'de>>(json: D) -> Result<Vec<Option<String>>, D::Error> {
    column(json, "Value")
}

impl DeletedGroup {
    /// The snapshots that were not deleted: each entry with a code or without success.
    pub fn remaining(self) -> Vec<UndeletedSnapshot> {
        let entries = self.operation_progress_set.into_iter();
        let remaining = entries.filter_map(|entry| {
            let mut ids = entry.related_item_set.into_iter().flatten();
            let status = entry.operation_status;
            let failed = status.filter(|status| !status.eq_ignore_ascii_case("Success"));
            Some(UndeletedSnapshot {
                snapshot: ids.find(|id| id.starts_with("s-")).unwrap_or_default(),
                code: entry.error_code.or(failed)?,
                message: entry.error_msg,
            })
        });
        remaining.collect()
    }
}

/// A response with a list of rows. A malformed row is reported by its id and does not affect the others.
impl<'de, R: Row> Deserialize<'de> for Page<R> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let mut members = Map::deserialize(json)?;
        let rows = members.remove(R::LIST);
        let rows = rows.ok_or_else(|| D::Error::missing_field(R::LIST))?;
        let rows: Vec<Value> = list(rows).map_err(D::Error::custom)?;
        let next = members.remove("NextToken").map(String::deserialize);
        let next = next.transpose().map_err(D::Error::custom)?;
        let mut page = Self::new(Vec::with_capacity(rows.len()), next);
        for row in rows {
            let id = row.get(R::ID).and_then(Value::as_str).map(str::to_owned);
            // An array would be read as the fields of the row in their order.
            let parsed = Map::deserialize(row).and_then(|row| R::parse(Value::Object(row)));
            match parsed {
                Ok(row) => page.rows.push(row),
                Err(error) => {
                    let reason = error.to_string();
                    let unreadable = Unreadable { id, reason };
                    tracing::warn!(error = %unreadable, "the cloud returned a malformed row");
                    page.unreadable.push(unreadable);
                }
            }
        }
        Ok(page)
    }
}

//! Parameters and JSON responses of the ECS API, and their conversion to the model.

pub mod disk;
pub mod health;
pub mod instance;
pub mod params;
pub mod snapshot;
pub mod snapshot_group;
pub mod spec;
pub mod stock;
pub mod tag;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::action::{Page, Unreadable};
use crate::model::read::list;

/// Parses the JSON of a response. Fields that are null or empty are removed and count as missing.
pub fn parse(body: &[u8]) -> serde_json::Result<Value> {
    let mut json = serde_json::from_slice(body)?;
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

pub trait Row: DeserializeOwned {
    /// The field of the response with the list.
    const LIST: &'static str;
    /// The field of a row with the resource id.
    const ID: &'static str;

    /// Parses a row without its empty fields.
    fn parse(row: Value) -> serde_json::Result<Self> {
        serde_json::from_value(row)
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
            match R::parse(row) {
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

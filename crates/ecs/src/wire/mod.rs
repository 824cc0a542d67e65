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

use std::convert::Infallible;
use std::str::FromStr;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::action::{Page, Unreadable};

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

/// A row of a list.
pub trait Row: DeserializeOwned {
    type Model;
    /// The field of the response with the list.
    const LIST: &'static str;
    /// The field of a row with the resource id.
    const ID: &'static str;

    fn into_model(self) -> Self::Model;
}

/// A response with a list of rows. A malformed row is reported by its id and does not affect the others.
#[derive(Debug)]
pub struct Described<R: Row>(pub Page<R::Model>);

impl<'de, R: Row> Deserialize<'de> for Described<R> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let mut members = Map::deserialize(json)?;
        let list = members.remove(R::LIST);
        let list = list.ok_or_else(|| D::Error::missing_field(R::LIST))?;
        let List(rows) = List::<Value>::deserialize(list).map_err(D::Error::custom)?;
        let next = members.remove("NextToken").map(String::deserialize);
        let next = next.transpose().map_err(D::Error::custom)?;
        let mut page = Page::new(Vec::with_capacity(rows.len()), next);
        for row in rows {
            let id = row.get(R::ID).and_then(Value::as_str).map(str::to_owned);
            match R::deserialize(row) {
                Ok(row) => page.rows.push(row.into_model()),
                Err(error) => {
                    let reason = error.to_string();
                    let unreadable = Unreadable { id, reason };
                    tracing::warn!(error = %unreadable, "the cloud returned a malformed row");
                    page.unreadable.push(unreadable);
                }
            }
        }
        Ok(Self(page))
    }
}

/// An enumeration that may have values unknown to the model.
#[derive(Debug)]
struct Enum<T>(T);

impl<'de, T: FromStr<Err = Infallible>> Deserialize<'de> for Enum<T> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let Ok(value) = String::deserialize(json)?.parse();
        Ok(Self(value))
    }
}

/// A number, which some API versions return as a string.
#[derive(Debug, Default)]
struct Number(u32);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(u32),
            Text(String),
        }
        match Either::deserialize(json)? {
            Either::Number(number) => Ok(Self(number)),
            Either::Text(text) => text.parse().map(Self).map_err(D::Error::custom),
        }
    }
}

/// A list wrapped in an object, as in `{"Disk": [...]}`. Empty if the object is missing or empty.
#[derive(Debug)]
struct List<T>(Vec<T>);

impl<'de, T: DeserializeOwned> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        // Optional: a row may lack the list.
        let members = Option::<Map<_, _>>::deserialize(json)?.unwrap_or_default();
        if members.is_empty() {
            return Ok(Self(Vec::new()));
        }
        let list = members.into_values().find(Value::is_array);
        let list = list.ok_or_else(|| D::Error::custom("no list in the object"))?;
        Vec::deserialize(list).map(Self).map_err(D::Error::custom)
    }
}

/// A timestamp with or without seconds; none if it is empty or malformed.
fn time(text: Option<&str>) -> Option<jiff::Timestamp> {
    let text = text?;
    text.parse()
        .ok()
        .or_else(|| format!("{}:00Z", text.strip_suffix('Z')?).parse().ok())
}

#[cfg(test)]
mod tests {
    #[test]
    fn timestamps_with_and_without_seconds_are_parsed() {
        assert_eq!(
            super::time(Some("2021-06-07T06:08Z")),
            super::time(Some("2021-06-07T06:08:00Z"))
        );
        assert_eq!(super::time(Some("")), None);
    }
}

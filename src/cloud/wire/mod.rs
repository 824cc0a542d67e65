//! The JSON and the parameters of the ECS API, and their translation into the model.

pub mod disk;
pub mod health;
pub mod instance;
pub mod params;
pub mod snapshot;
pub mod snapshot_group;
pub mod spec;
pub mod stock;
pub mod tag;

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use crate::base::chain::chain;
use crate::cloud::action::{Page, Unreadable};

/// The page of these rows. One that makes no sense is told apart, by the id in its field `id`: it
/// must not hide the others.
pub(crate) fn page<R: DeserializeOwned, T>(
    rows: Vec<serde_json::Value>,
    id: &str,
    next: Option<String>,
    read: impl Fn(R) -> Result<T, Malformed>,
) -> Page<T> {
    let mut page = Page::new(Vec::with_capacity(rows.len()), next);
    for row in rows {
        let named = row.get(id).and_then(|id| id.as_str()).map(str::to_owned);
        let outcome = serde_json::from_value(row)
            .map_err(|error| chain(&error))
            .and_then(|row| read(row).map_err(|error| chain(&error)));
        match outcome {
            Ok(row) => page.rows.push(row),
            Err(reason) => {
                let unreadable = Unreadable { id: named, reason };
                tracing::warn!(error = %unreadable, "the cloud sent a row that makes no sense");
                page.unreadable.push(unreadable);
            }
        }
    }
    page
}

/// Fields that the cloud leaves out, sends as null or sends empty are all the same to us: none.
pub(crate) fn filled<'de, D: Deserializer<'de>>(json: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(json)?.filter(|text| !text.is_empty()))
}

/// A number that some documents show as text.
pub(crate) fn number<'de, D: Deserializer<'de>>(json: D) -> Result<Option<u32>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Number(u32),
        Text(String),
    }
    match Option::<Either>::deserialize(json)? {
        None => Ok(None),
        Some(Either::Number(number)) => Ok(Some(number)),
        Some(Either::Text(text)) if text.is_empty() => Ok(None),
        Some(Either::Text(text)) => text.parse().map(Some).map_err(serde::de::Error::custom),
    }
}

/// A list in an object of its own, as in `{"Disk": [...]}`. An empty object has an empty one.
#[derive(Debug)]
pub struct List<T>(pub Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let fields = BTreeMap::<String, serde_json::Value>::deserialize(json)?;
        if fields.is_empty() {
            return Ok(Self::default());
        }
        let list = fields.into_values().find(serde_json::Value::is_array);
        let list = list.ok_or_else(|| serde::de::Error::custom("there is no list"))?;
        let rows = serde_json::from_value(list);
        rows.map(Self).map_err(serde::de::Error::custom)
    }
}

/// A row that cannot be what the API documents say.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    #[error("a row has a malformed id")]
    Id(#[source] crate::model::InvalidId),
    #[error("the row of {id} has no {field}")]
    Missing { id: String, field: &'static str },
}

/// A time as the API writes it, with or without seconds; none when it is empty or unreadable.
pub(crate) fn time(text: Option<&str>) -> Option<jiff::Timestamp> {
    let text = text?;
    text.parse()
        .ok()
        .or_else(|| format!("{}:00Z", text.strip_suffix('Z')?).parse().ok())
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_time_with_or_without_seconds_is_read() {
        assert_eq!(
            super::time(Some("2021-06-07T06:08Z")),
            super::time(Some("2021-06-07T06:08:00Z"))
        );
        assert_eq!(super::time(Some("")), None);
    }
}

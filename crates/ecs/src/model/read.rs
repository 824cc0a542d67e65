//! Fields of rows in the form of the API.

use jiff::Timestamp;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::size::Gib;
use super::tag::Tags;

pub(crate) trait Row: DeserializeOwned {
    /// The field of the response with the list.
    const LIST: &'static str;
    /// The field of a row with the resource id.
    const ID: &'static str;

    /// Parses a row, from which empty fields have been removed.
    fn parse(row: Value) -> serde_json::Result<Self> {
        serde_json::from_value(row)
    }
}

/// A number, which some API versions return as a string.
pub(super) fn number<'de, D: Deserializer<'de>>(json: D) -> Result<u32, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Number(u32),
        Text(String),
    }
    match Either::deserialize(json)? {
        Either::Number(number) => Ok(number),
        Either::Text(text) => text.parse().map_err(D::Error::custom),
    }
}

pub(super) fn size<'de, D: Deserializer<'de>>(json: D) -> Result<Gib, D::Error> {
    number(json).map(Gib)
}

/// A list wrapped in an object, as in `{"Disk": [...]}`. Empty if the object is empty.
pub(crate) fn list<'de, D: Deserializer<'de>, T: DeserializeOwned>(json: D) -> Result<Vec<T>, D::Error> {
    let members = Map::deserialize(json)?;
    if members.is_empty() {
        return Ok(Vec::new());
    }
    let list = members.into_values().find(Value::is_array);
    let list = list.ok_or_else(|| D::Error::custom("no list in the object"))?;
    Vec::deserialize(list).map_err(D::Error::custom)
}

/// The values of one field in the rows of such a list.
pub(crate) fn column<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    json: D,
    field: &str,
) -> Result<Vec<Option<T>>, D::Error> {
    let rows: Vec<Map<_, _>> = list(json)?;
    let values = rows.into_iter().map(|mut row| row.remove(field).map(T::deserialize));
    values
        .map(Option::transpose)
        .collect::<Result<_, _>>()
        .map_err(D::Error::custom)
}

/// Tags. Disks and snapshots spell them `TagKey` and `TagValue`, groups `Key` and `Value`.
pub(super) fn tags<'de, D: Deserializer<'de>>(json: D) -> Result<Tags, D::Error> {
    #[derive(Deserialize)]
    struct Row {
        #[serde(rename = "TagKey", alias = "Key")]
        key: String,
        #[serde(default, rename = "TagValue", alias = "Value")]
        value: String,
    }
    let rows: Vec<Row> = list(json)?;
    Ok(rows.into_iter().map(|row| (row.key, row.value)).collect())
}

/// A timestamp with or without seconds; none if it is malformed.
pub(super) fn time<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Timestamp>, D::Error> {
    let text = String::deserialize(json)?;
    let with_seconds = || format!("{}:00Z", text.strip_suffix('Z')?).parse().ok();
    Ok(text.parse().ok().or_else(with_seconds))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn timestamps_with_and_without_seconds_are_parsed() {
        assert_eq!(
            time(json!("2021-06-07T06:08Z")).unwrap(),
            time(json!("2021-06-07T06:08:00Z")).unwrap()
        );
        assert_eq!(time(json!("")).unwrap(), None);
    }

    #[test]
    fn tags_are_parsed_in_both_spellings_and_without_values() {
        let row = json!({"Tag": [{"TagKey": "a", "TagValue": "1"}, {"Key": "b", "Value": "2"}, {"TagKey": "c"}]});
        let tags = tags(row).unwrap();
        let text: Vec<_> = tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(text, ["a=1", "b=2", "c="]);
    }
}

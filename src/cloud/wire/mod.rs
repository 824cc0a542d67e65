//! The JSON and the parameters of the ECS API, and their translation into the model.

pub mod disk;
pub mod instance;
pub mod params;
pub mod snapshot;
pub mod stock;

use serde::{Deserialize, Deserializer};

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

/// A row that cannot be what the API documents say.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    /// An id has another form.
    #[error("a row has a malformed id")]
    Id(#[source] crate::model::InvalidId),
    /// A field is missing.
    #[error("the row of {id} has no {field}")]
    Missing {
        /// Whose row.
        id: String,
        /// The field.
        field: &'static str,
    },
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

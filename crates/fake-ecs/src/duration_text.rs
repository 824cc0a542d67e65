//! Durations as strings in JSON: `2s`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer, de::Error};

pub(crate) fn serialize<S: Serializer>(value: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&humantime::format_duration(*value))
}

pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    humantime::parse_duration(&text).map_err(|error| D::Error::custom(format!("{text:?} is not a duration: {error}")))
}

/// Optional durations as strings.
pub(crate) mod optional {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Text(#[serde(with = "super")] Duration);

    #[expect(clippy::ref_option, reason = "serde calls it with a reference")]
    pub(crate) fn serialize<S: Serializer>(value: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        value.map(Text).serialize(to)
    }

    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<Text>::deserialize(from)?.map(|text| text.0))
    }
}

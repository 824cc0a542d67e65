use std::collections::HashMap;
use std::str::FromStr;

use super::error::{Error, Result};
use crate::csi::proto::CapacityRange;
use crate::model::{Bytes, Filesystem, InvalidId, InvalidTuning, SizeRange, Tuning, context};

type Map = HashMap<String, String>;

pub(super) fn required<'a>(field: &'static str, value: &'a str) -> Result<&'a str> {
    if value.is_empty() {
        return Err(Error::missing(field));
    }
    Ok(value)
}

pub(super) fn name(value: &str) -> Result<String> {
    let value = required("name", value)?;
    if value.chars().any(char::is_control) {
        return Err(Error::value("name", value, "text without control characters"));
    }
    Ok(value.to_owned())
}

pub(crate) fn id<T: FromStr<Err = InvalidId>>(field: &'static str, value: &str) -> Result<T> {
    let parsed = required(field, value)?.parse();
    parsed.map_err(|invalid: InvalidId| Error::not_found(field, &invalid))
}

/// The ID of a resource to delete, in a required field; `None` if no resource can have it.
pub(crate) fn id_to_remove<T: FromStr>(field: &'static str, value: &str) -> Result<Option<T>> {
    Ok(required(field, value)?.parse().ok())
}

/// The ID in an optional field: `Some(None)` if empty, `None` if no resource can have it.
pub(super) fn optional_id<T: FromStr>(value: &str) -> Option<Option<T>> {
    match value {
        "" => Some(None),
        value => value.parse().ok().map(Some),
    }
}

/// A capacity range. CSI: 0 means unset.
pub(super) fn size_range(range: Option<&CapacityRange>) -> Result<SizeRange> {
    let range = range.copied().unwrap_or_default();
    let bytes = |field: &'static str, value: i64| {
        let bytes = u64::try_from(value).map_err(|_| Error::unsupported(field, format!("{value} is negative")))?;
        Ok::<_, Error>((bytes > 0).then_some(Bytes(bytes)))
    };
    let range = SizeRange {
        required: bytes("capacity_range.required_bytes", range.required_bytes)?,
        limit: bytes("capacity_range.limit_bytes", range.limit_bytes)?,
    };
    match (range.required, range.limit) {
        (Some(required), Some(limit)) if required > limit => Err(Error::unsupported(
            "capacity_range.limit_bytes",
            format!("{} is below required_bytes {}", limit.0, required.0),
        )),
        _ => Ok(range),
    }
}

pub(crate) fn filesystem(field: impl Into<String>, name: &str) -> Result<Filesystem> {
    let names = || Filesystem::ALL.map(Filesystem::as_str).join(", ");
    name.parse().map_err(|_| Error::value(field, name, names()))
}

pub(crate) fn invalid_tuning(entry: &str) -> impl FnOnce(InvalidTuning) -> Error {
    move |invalid| {
        let field = format!("{entry} {:?}", invalid.key);
        Error::value(field, &invalid.value, &*invalid.allowed)
    }
}

/// The filesystem for capabilities that name none.
pub(super) fn context_filesystem(volume_context: &Map) -> Result<Option<Filesystem>> {
    let name = context::get(volume_context, context::FS_TYPE);
    let field = || format!("volume_context {:?}", context::FS_TYPE);
    name.map(|name| filesystem(field(), name)).transpose()
}

pub(super) fn tuning(volume_context: &Map) -> Result<Tuning> {
    Tuning::of(volume_context).map_err(invalid_tuning("volume_context"))
}

/// The value of a boolean entry; `None` if absent.
pub(super) fn flag(field: &str, map: &Map, key: &str) -> Result<Option<bool>> {
    match context::get(map, key) {
        None => Ok(None),
        Some(text) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
        Some(text) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
        Some(text) => Err(Error::value(format!("{field} {key:?}"), text, "\"true\" or \"false\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{DiskId, Failure};

    #[test]
    fn an_empty_id_is_missing_and_an_invalid_id_is_not_found() {
        let refused = |id| super::id::<DiskId>("volume_id", id).unwrap_err();
        assert_eq!(refused(""), Error::missing("volume_id"));
        let odd = refused("reallyfakevolumeid");
        assert_eq!(odd.failure, Failure::NoSuchResource);
        let text = odd.to_string();
        assert!(text.contains("volume_id: \"reallyfakevolumeid\""), "{text}");
    }

    #[test]
    fn a_limit_below_the_required_size_is_rejected_with_both() {
        let refused = |required_bytes, limit_bytes| {
            let range = CapacityRange {
                required_bytes,
                limit_bytes,
            };
            size_range(Some(&range)).unwrap_err()
        };
        let text = refused(10, 5).to_string();
        assert!(text.contains("5 is below required_bytes 10"), "{text}");
        assert_eq!(
            refused(-1, 0).to_string(),
            "capacity_range.required_bytes -1 is negative"
        );
    }
}

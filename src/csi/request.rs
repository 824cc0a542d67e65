//! Fields of requests: present, typed, or refused by name.

use std::str::FromStr;

use tonic::Status;

use super::controller::paging::PageRequest;
use super::limits;
use super::proto::CapacityRange;
use super::status;
use crate::base::chain::chain;
use crate::disk::InvalidCursor;
use crate::model::{Bytes, Failure, InvalidId, SizeRange};

/// Longest name, id and token that CSI allows, in bytes (CSI, "Size Limits").
const LONGEST: usize = limits::TEXT;

/// The status of a request that is wrong by itself.
pub(crate) fn invalid(error: &(dyn std::error::Error + 'static)) -> Status {
    Status::invalid_argument(chain(error))
}

/// The text of a required field.
pub(crate) fn required<'a>(field: &str, value: &'a str) -> Result<&'a str, Status> {
    if value.is_empty() {
        return Err(Status::invalid_argument(format!(
            "{field} is required and empty"
        )));
    }
    Ok(value)
}

/// The text of a required name: at most 128 bytes, no control characters.
pub(crate) fn name(field: &str, value: &str) -> Result<String, Status> {
    let value = required(field, value)?;
    if value.len() > LONGEST || value.chars().any(char::is_control) {
        return Err(Status::invalid_argument(format!(
            "{field} {value:?} is {} bytes long or has control characters; at most {LONGEST} bytes \
             of text are allowed",
            value.len()
        )));
    }
    Ok(value.to_owned())
}

/// The id in a required field. A text of another form names nothing that exists, so it is
/// `NOT_FOUND`, never `INVALID_ARGUMENT`: the caller cannot know our ids' form.
pub(crate) fn id<T: FromStr<Err = InvalidId>>(field: &str, value: &str) -> Result<T, Status> {
    let value = required(field, value)?;
    value
        .parse()
        .map_err(|invalid: InvalidId| Status::not_found(format!("{field}: {invalid}")))
}

/// The sizes of a capacity range.
pub(crate) fn size_range(range: Option<&CapacityRange>) -> Result<SizeRange, Status> {
    let Some(range) = range else {
        return Ok(SizeRange::default());
    };
    let bytes = |field: &str, value: i64| {
        let refuse =
            |_| Status::invalid_argument(format!("capacity_range.{field} {value} is negative"));
        // CSI: 0 means unset.
        Ok::<_, Status>(
            Some(u64::try_from(value).map_err(refuse)?)
                .filter(|v| *v > 0)
                .map(Bytes),
        )
    };
    let range = SizeRange {
        required: bytes("required_bytes", range.required_bytes)?,
        limit: bytes("limit_bytes", range.limit_bytes)?,
    };
    match range {
        SizeRange {
            required: Some(required),
            limit: Some(limit),
        } if required > limit => Err(Status::invalid_argument(format!(
            "capacity_range.limit_bytes {} is below required_bytes {}",
            limit.0, required.0
        ))),
        range => Ok(range),
    }
}

/// Which page of a listing. CSI: `max_entries` 0 is no limit, and a `starting_token` that is not valid is `ABORTED`.
pub(crate) fn page(max_entries: i32, token: &str) -> Result<PageRequest, Status> {
    let refuse = |_| Status::invalid_argument(format!("max_entries {max_entries} is negative"));
    let max_entries = usize::try_from(max_entries).map_err(refuse)?;
    if token.len() > LONGEST {
        return Err(Status::aborted(format!(
            "starting_token has {} bytes and was not given out by this driver; list again from the \
             start",
            token.len()
        )));
    }
    let after = if token.is_empty() {
        None
    } else {
        let invalid = |error: InvalidCursor| status::named(Failure::StaleToken, &error.to_string());
        Some(token.parse().map_err(invalid)?)
    };
    Ok(PageRequest {
        after,
        max_entries: Some(max_entries).filter(|most| *most > 0),
    })
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;
    use crate::model::DiskId;

    #[test]
    fn an_empty_field_is_invalid_and_an_odd_id_is_not_found() {
        assert_eq!(
            id::<DiskId>("volume_id", "").unwrap_err().code(),
            Code::InvalidArgument
        );
        let odd = id::<DiskId>("volume_id", "reallyfakevolumeid").unwrap_err();
        assert_eq!(odd.code(), Code::NotFound);
        assert!(
            odd.message().contains("volume_id: \"reallyfakevolumeid\""),
            "{}",
            odd.message()
        );
    }

    #[test]
    fn a_limit_below_the_requirement_is_refused_with_both() {
        let range = CapacityRange {
            required_bytes: 10,
            limit_bytes: 5,
        };
        let refused = size_range(Some(&range)).unwrap_err();
        assert!(refused.message().contains("5 is below required_bytes 10"));
        let negative = CapacityRange {
            required_bytes: -1,
            limit_bytes: 0,
        };
        assert_eq!(
            size_range(Some(&negative)).unwrap_err().code(),
            Code::InvalidArgument
        );
    }
}

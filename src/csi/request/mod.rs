//! Parses CSI requests into the inputs of the services, one function per RPC, before any side effect. Secrets are not
//! passed on: the driver does not use them.

use std::time::Duration;

use tonic::{Request, Response, Status};

pub(super) mod capability;
pub(super) mod create_volume;
pub mod error;
pub(super) mod field;
pub(super) mod limits;
pub(super) mod node;
pub(super) mod page;
pub(super) mod snapshot;
mod topology;
pub(super) mod validate;
pub(super) mod volume;

use self::error::Result;
use self::limits::Limited;
pub use self::topology::DriverLocation;
use super::proto::CreateVolumeRequest;
use crate::base::Deadline;
use crate::disk::NewDisk;

pub(super) type RpcResult<T> = std::result::Result<Response<T>, Status>;

pub fn new_disk(message: &CreateVolumeRequest, location: &DriverLocation) -> Result<NewDisk> {
    message.check()?;
    Ok(create_volume::create(message, location)?.new)
}

/// The deadline of a call, and its parsed request.
pub(super) fn read<M: Limited, T>(request: &Request<M>, parse: impl FnOnce(&M) -> Result<T>) -> Result<(Deadline, T)> {
    let deadline = deadline(request);
    request.get_ref().check()?;
    Ok((deadline, parse(request.get_ref())?))
}

/// Deadline of calls without one: longer than any single step of the cloud.
const DEFAULT: Duration = Duration::from_secs(120);

/// Subtracted from the caller's timeout, so that the response, which names the pending step, arrives
/// before the caller's own `DEADLINE_EXCEEDED`.
const MARGIN: Duration = Duration::from_millis(250);

/// The caller's deadline, from the `grpc-timeout` header.
fn deadline<T>(request: &Request<T>) -> Deadline {
    let header = request.metadata().get("grpc-timeout");
    let text = header.and_then(|value| value.to_str().ok());
    match text.and_then(parse_timeout) {
        Some(timeout) => Deadline::after(timeout.saturating_sub(MARGIN.min(timeout / 4))),
        None => Deadline::after(DEFAULT),
    }
}

/// The header value: up to eight digits and a unit (gRPC over HTTP/2, `Timeout`).
pub(super) fn parse_timeout(value: &str) -> Option<Duration> {
    let (unit_at, unit) = value.char_indices().next_back()?;
    let digits = &value[..unit_at];
    if digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let amount: u64 = digits.parse().ok()?;
    Some(match unit {
        'H' => Duration::from_secs(amount * 3600),
        'M' => Duration::from_secs(amount * 60),
        'S' => Duration::from_secs(amount),
        'm' => Duration::from_millis(amount),
        'u' => Duration::from_micros(amount),
        'n' => Duration::from_nanos(amount),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_deadline_is_before_the_callers_own() {
        let mut request = Request::new(());
        request.metadata_mut().insert("grpc-timeout", "10S".parse().unwrap());
        assert_eq!(deadline(&request).remaining(), Duration::from_millis(9750));
        assert_eq!(deadline(&Request::new(())).remaining(), DEFAULT);
    }

    #[test]
    fn every_unit_is_parsed_and_invalid_values_are_ignored() {
        assert_eq!(parse_timeout("15000m"), Some(Duration::from_secs(15)));
        assert_eq!(parse_timeout("99999999n"), Some(Duration::from_nanos(99_999_999)));
        for invalid in ["", "S", "1x", "-1S", "+1S", "123456789S", "1é"] {
            assert_eq!(parse_timeout(invalid), None, "{invalid}");
        }
    }
}

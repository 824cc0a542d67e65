//! CSI clients of the demo.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status};

use crate::base::Deadline;
use crate::csi::proto::CapacityRange;
use crate::model::Gib;

pub(super) const SIZE: Gib = Gib(20);
pub(super) const GROWN: Gib = Gib(30);

/// Timeout of a step, like `--timeout` of a sidecar.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Connects to a socket as soon as it is served.
pub(super) async fn connect(socket: &Path) -> anyhow::Result<Channel> {
    let endpoint = Endpoint::try_from(format!("unix://{}", socket.display()))?;
    let deadline = Deadline::after(Duration::from_secs(10));
    let mut tick = tokio::time::interval(Duration::from_millis(10));
    loop {
        tick.tick().await;
        match endpoint.connect().await {
            Ok(channel) => return Ok(channel),
            Err(error) if deadline.has_passed() => {
                return Err(error).with_context(|| format!("no server on {}", socket.display()));
            }
            Err(_) => {}
        }
    }
}

/// A request with a deadline.
pub(super) fn request<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(CALL_TIMEOUT);
    request
}

/// The response to a call; a status is a readable error.
pub(super) async fn response<T>(call: impl Future<Output = Result<Response<T>, Status>>) -> anyhow::Result<T> {
    let response = call.await.map(Response::into_inner);
    response.map_err(|status| anyhow::anyhow!("{:?}: {}", status.code(), status.message()))
}

pub(super) fn at_least(size: Gib) -> CapacityRange {
    CapacityRange {
        required_bytes: size.bytes().to_i64(),
        limit_bytes: 0,
    }
}

pub(super) fn gib(bytes: i64) -> String {
    let mib = bytes / (1 << 20);
    format!("{}.{} GiB", mib / 1024, mib % 1024 * 10 / 1024)
}

pub(super) fn text(path: &Path) -> anyhow::Result<String> {
    Ok(path.to_str().context("the path is not UTF-8")?.to_owned())
}

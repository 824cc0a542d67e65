//! HTTP responses.

use std::convert::Infallible;
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::task::TaskTracker;

use crate::api_error::ApiError;
use crate::fault::ResponseFault;

pub(super) type Body = BoxBody<Bytes, Infallible>;

/// The outcome of a request.
#[derive(Debug)]
pub(super) enum HttpOutcome {
    Respond(Response),
    /// The connection ends without a response.
    Reset,
    /// The connection stays open without a response.
    Hang,
}

impl HttpOutcome {
    pub(super) fn later(self, delay: Duration) -> Self {
        match self {
            Self::Respond(mut response) => {
                response.delay += delay;
                Self::Respond(response)
            }
            other => other,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
    /// The delay before the response is sent.
    pub(super) delay: Duration,
    /// The duration over which the body is sent.
    pub(super) drip: Duration,
}

/// The number of parts of a slow body.
const BITS: u32 = 20;

impl Response {
    fn new(status: u16, kind: &str, body: Vec<u8>) -> Self {
        Self {
            status,
            headers: vec![("content-type", kind.to_owned())],
            body,
            delay: Duration::ZERO,
            drip: Duration::ZERO,
        }
    }

    pub(super) fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(super) fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Waits for the delay and converts the response for hyper.
    pub(super) async fn send(self, tasks: &TaskTracker) -> hyper::Response<Body> {
        tokio::time::sleep(self.delay).await;
        let body = if self.drip.is_zero() {
            Full::new(Bytes::from(self.body)).boxed()
        } else {
            drip(self.body, self.drip, tasks)
        };
        let mut response = hyper::Response::new(body);
        *response.status_mut() =
            hyper::StatusCode::from_u16(self.status).unwrap_or(hyper::StatusCode::INTERNAL_SERVER_ERROR);
        for (name, value) in self.headers {
            if let Ok(value) = value.parse() {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}

/// A body that is sent in parts. It ends when the client disconnects.
fn drip(body: Vec<u8>, whole: Duration, tasks: &TaskTracker) -> Body {
    let (sender, receiver) = mpsc::channel(1);
    let size = body.len().div_ceil(usize::try_from(BITS).unwrap_or(1)).max(1);
    tasks.spawn(async move {
        for bit in body.chunks(size) {
            if sender.send(Bytes::copy_from_slice(bit)).await.is_err() {
                return;
            }
            tokio::time::sleep(whole / BITS).await;
        }
    });
    let frames = ReceiverStream::new(receiver).map(|bit| Ok(Frame::data(bit)));
    BodyExt::boxed(StreamBody::new(frames))
}

pub(super) fn json(status: u16, value: &Value) -> Response {
    Response::new(status, "application/json", value.to_string().into_bytes())
}

pub(super) fn text(status: u16, text: impl Into<String>) -> Response {
    Response::new(status, "text/plain", text.into().into_bytes())
}

fn xml(status: u16, text: String) -> Response {
    Response::new(status, "text/xml;charset=utf-8", text.into_bytes())
}

/// Faults and delays of a response.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Delivery {
    pub(super) response_fault: Option<ResponseFault>,
    pub(super) delay: Duration,
    pub(super) drip: Duration,
}

/// The response of an action, with its faults and delays.
pub(super) fn finish(status: u16, value: &Value, xml_root: Option<&str>, delivery: Delivery) -> HttpOutcome {
    let whole = match xml_root {
        None => json(status, value),
        Some(root) => xml(status, super::xml::document(root, value)),
    };
    let mut response = match delivery.response_fault {
        None => whole,
        Some(ResponseFault::Reset) => return HttpOutcome::Reset,
        Some(ResponseFault::Hang) => return HttpOutcome::Hang,
        Some(ResponseFault::Empty) => Response::new(status, "application/json", Vec::new()),
        Some(ResponseFault::Truncated) => {
            let body = value.to_string();
            let half = body.get(..body.len() / 2).unwrap_or("{\"RequestId\":");
            Response::new(status, "application/json", half.as_bytes().to_vec())
        }
        Some(ResponseFault::Html) => {
            let page = "<html><head><title>502 Bad Gateway</title></head><body></body></html>";
            Response::new(502, "text/html", page.as_bytes().to_vec())
        }
    };
    response.delay = delivery.delay;
    response.drip = delivery.drip;
    HttpOutcome::Respond(response)
}

/// Adds the headers with the time that a throttled caller must wait, in milliseconds: one for the
/// vendor's older SDKs, one for the newer ones.
pub(super) fn with_rate_limit(outcome: HttpOutcome, error: &ApiError) -> HttpOutcome {
    let (response, wait) = match (outcome, error.wait) {
        (HttpOutcome::Respond(response), Some(wait)) => (response, wait),
        (outcome, _) => return outcome,
    };
    let name = match error.code.as_str() {
        "Throttling.User" => "x-ratelimit-user",
        _ => "x-ratelimit-user-api",
    };
    // Never zero, which means no wait.
    let millis = wait.as_millis().max(1);
    let limits = format!("Limit:0,Remain:0,TimeLeft:{millis},Reset:0");
    let response = response.with_header(name, limits);
    HttpOutcome::Respond(response.with_header("x-acs-retry-after", millis.to_string()))
}

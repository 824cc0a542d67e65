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

use super::render;
use crate::api_error::ApiError;
use crate::fault::ResponseFault;

pub(super) type Body = BoxBody<Bytes, Infallible>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exchange {
    Response(Response),
    /// The connection ends without a response.
    Reset,
    /// The connection stays open without a response.
    Hang,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    /// The delay before the response is sent.
    pub delay: Duration,
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

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Delivery {
    pub(super) response_fault: Option<ResponseFault>,
    pub(super) delay: Duration,
    pub(super) drip: Duration,
}

/// The request that an action responds to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin<'a> {
    pub(super) action: &'a str,
    /// Whether the response is JSON instead of XML.
    pub(super) json: bool,
    pub(super) host: &'a str,
}

/// The response of an action, with its faults and delays.
pub(super) fn finish(
    origin: Origin<'_>,
    outcome: Result<Value, ApiError>,
    request_id: &str,
    delivery: Delivery,
) -> Exchange {
    let (status, root, value) = match &outcome {
        Ok(value) => {
            let mut value = value.clone();
            value["RequestId"] = request_id.into();
            (200, format!("{}Response", origin.action), value)
        }
        Err(error) => {
            let value = render::error(error, request_id, origin.host);
            (error.status, "Error".to_owned(), value)
        }
    };
    let mut response = match delivery.response_fault {
        None if origin.json => json(status, &value),
        None => {
            let text = super::xml::document(&root, &value);
            Response::new(status, "text/xml;charset=utf-8", text.into_bytes())
        }
        Some(ResponseFault::Reset) => return Exchange::Reset,
        Some(ResponseFault::Hang) => return Exchange::Hang,
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
    if let Err(error) = outcome
        && let Some(wait) = error.wait
    {
        // The time that a throttled caller must wait, in milliseconds: one header for the vendor's older SDKs, one for
        // the newer ones. Never zero, which means no wait.
        let name = match error.code.as_str() {
            "Throttling.User" => "x-ratelimit-user",
            _ => "x-ratelimit-user-api",
        };
        let millis = wait.as_millis().max(1);
        let limits = format!("Limit:0,Remain:0,TimeLeft:{millis},Reset:0");
        response
            .headers
            .extend([(name, limits), ("x-acs-retry-after", millis.to_string())]);
    }
    Exchange::Response(response)
}

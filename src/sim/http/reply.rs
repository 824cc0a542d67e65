//! What goes back over the wire.

use std::convert::Infallible;
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

use crate::base::Tasks;
use crate::sim::reply::{Mangle, Refusal};

/// What hyper sends.
pub(super) type Body = BoxBody<Bytes, Infallible>;

/// An answer, or none.
#[derive(Debug)]
pub(super) enum Wired {
    Respond(Response),
    /// The connection ends without one.
    Reset,
    /// The connection stays open without one.
    Hang,
}

impl Wired {
    /// The same answer, later.
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

/// An answer: what it says, and how it comes.
#[derive(Debug, Clone)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
    /// How long nothing is sent.
    pub(super) delay: Duration,
    /// How long the body then takes to come, bit by bit.
    pub(super) drip: Duration,
}

/// In how many bits a body comes that drips.
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

    /// Waits as long as wanted, and then is what hyper sends.
    pub(super) async fn send(self, tasks: &Tasks) -> hyper::Response<Body> {
        tokio::time::sleep(self.delay).await;
        let body = if self.drip.is_zero() {
            Full::new(Bytes::from(self.body)).boxed()
        } else {
            drip(self.body, self.drip, tasks)
        };
        let mut response = hyper::Response::new(body);
        *response.status_mut() = hyper::StatusCode::from_u16(self.status)
            .unwrap_or(hyper::StatusCode::INTERNAL_SERVER_ERROR);
        for (name, value) in self.headers {
            if let Ok(value) = value.parse() {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}

/// A body whose bits come one after another. It ends when nobody reads it any more.
fn drip(body: Vec<u8>, whole: Duration, tasks: &Tasks) -> Body {
    let (sender, receiver) = mpsc::channel(1);
    let size = body
        .len()
        .div_ceil(usize::try_from(BITS).unwrap_or(1))
        .max(1);
    tasks.start(async move {
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

/// How an answer of an action comes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Manner {
    pub(super) mangle: Option<Mangle>,
    pub(super) delay: Duration,
    pub(super) drip: Duration,
}

/// An answer of an action, spoilt and late as wanted.
pub(super) fn finish(status: u16, value: &Value, xml_root: Option<&str>, manner: Manner) -> Wired {
    let whole = match xml_root {
        None => json(status, value),
        Some(root) => xml(status, super::xml::document(root, value)),
    };
    let mut response = match manner.mangle {
        None => whole,
        Some(Mangle::Reset) => return Wired::Reset,
        Some(Mangle::Hang) => return Wired::Hang,
        Some(Mangle::Empty) => Response::new(status, "application/json", Vec::new()),
        Some(Mangle::Truncated) => {
            let body = value.to_string();
            let half = body.get(..body.len() / 2).unwrap_or("{\"RequestId\":");
            Response::new(status, "application/json", half.as_bytes().to_vec())
        }
        Some(Mangle::Html) => {
            let page = "<html><head><title>502 Bad Gateway</title></head><body></body></html>";
            Response::new(502, "text/html", page.as_bytes().to_vec())
        }
    };
    response.delay = manner.delay;
    response.drip = manner.drip;
    Wired::Respond(response)
}

/// The headers by which a throttled caller learns how long to stay away, in milliseconds: the one
/// that the vendor's older SDKs read, and the one that its newer ones read.
pub(super) fn with_rate_limit(wired: Wired, refusal: &Refusal) -> Wired {
    let (response, wait) = match (wired, refusal.wait) {
        (Wired::Respond(response), Some(wait)) => (response, wait),
        (wired, _) => return wired,
    };
    let name = match refusal.code.as_str() {
        "Throttling.User" => "x-ratelimit-user",
        _ => "x-ratelimit-user-api",
    };
    // Never zero, which would mean nothing.
    let millis = wait.as_millis().max(1);
    let limits = format!("Limit:0,Remain:0,TimeLeft:{millis},Reset:0");
    let response = response.with_header(name, limits);
    Wired::Respond(response.with_header("x-acs-retry-after", millis.to_string()))
}

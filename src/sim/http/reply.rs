//! What goes back over the wire.

use std::time::Duration;

use serde_json::Value;
use wiremock::ResponseTemplate;

use crate::sim::reply::{Mangle, Refusal};

/// An answer, or none.
#[derive(Debug)]
pub(super) enum Wired {
    Respond(ResponseTemplate),
    /// The connection ends without one.
    Reset,
}

pub(super) fn json(status: u16, value: &Value) -> ResponseTemplate {
    ResponseTemplate::new(status).set_body_json(value)
}

pub(super) fn text(status: u16, text: impl Into<String>) -> ResponseTemplate {
    ResponseTemplate::new(status).set_body_string(text.into())
}

pub(super) fn xml(status: u16, text: String) -> ResponseTemplate {
    ResponseTemplate::new(status).set_body_raw(text.into_bytes(), "text/xml;charset=utf-8")
}

/// An answer of an action, spoilt and late as wanted.
pub(super) fn finish(
    status: u16,
    value: &Value,
    xml_root: Option<&str>,
    mangle: Option<Mangle>,
    delay: Duration,
) -> Wired {
    let whole = match xml_root {
        None => json(status, value),
        Some(root) => xml(status, super::xml::document(root, value)),
    };
    let response = match mangle {
        None => whole,
        Some(Mangle::Reset) => return Wired::Reset,
        Some(Mangle::Empty) => ResponseTemplate::new(status),
        Some(Mangle::Truncated) => {
            let body = value.to_string();
            let half = body.get(..body.len() / 2).unwrap_or("{\"RequestId\":");
            ResponseTemplate::new(status).set_body_raw(half.as_bytes(), "application/json")
        }
        Some(Mangle::Html) => ResponseTemplate::new(502).set_body_raw(
            "<html><head><title>502 Bad Gateway</title></head><body></body></html>",
            "text/html",
        ),
    };
    Wired::Respond(if delay.is_zero() {
        response
    } else {
        response.set_delay(delay)
    })
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
    let value = format!("Limit:0,Remain:0,TimeLeft:{},Reset:0", wait.as_millis());
    // Never zero, which would mean nothing.
    let millis = wait.as_millis().max(1).to_string();
    let response = response.insert_header(name, value);
    Wired::Respond(response.insert_header("x-acs-retry-after", millis))
}

//! Reads a page of the HTTP port of another process.

use std::time::Duration;

use anyhow::{Context, bail};
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use crate::base::{Deadline, error_chain};

const TIMEOUT: Duration = Duration::from_secs(15);

/// A history has 32 calls of a few KiB.
const MAX_PAGE: usize = 4 << 20;

/// The start of the response of a process of the driver for a page that it does not have.
pub(crate) const NOT_FOUND_START: &str = "not found; the pages are";

/// The text of a page of `http://AUTHORITY`; none if it does not exist.
pub(super) async fn get(authority: &str, path: &str, token: Option<&str>) -> anyhow::Result<Option<String>> {
    let exchange = exchange(authority, path, token);
    let exchanged = Deadline::after(TIMEOUT).bound(exchange).await;
    let (status, text) = exchanged.context("no response in time")??;
    match status {
        StatusCode::OK => Ok(Some(text)),
        StatusCode::NOT_FOUND if is_own(&text) => Ok(None),
        StatusCode::NOT_FOUND => bail!("it is not the HTTP port of a diskplugin process: {status}"),
        status => bail!("{status}: {}", text.trim()),
    }
}

/// Whether a response with the status 404 is one of a process of the driver.
fn is_own(text: &str) -> bool {
    let page = serde_json::from_str::<Value>(text);
    text.starts_with(NOT_FOUND_START) || page.is_ok_and(|page| page["error"].is_string())
}

async fn exchange(authority: &str, path: &str, token: Option<&str>) -> anyhow::Result<(StatusCode, String)> {
    let mut request = Request::get(format!("http://{authority}{path}"));
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let client = Client::builder(TokioExecutor::new()).build_http();
    let response = client.request(request.body(Empty::<Bytes>::new())?).await;
    let failed = |error: &Error| {
        if error.is_connect() {
            "cannot connect"
        } else {
            "no response"
        }
    };
    let (head, body) = response
        .map_err(|error| anyhow::anyhow!("{}: {}", failed(&error), error_chain(&error)))?
        .into_parts();
    let body = Limited::new(body, MAX_PAGE).collect().await;
    let body = body.map_err(|error| anyhow::anyhow!("cannot read the response: {error}"))?;
    Ok((head.status, String::from_utf8_lossy(&body.to_bytes()).into_owned()))
}

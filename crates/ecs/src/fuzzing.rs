//! The parsers of private modules, for the targets in `fuzz/`. Compiled only with `--cfg fuzzing`.

use http::StatusCode;
use serde::de::DeserializeOwned;

use crate::Error;
use crate::credential::{CredentialError, Credentials, instance};
use crate::metadata;
use crate::request_secrets::RequestSecrets;
use crate::response::Response;
use crate::sign::SignedRequest;

fn response(status: u16, limit: Option<&[u8]>, body: &[u8]) -> Option<Response> {
    let mut response = http::Response::builder().status(StatusCode::from_u16(status).ok()?);
    if let Some(limit) = limit {
        response = response.header("x-ratelimit-user-api", limit);
    }
    response.body(body.to_vec().into()).ok().map(Response)
}

fn secrets(credentials: &Credentials) -> RequestSecrets {
    let signed = SignedRequest {
        query: String::new(),
        headers: vec![],
        signature: "the signature of the request".to_owned(),
    };
    RequestSecrets::from_request(credentials, &signed)
}

/// The result of an action, as the client parses it.
pub fn parse<T: DeserializeOwned>(
    action: &'static str,
    status: u16,
    body: &[u8],
    credentials: &Credentials,
) -> Option<Result<T, Error>> {
    Some(response(status, None, body)?.parse(action, &secrets(credentials)))
}

/// The error of a response with this rate limit header, and whether the response rejects the time of the request.
pub fn error(
    action: &'static str,
    status: u16,
    limit: &[u8],
    body: &[u8],
    credentials: &Credentials,
) -> Option<(Error, bool)> {
    let response = response(status, Some(limit), body)?;
    Some((response.error(action, &secrets(credentials)), response.rejects_time()))
}

/// An item of an identity document.
pub fn item(document: &str, key: &str) -> Option<String> {
    metadata::item(&metadata::items(document), key)
}

pub fn first_role(listed: &str) -> Option<String> {
    metadata::first_role(listed)
}

pub fn role_credentials(document: &str) -> Result<Credentials, CredentialError> {
    instance::parse(document, "the role")
}

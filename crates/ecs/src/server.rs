//! The address of a service of the cloud, and requests to it.

use std::str::FromStr;

use http::{Request, Uri};
use url::Url;

use super::error::{Condition, Error};
use super::response::Response;
use super::sign::SignedRequest;
use super::tls::{self, Trust};
use super::transport::{Action, Lost, Transport};
use crate::base::{Deadline, without_user_info};

#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Shown without user information, which can be a password.
    #[error(
        "{0:?} is not an endpoint of the form http://HOST[:PORT] or https://HOST[:PORT], without user and password"
    )]
    Endpoint(String),
    /// Usually the certificate bundle is missing.
    #[error("cannot build the HTTP client")]
    Client(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The endpoint of a service of the cloud.
#[derive(Debug, Clone)]
pub struct Server {
    pub(super) url: Url,
    /// The value of the `Host` header, which the V3 signature covers.
    pub(super) host: String,
    /// None: the authorities of the system.
    pub(super) trust: Option<Trust>,
}

impl FromStr for Server {
    type Err = BuildError;

    /// `https://host` or, for tests, `http://host:port`.
    fn from_str(endpoint: &str) -> Result<Self, BuildError> {
        let invalid = || BuildError::Endpoint(without_user_info(endpoint));
        let mut url = Url::parse(endpoint).map_err(|_| invalid())?;
        let is_http = matches!(url.scheme(), "http" | "https");
        // User information would never be sent, but shown in reports.
        let has_user = !url.username().is_empty() || url.password().is_some();
        if !is_http || has_user {
            return Err(invalid());
        }
        let host = url.authority().to_owned();
        url.set_path("/");
        // A URL can have characters in its host that no request can have.
        url.as_str().parse::<Uri>().map_err(|_| invalid())?;
        let trust = None;
        Ok(Self { url, host, trust })
    }
}

impl Server {
    pub fn with_trust(self, trust: Option<Trust>) -> Self {
        Self { trust, ..self }
    }

    /// Sends a signed request and reads the complete response.
    pub(super) async fn post(
        &self,
        transport: &dyn Transport,
        action: &'static str,
        signed: SignedRequest,
        body: String,
        deadline: Deadline,
    ) -> Result<Response, Error> {
        let mut url = self.url.clone();
        url.set_query(Some(&signed.query));
        let mut request = Request::post(url.as_str()).extension(Action(action));
        for (name, value) in signed.headers {
            request = request.header(name, value);
        }
        let request = request.body(body);
        let request = request.map_err(|error| self.lost(action, Lost::not_sent(error)))?;
        let response = transport.send(request, deadline).await;
        response.map(Response).map_err(|lost| self.lost(action, lost))
    }

    /// The error of a lost response. It contains only the host, because the URL contains key id and signature.
    fn lost(&self, action: &'static str, lost: Lost) -> Error {
        let condition = match tls::rejection(&*lost.source) {
            Some(condition) => condition,
            None if lost.was_sent => Condition::Ambiguous,
            None => Condition::Unreachable,
        };
        let scheme = self.url.scheme();
        let error = Error::of(condition, action)
            .with_message(format!("no response from {scheme}://{}", self.host))
            .with_source(lost.source);
        match lost.status {
            Some(status) => error.with_status(status),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_has_no_user_information() {
        for valid in [
            "https://ecs.example",
            "http://127.0.0.1:8480/",
            "http://[::1]:1",
            "http://127.0.0.1:8480/imds/i-1",
        ] {
            assert!(valid.parse::<Server>().is_ok(), "{valid}");
        }
        for invalid in [
            "ecs.example",
            "ftp://ecs.example",
            "https://name@ecs.example",
            "https://name:hidden@ecs.example",
            "https://:hidden@ecs.example",
            "https://ecs.{region}.example",
        ] {
            let error = invalid.parse::<Server>().unwrap_err().to_string();
            assert!(!error.contains("hidden"), "{error}");
        }
    }
}

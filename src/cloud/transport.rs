//! One attempt at one call: credentials, signature, HTTP, answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::confidential::Confidential;
use super::credential::renewal::{look_for_others, others_than};
use super::credential::{CredentialError, Credentials, Provide};
use super::error::{Error, Kind};
use super::sign::{API_VERSION, Attempt, Scheme};
use super::wire::params::Params;
use crate::base::Clock;
use crate::model::RegionId;

/// No answer within this time counts as lost, so that a dead connection does not eat the deadline.
const PATIENCE: Duration = Duration::from_secs(15);
const CONNECT: Duration = Duration::from_secs(5);

/// Signs and sends.
#[derive(Debug)]
pub struct Transport {
    http: Client,
    endpoint: Url,
    host: String,
    region: RegionId,
    scheme: Scheme,
    credentials: Arc<dyn Provide>,
    clock: Arc<dyn Clock>,
}

/// What a [`Transport`] needs.
#[derive(Debug)]
pub struct Settings {
    /// `https://host` or, for tests, `http://host:port`.
    pub endpoint: String,
    /// Sent with every call.
    pub region: RegionId,
    /// The signature.
    pub scheme: Scheme,
    /// Whose calls these are.
    pub credentials: Arc<dyn Provide>,
    /// Wall time of the signatures.
    pub clock: Arc<dyn Clock>,
}

/// Why there can be no transport.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The endpoint is no URL.
    #[error("{endpoint:?} is no endpoint: http://HOST[:PORT] or https://HOST[:PORT] is")]
    Endpoint {
        /// What was given.
        endpoint: String,
    },
    /// The HTTP client cannot be made: no certificate bundle, mostly.
    #[error("cannot build the HTTP client")]
    Client(#[source] reqwest::Error),
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Refusal {
    pub(super) code: Option<String>,
    pub(super) message: Option<String>,
    pub(super) request_id: Option<String>,
}

/// Which region was refused.
#[derive(Debug, thiserror::Error)]
#[error("the region is {0}")]
struct RefusedRegion(RegionId);

/// Whose credentials were refused.
#[derive(Debug, thiserror::Error)]
#[error("the credentials came from {0}")]
struct RefusedKey(Arc<str>);

impl Transport {
    /// A transport to the endpoint.
    ///
    /// # Errors
    /// When the endpoint is no URL, or the machine has no certificate bundle.
    pub fn new(settings: Settings) -> Result<Self, BuildError> {
        let (endpoint, host) = parse(&settings.endpoint)?;
        Ok(Self {
            http: http_client(&endpoint, PATIENCE)?,
            host,
            region: settings.region,
            scheme: settings.scheme,
            credentials: settings.credentials,
            clock: settings.clock,
            endpoint,
        })
    }

    /// The clock that signs, whose minutes the cloud counts calls by.
    pub(super) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// Sends the call once, signed anew. The caller bounds it by the deadline.
    ///
    /// # Errors
    /// Whatever went wrong, as [`Error`]; [`Kind::Ambiguous`] when the answer was lost.
    pub async fn attempt<T: DeserializeOwned>(
        &self,
        action: &'static str,
        params: &Params,
    ) -> Result<T, Error> {
        let url = self.endpoint.clone();
        let credentials = self.credentials.provide().await;
        let credentials = credentials
            .map_err(|error| no_credentials(action, error))?
            .ok_or_else(|| Error::new(Kind::Credentials, action))?;
        let params = self.with_region(params);
        let signed = self.scheme.sign(&Attempt {
            action,
            version: API_VERSION,
            params: &params,
            host: &self.host,
            credentials: &credentials,
            time: self.clock.now(),
            nonce: &uuid::Uuid::new_v4().simple().to_string(),
        });
        let confidential = Confidential::of(&credentials, &signed);
        let mut url = url;
        url.set_path("/");
        url.set_query(Some(&signed.query));
        let mut request = self.http.post(url);
        for (name, value) in signed.headers {
            request = request.header(name, value);
        }
        // The URL of a failed request carries key id and signature: it must not reach the error.
        let response = request
            .send()
            .await
            .map_err(|error| self.lost(action, error.without_url()))?;
        let status = response.status().as_u16();
        let hint = throttle_hint(response.headers());
        let body = response.bytes().await;
        let body =
            body.map_err(|error| self.lost(action, error.without_url()).with_status(status))?;
        if status == 200 && confidential.is_in(&body) {
            return Err(Error::new(Kind::Ambiguous, action)
                .with_status(status)
                .with_message("the answer repeats the request, and so is not looked at"));
        }
        if status == 200 {
            return serde_json::from_slice(&body).map_err(|error| {
                Error::new(Kind::Ambiguous, action)
                    .with_status(status)
                    .with_message("the answer cannot be read")
                    .with_source(error)
            });
        }
        let error = refused(action, status, &body, &confidential).with_wait(hint);
        Err(self.after_refusal(error, &credentials).await)
    }

    /// The error of a refused call, which names the region that was refused. Where the credentials were refused, it is [`Kind::Expired`], worth
    /// one more attempt, only if there are others now.
    async fn after_refusal(&self, refusal: Error, used: &Credentials) -> Error {
        let provider = &*self.credentials;
        let others = match refusal.kind() {
            Kind::Expired => others_than(used, provider).await,
            // The secret of a key does not change, but a mounted Secret may have been replaced between
            // its reading and the call, and the key been switched off since.
            Kind::Denied if is_about_the_key(&refusal) => look_for_others(used, provider).await,
            _ if refusal.is_of_region() => {
                return refusal.with_source(RefusedRegion(self.region.clone()));
            }
            _ => return refusal,
        };
        let kind = match others {
            Ok(Some(_)) => Kind::Expired,
            Ok(None) => Kind::Denied,
            Err(error) => return no_credentials(refusal.action(), error),
        };
        let origin = Arc::clone(&used.origin);
        refusal.with_kind(kind).with_source(RefusedKey(origin))
    }

    /// The error of an answer that did not come; a URL would carry the signature, so only the host.
    fn lost(&self, action: &'static str, error: reqwest::Error) -> Error {
        let kind = if error.is_connect() {
            Kind::Unreachable
        } else {
            Kind::Ambiguous
        };
        let scheme = self.endpoint.scheme();
        Error::new(kind, action)
            .with_message(format!("no answer from {scheme}://{}", self.host))
            .with_source(error)
    }

    fn with_region(&self, params: &Params) -> BTreeMap<String, String> {
        params
            .clone()
            .set("RegionId", &self.region)
            .as_map()
            .clone()
    }
}

impl Refusal {
    /// Without the parts that throw back what the request carried in confidence.
    pub(super) fn without(self, confidential: &Confidential) -> Self {
        let part = |text: Option<String>| confidential.unless_in(text?);
        // The gateway appends the text that it signed; the words before it are good.
        let left_out = || "(its words repeat the request, and are left out)".to_owned();
        let message = self.message.map(words);
        let message = message.map(|words| confidential.unless_in(words).unwrap_or_else(left_out));
        Self {
            code: part(self.code),
            message,
            request_id: part(self.request_id),
        }
    }

    fn error(self, action: &'static str, status: u16) -> Error {
        let code = self.code.unwrap_or_default();
        Error::answered(action, status, &code)
            .with_message(self.message.unwrap_or_default())
            .with_request_id(self.request_id.unwrap_or_default())
    }
}

/// The message without the string to sign that the gateway appends.
fn words(message: String) -> String {
    match message.split_once("server string to sign is:") {
        Some((words, _)) => words.trim_end().to_owned(),
        None => message,
    }
}

fn is_about_the_key(refusal: &Error) -> bool {
    refusal.has_code("SignatureDoesNotMatch") || refusal.has_code("InvalidAccessKeyId.Inactive")
}

/// The error of a call that could not be signed: nothing was sent.
fn no_credentials(action: &'static str, error: CredentialError) -> Error {
    if error.is_passing() {
        Error::new(Kind::Unreachable, action)
            .with_message("there are no valid credentials at the moment")
            .with_source(error)
    } else {
        Error::new(Kind::Credentials, action).with_source(error)
    }
}

/// A client for one endpoint, which no answer within `patience` counts as lost for.
pub(super) fn http_client(endpoint: &Url, patience: Duration) -> Result<Client, BuildError> {
    let mut http = Client::builder()
        .connect_timeout(CONNECT)
        .timeout(patience)
        // A signature is for one host: no other one is shown it.
        .redirect(Policy::none())
        .user_agent(concat!("diskplugin/", env!("CARGO_PKG_VERSION")));
    // A fake cloud on this machine is never behind the environment's proxy.
    if matches!(
        endpoint.host_str(),
        Some("localhost" | "127.0.0.1" | "[::1]")
    ) {
        http = http.no_proxy();
    }
    http.build().map_err(BuildError::Client)
}

/// Whether this is an endpoint.
///
/// # Errors
/// When it is no URL, or one of another protocol.
pub fn check_endpoint(text: &str) -> Result<(), BuildError> {
    parse(text).map(|_| ())
}

/// The endpoint, and its host as the `Host` header will carry it: the V3 signature covers it.
pub(super) fn parse(endpoint: &str) -> Result<(Url, String), BuildError> {
    let invalid = || BuildError::Endpoint {
        endpoint: endpoint.to_owned(),
    };
    let url = Url::parse(endpoint).map_err(|_| invalid())?;
    let name = url
        .host_str()
        .filter(|_| matches!(url.scheme(), "http" | "https"));
    let name = name.ok_or_else(invalid)?;
    let host = match url.port() {
        Some(port) => format!("{name}:{port}"),
        None => name.to_owned(),
    };
    Ok((url, host))
}

/// What an answer says that is no success. A proxy's page or an empty body leaves only the status;
/// JSON that stops in the middle is an answer that was lost, whatever its status.
fn refused(action: &'static str, status: u16, body: &[u8], confidential: &Confidential) -> Error {
    match serde_json::from_slice::<Refusal>(body) {
        Ok(refusal) => refusal.without(confidential).error(action, status),
        Err(error) if error.is_eof() && !body.is_empty() => Error::new(Kind::Ambiguous, action)
            .with_status(status)
            .with_message("the answer is cut off")
            .with_source(error),
        Err(_) => Refusal::default().error(action, status),
    }
}

/// How long the cloud asks to wait: the larger `TimeLeft` (milliseconds) of its two headers.
fn throttle_hint(headers: &reqwest::header::HeaderMap) -> Option<Duration> {
    ["x-ratelimit-user-api", "x-ratelimit-user"]
        .into_iter()
        .filter_map(|name| headers.get(name)?.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|field| field.trim().strip_prefix("TimeLeft:")?.trim().parse().ok())
        .map(Duration::from_millis)
        .max()
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderMap, HeaderValue};

    use super::*;
    use crate::cloud::credential::Credentials;
    use crate::cloud::sign::Signed;

    #[test]
    fn the_longer_wait_of_both_headers_counts() {
        let mut headers = HeaderMap::new();
        headers.insert(
            "x-ratelimit-user-api",
            HeaderValue::from_static("Limit:1,Remain:0,TimeLeft:2000,Reset:1"),
        );
        headers.insert("x-ratelimit-user", HeaderValue::from_static("TimeLeft:300"));
        assert_eq!(throttle_hint(&headers), Some(Duration::from_secs(2)));
        assert_eq!(throttle_hint(&HeaderMap::new()), None);
    }

    fn confidential() -> Confidential {
        let signed = Signed {
            query: String::new(),
            headers: vec![],
            signature: "not-in-any-text".to_owned(),
        };
        Confidential::of(&Credentials::new("LTAI5tEXAMPLE", "secret-of-it"), &signed)
    }

    #[test]
    fn parts_of_a_refusal_that_repeat_the_key_are_left_out_and_the_others_stay() {
        let refusal = Refusal {
            code: Some("InvalidAccessKeyId.NotFound".to_owned()),
            message: Some("There is no key LTAI5tEXAMPLE.".to_owned()),
            request_id: Some("R-1".to_owned()),
        };
        let error = refusal.without(&confidential()).error("DeleteDisk", 404);
        assert_eq!(
            error.to_string(),
            "DeleteDisk failed with InvalidAccessKeyId.NotFound: (its words repeat the request, \
             and are left out) (HTTP 404, RequestId R-1)"
        );
    }

    #[test]
    fn a_refusal_that_is_cut_off_is_a_lost_answer_and_a_page_is_its_status() {
        for (body, kind) in [
            (r#"{"Code":"InvalidDiskId.NotFound"}"#, Kind::NotFound),
            (r#"{"Code":"InvalidDiskId.Not"#, Kind::Ambiguous),
            ("<html>no such page</html>", Kind::Invalid),
            ("", Kind::Invalid),
        ] {
            let error = refused("DeleteDisk", 404, body.as_bytes(), &confidential());
            assert_eq!((error.kind(), error.status()), (kind, Some(404)), "{body}");
        }
    }

    #[test]
    fn the_string_that_was_signed_never_gets_into_the_message() {
        let refusal = Refusal {
            code: Some("SignatureDoesNotMatch".to_owned()),
            message: Some(
                "Specified signature is not matched with our calculation. server string to sign \
                 is:POST&%2F&AccessKeyId%3DLTAI"
                    .to_owned(),
            ),
            request_id: None,
        };
        let error = refusal.without(&confidential()).error("DeleteDisk", 400);
        let text = error.to_string();
        assert!(
            !text.contains("LTAI") && text.contains("not matched"),
            "{text}"
        );
    }
}

//! The client of the Security Token Service (API version 2015-04-01).

use std::time::Duration;

use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;

use super::{CredentialError, Credentials};
use crate::ServerClock;
use crate::base::Deadline;
use crate::http_transport::HttpTransport;
use crate::request_secrets::RequestSecrets;
use crate::server::{BuildError, Server};
use crate::sign::{Scheme, SignedRequest, UnsignedRequest, canonical, format_timestamp};
use crate::wire::params::{params, with};

const STS_API_VERSION: &str = "2015-04-01";
/// The service responds in well under a second, and a call may be waiting.
const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Sts {
    http: HttpTransport,
    server: Server,
    scheme: Scheme,
    clock: ServerClock,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct RoleSession {
    /// `acs:ram::UID:role/NAME`.
    pub role_arn: String,
    /// `RoleSessionName`, which appears in audit logs: 2 to 64 letters, digits and `.@-_`.
    #[serde(rename = "RoleSessionName")]
    pub name: String,
    /// `DurationSeconds`; none is the service's default of an hour.
    #[serde(rename = "DurationSeconds", serialize_with = "seconds")]
    pub duration: Option<Duration>,
    /// `ExternalId`, which the role's trust policy may require.
    pub external_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AssumeRoleResponse {
    credentials: StsCredentials,
}

/// Credentials in responses of STS and of the metadata service.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct StsCredentials {
    access_key_id: String,
    access_key_secret: String,
    security_token: String,
    expiration: String,
}

impl StsCredentials {
    pub(super) fn into_credentials(self, origin: &str) -> Result<Credentials, CredentialError> {
        let invalid = |why| CredentialError::InvalidResponse {
            from: origin.to_owned(),
            why,
        };
        let fields = [&self.access_key_id, &self.access_key_secret, &self.security_token];
        if fields.into_iter().any(String::is_empty) {
            return Err(invalid("a field is empty"));
        }
        let expires = self.expiration.parse();
        let expires = expires.map_err(|_| invalid("the expiration is not a timestamp"))?;
        let mut credentials = Credentials::new(self.access_key_id, self.access_key_secret);
        credentials.security_token = Some(self.security_token.into());
        credentials.expires = Some(expires);
        Ok(credentials.with_origin(origin))
    }
}

impl Sts {
    pub fn new(server: Server, scheme: Scheme, clock: ServerClock) -> Result<Self, BuildError> {
        Ok(Self {
            http: HttpTransport::new(&server)?,
            server,
            scheme,
            clock,
        })
    }

    /// `AssumeRole`, signed with the key that may assume the role.
    pub(super) async fn assume(
        &self,
        base: &Credentials,
        session: &RoleSession,
        origin: &str,
    ) -> Result<Credentials, CredentialError> {
        const ACTION: &str = "AssumeRole";
        let params = params(session);
        let sign = |time| {
            let signed = self.scheme.sign(&UnsignedRequest {
                action: ACTION,
                version: STS_API_VERSION,
                params: &params,
                host: &self.server.host,
                credentials: base,
                time,
                nonce: &uuid::Uuid::new_v4().simple().to_string(),
            });
            let secrets = RequestSecrets::from_request(base, &signed);
            (signed, secrets)
        };
        self.call(ACTION, sign, "", origin).await
    }

    /// `AssumeRoleWithOIDC`: not signed, authenticated by the token. It is sent in the body, so that proxies do not log
    /// it with the URL.
    pub(super) async fn assume_with_token(
        &self,
        provider_arn: &str,
        token: &SecretString,
        session: &RoleSession,
        origin: &str,
    ) -> Result<Credentials, CredentialError> {
        const ACTION: &str = "AssumeRoleWithOIDC";
        let identity = json!({"OIDCProviderArn": provider_arn, "OIDCToken": token.expose_secret()});
        let form = canonical::query(&params(&with(session, identity)));
        let sign = |time| {
            let time = format_timestamp(time);
            let query = json!({"Action": ACTION, "Version": STS_API_VERSION, "Format": "JSON", "Timestamp": time});
            let unsigned = SignedRequest {
                query: canonical::query(&params(&query)),
                headers: vec![
                    ("accept", "application/json".to_owned()),
                    ("content-type", "application/x-www-form-urlencoded".to_owned()),
                ],
                signature: String::new(),
            };
            (unsigned, RequestSecrets::from_token(token.expose_secret()))
        };
        self.call(ACTION, sign, &form, origin).await
    }

    async fn call(
        &self,
        action: &'static str,
        sign: impl Fn(Timestamp) -> (SignedRequest, RequestSecrets) + Sync,
        form: &str,
        origin: &str,
    ) -> Result<Credentials, CredentialError> {
        let send = |signed| {
            let deadline = Deadline::after(TIMEOUT);
            self.server.post(&self.http, action, signed, form.to_owned(), deadline)
        };
        let exchange = self.clock.exchange(sign, send).await;
        let (time, secrets, response) = exchange.map_err(CredentialError::Sts)?;
        if !response.is_success() {
            return Err(CredentialError::Sts(response.error(action, &secrets)));
        }
        // The parse error may contain a part of a secret.
        let issued = serde_json::from_slice::<AssumeRoleResponse>(response.0.body());
        let issued = issued.map_err(|_| CredentialError::InvalidResponse {
            from: format!("{action} at {}", self.server.host),
            why: "it cannot be parsed",
        })?;
        let issued = issued.credentials.into_credentials(origin)?;
        // An unsigned request is not rejected for its time, but new credentials have not expired.
        if issued.expires.is_some_and(|at| at <= time) {
            self.clock.correct(time, response.0.headers());
        }
        Ok(issued)
    }
}

fn seconds<S: Serializer>(duration: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    duration.map(|duration| duration.as_secs()).serialize(to)
}

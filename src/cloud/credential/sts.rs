//! The Security Token Service (2015-04-01): temporary credentials of a role.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Client;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::{CredentialError, Credentials};
use crate::base::Clock;
use crate::cloud::confidential::Confidential;
use crate::cloud::sign::{Attempt, Scheme, Signed, canonical, stamp};
use crate::cloud::transport::{BuildError, Server};

const VERSION: &str = "2015-04-01";
/// The service answers in well under a second; a call of the driver may be waiting.
const PATIENCE: Duration = Duration::from_secs(10);

/// The service at one endpoint.
#[derive(Debug)]
pub struct Sts {
    http: Client,
    server: Server,
    scheme: Scheme,
    clock: Arc<dyn Clock>,
}

/// The role that is wanted, and for how long.
#[derive(Debug, Clone)]
pub struct RoleSession {
    /// `acs:ram::UID:role/NAME`.
    pub role_arn: String,
    /// What audit logs call this caller: 2 to 64 letters, digits and `.@-_`.
    pub name: String,
    /// How long the credentials are to be good; unset, the service's hour.
    pub duration: Option<Duration>,
    /// What the role's trust policy may ask for.
    pub external_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    credentials: Issued,
}

/// Credentials as STS and the metadata service write them.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Issued {
    access_key_id: String,
    access_key_secret: String,
    security_token: String,
    expiration: String,
}

impl Issued {
    /// The credentials, checked; `origin` says whose they are.
    pub(super) fn accept(self, origin: &str) -> Result<Credentials, CredentialError> {
        let unusable = |why| CredentialError::Unusable {
            from: origin.to_owned(),
            why,
        };
        let words = [
            &self.access_key_id,
            &self.access_key_secret,
            &self.security_token,
        ];
        if words.into_iter().any(String::is_empty) {
            return Err(unusable("a part is empty"));
        }
        let expires = self.expiration.parse();
        let expires = expires.map_err(|_| unusable("the expiration is no time"))?;
        let mut credentials = Credentials::new(self.access_key_id, self.access_key_secret);
        credentials.security_token = Some(self.security_token.into());
        credentials.expires = Some(expires);
        Ok(credentials.from_origin(origin))
    }
}

impl Sts {
    /// The service at this URL.
    pub fn new(endpoint: &str, scheme: Scheme, clock: Arc<dyn Clock>) -> Result<Self, BuildError> {
        let server: Server = endpoint.parse()?;
        Ok(Self {
            http: server.client(PATIENCE)?,
            server,
            scheme,
            clock,
        })
    }

    /// `AssumeRole`, signed by the key that may assume it.
    pub(super) async fn assume(
        &self,
        base: &Credentials,
        session: &RoleSession,
        origin: &str,
    ) -> Result<Credentials, CredentialError> {
        const ACTION: &str = "AssumeRole";
        let params = session.params();
        let signed = self.scheme.sign(&Attempt {
            action: ACTION,
            version: VERSION,
            params: &params,
            host: &self.server.host,
            credentials: base,
            time: self.clock.now(),
            nonce: &uuid::Uuid::new_v4().simple().to_string(),
        });
        let confidential = Confidential::of(base, &signed);
        self.ask(ACTION, signed, String::new(), &confidential, origin)
            .await
    }

    /// `AssumeRoleWithOIDC`: not signed, the token is what is believed. It travels in the body, so that
    /// no proxy on the way notes it with the URL.
    pub(super) async fn assume_with_token(
        &self,
        provider_arn: &str,
        token: &SecretString,
        session: &RoleSession,
        origin: &str,
    ) -> Result<Credentials, CredentialError> {
        const ACTION: &str = "AssumeRoleWithOIDC";
        let own = |(name, value): (&str, String)| (name.to_owned(), value);
        let query = [
            ("Action", ACTION.to_owned()),
            ("Version", VERSION.to_owned()),
            ("Format", "JSON".to_owned()),
            ("Timestamp", stamp(self.clock.now())),
        ];
        let query: BTreeMap<String, String> = query.into_iter().map(own).collect();
        let mut form = session.params();
        form.insert("OIDCProviderArn".to_owned(), provider_arn.to_owned());
        form.insert("OIDCToken".to_owned(), token.expose_secret().to_owned());
        let confidential = Confidential::token(token.expose_secret());
        let unsigned = Signed {
            query: canonical::query(&query),
            headers: vec![
                ("accept", "application/json".to_owned()),
                (
                    "content-type",
                    "application/x-www-form-urlencoded".to_owned(),
                ),
            ],
            signature: String::new(),
        };
        let form = canonical::query(&form);
        self.ask(ACTION, unsigned, form, &confidential, origin)
            .await
    }

    async fn ask(
        &self,
        action: &'static str,
        signed: Signed,
        form: String,
        confidential: &Confidential,
        origin: &str,
    ) -> Result<Credentials, CredentialError> {
        let answer = self.server.post(&self.http, action, signed, form).await;
        let answer = answer.map_err(CredentialError::Sts)?;
        if !answer.is_success() {
            return Err(CredentialError::Sts(answer.refused(action, confidential)));
        }
        // What cannot be read is not told: it may be half of a secret.
        let issued = serde_json::from_slice::<Answer>(&answer.body);
        let issued = issued.map_err(|_| CredentialError::Unusable {
            from: format!("{action} at {}", self.server.host),
            why: "it cannot be read",
        })?;
        issued.credentials.accept(origin)
    }
}

impl RoleSession {
    fn params(&self) -> BTreeMap<String, String> {
        let mut params = BTreeMap::from([
            ("RoleArn".to_owned(), self.role_arn.clone()),
            ("RoleSessionName".to_owned(), self.name.clone()),
        ]);
        if let Some(duration) = self.duration {
            let seconds = duration.as_secs().to_string();
            params.insert("DurationSeconds".to_owned(), seconds);
        }
        if let Some(id) = &self.external_id {
            params.insert("ExternalId".to_owned(), id.clone());
        }
        params
    }
}

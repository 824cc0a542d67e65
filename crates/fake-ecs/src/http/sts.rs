//! The Security Token Service, on the same address: its requests have another API version.

use serde_json::{Value, json};

use super::authenticator::{Authenticator, ParsedRequest};
use super::gateway::Gateway;
use super::request::HttpRequest;
use super::response::{self, Delivery, Exchange};
use crate::api_error::ApiError;
use crate::dispatch;
use crate::log::Via;
use crate::sts::{self, Session, Sessions};

pub(super) const VERSION: &str = "2015-04-01";
const WITH_OIDC: &str = "AssumeRoleWithOIDC";
const ACCOUNT: &str = "1000000000000001";

/// Whether the request is for this service.
pub(super) fn is_for(request: &HttpRequest<'_>) -> bool {
    let query = request.query.get("Version").map(String::as_str);
    let form = request.form();
    let form = form.get("Version").map(String::as_str);
    [request.header("x-acs-version"), query, form].contains(&Some(VERSION))
}

impl Gateway {
    pub(super) fn sts(&self, request: &HttpRequest<'_>) -> Exchange {
        let config = self.shared.world().config.sts.clone();
        if config.unreachable {
            return Exchange::Reset;
        }
        let mut parsed = ParsedRequest::of(request);
        if parsed.action == WITH_OIDC {
            parsed.via = Via::Unsigned;
        }
        let outcome = match config.error {
            Some(error) => Err(ApiError::new(error.status, error.code)),
            None => self.serve_sts(request, &parsed),
        };
        let request_id = dispatch::log_call(
            &mut self.shared.world(),
            self.shared.now(),
            &parsed.action,
            (parsed.via, parsed.nonce.clone()),
            &parsed.params,
            outcome.as_ref().err(),
        );
        let delivery = Delivery {
            delay: config.delay,
            ..Delivery::default()
        };
        response::finish(parsed.origin(request), outcome, &request_id, delivery)
    }

    fn serve_sts(&self, request: &HttpRequest<'_>, parsed: &ParsedRequest) -> Result<Value, ApiError> {
        let action = parsed.action.as_str();
        if !["AssumeRole", WITH_OIDC, "GetCallerIdentity"].contains(&action) {
            return Err(ApiError::new(404, "InvalidAction.NotFound"));
        }
        let now = self.shared.now();
        let mut world = self.shared.world();
        let mut state = self.state();
        let config = world.config.clone();
        let authenticator = Authenticator {
            keys: &self.keys,
            config: &config,
            now,
            version: VERSION,
        };
        if action != WITH_OIDC {
            authenticator.check(request, parsed, &mut state)?;
        }
        let issued = &mut state.issued;
        Ok(match action {
            "AssumeRole" => render(&sts::assume_role(&mut world, now, &parsed.params, issued)?),
            WITH_OIDC => {
                let (session, claims) = sts::assume_role_with_oidc(&mut world, now, &parsed.params, issued)?;
                let mut value = render(&session);
                value["OIDCTokenInfo"] = json!({
                    "Subject": claims["sub"],
                    "Issuer": claims["iss"],
                    "ClientIds": claims["aud"],
                    "IssuanceTime": claims["iat"],
                    "ExpirationTime": claims["exp"],
                    "VerificationInfo": "Success",
                });
                value
            }
            _ => identity(request, issued),
        })
    }
}

fn assumed(session: &Session) -> String {
    let role = session.role.rsplit_once('/').map_or("", |(_, name)| name);
    format!("acs:ram::{ACCOUNT}:assumed-role/{role}/{}", session.name)
}

fn render(session: &Session) -> Value {
    json!({
        "AssumedRoleUser": {
            "Arn": assumed(session),
            "AssumedRoleId": format!("300000000000001:{}", session.name),
        },
        "Credentials": {
            "AccessKeyId": session.id,
            "AccessKeySecret": session.secret,
            "SecurityToken": session.token,
            "Expiration": session.expires.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        },
    })
}

fn identity(request: &HttpRequest<'_>, issued: &Sessions) -> Value {
    let key = ParsedRequest::key_of(request).unwrap_or_default();
    match issued.get(&key) {
        Some(session) => json!({
            "IdentityType": "AssumedRoleUser",
            "AccountId": ACCOUNT,
            "Arn": assumed(session),
            "PrincipalId": format!("300000000000001:{}", session.name),
            "RoleId": "300000000000001",
        }),
        None => json!({
            "IdentityType": "RAMUser",
            "AccountId": ACCOUNT,
            "Arn": format!("acs:ram::{ACCOUNT}:user/diskplugin"),
            "PrincipalId": "200000000000001",
            "UserId": "200000000000001",
        }),
    }
}

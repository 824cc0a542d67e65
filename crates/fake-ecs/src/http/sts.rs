//! The Security Token Service, on the same address: its requests have another API version.

use serde_json::{Value, json};

use super::authenticator::{Authenticator, ParsedRequest};
use super::gateway::Gateway;
use super::render;
use super::request::HttpRequest;
use super::response::{self, Delivery, HttpOutcome};
use crate::api_error::ApiError;
use crate::log::Via;
use crate::sts::{self, Session, Sessions, StsAction};

pub(super) const VERSION: &str = "2015-04-01";
const ACCOUNT: &str = "1000000000000001";

/// Whether the request is for this service.
pub(super) fn is_for(request: &HttpRequest<'_>) -> bool {
    let query = request.query.get("Version").map(String::as_str);
    let form = request.form();
    let form = form.get("Version").map(String::as_str);
    [request.header("x-acs-version"), query, form].contains(&Some(VERSION))
}

impl Gateway {
    pub(super) fn sts(&self, request: &HttpRequest<'_>) -> HttpOutcome {
        let config = self.shared.world().config.sts.clone();
        if config.unreachable {
            return HttpOutcome::Reset;
        }
        let mut parsed = ParsedRequest::of(request);
        let action = StsAction::named(&parsed.action);
        if action == Some(StsAction::AssumeRoleWithOidc) {
            parsed.via = Via::Unsigned;
        }
        let error = config.error.map(|error| ApiError::new(error.status, error.code));
        let outcome = match (error, action) {
            (Some(error), _) => Err(error),
            (None, Some(action)) => self.serve_sts(request, &parsed, action),
            (None, None) => Err(ApiError::new(404, "InvalidAction.NotFound")),
        };
        let noted = (parsed.action.as_str(), parsed.via, parsed.nonce.clone());
        let request_id = sts::log_sts(
            &mut self.shared.world(),
            self.shared.now(),
            noted,
            &parsed.params,
            outcome.as_ref().err(),
        );
        let delivery = Delivery {
            delay: config.delay,
            ..Delivery::default()
        };
        match outcome {
            Ok(mut value) => {
                value["RequestId"] = request_id.into();
                let root = format!("{}Response", parsed.action);
                let root = (!parsed.json).then_some(root.as_str());
                response::finish(200, &value, root, delivery)
            }
            Err(error) => {
                let host = request.header("host").unwrap_or("sts.example");
                let value = render::error(&error, &request_id, host);
                let root = (!parsed.json).then_some("Error");
                response::finish(error.status, &value, root, delivery)
            }
        }
    }

    fn serve_sts(
        &self,
        request: &HttpRequest<'_>,
        parsed: &ParsedRequest,
        action: StsAction,
    ) -> Result<Value, ApiError> {
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
        if action != StsAction::AssumeRoleWithOidc {
            authenticator.check(request, parsed, &mut state)?;
        }
        let issued = &mut state.issued;
        Ok(match action {
            StsAction::AssumeRole => render(&sts::assume_role(&mut world, now, &parsed.params, issued)?),
            StsAction::AssumeRoleWithOidc => {
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
            StsAction::GetCallerIdentity => identity(request, issued),
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

/// The identity of an authenticated caller.
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

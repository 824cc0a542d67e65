//! The Security Token Service, on the same address: its requests are known by their version.

use serde_json::{Value, json};

use super::doorman::{Doorman, Ticket};
use super::face::Face;
use super::render;
use super::reply::{self, Manner, Wired};
use super::request::Wire;
use crate::sim::log::Via;
use crate::sim::reply::Refusal;
use crate::sim::sts::{Session, Sessions, StsAction};

/// The version of the service's API.
pub(super) const VERSION: &str = "2015-04-01";
/// The account of the fake cloud.
const ACCOUNT: &str = "1000000000000001";

/// Whether the request is one for this service.
pub(super) fn is_for(wire: &Wire<'_>) -> bool {
    let query = wire.query.get("Version").map(String::as_str);
    let form = wire.form();
    let form = form.get("Version").map(String::as_str);
    [wire.header("x-acs-version"), query, form].contains(&Some(VERSION))
}

impl Face {
    pub(super) fn sts(&self, wire: &Wire<'_>) -> Wired {
        let config = self.shared.world().config.sts.clone();
        if config.unreachable {
            return Wired::Reset;
        }
        let mut ticket = Ticket::of(wire);
        let action = StsAction::named(&ticket.action);
        if action == Some(StsAction::AssumeRoleWithOidc) {
            ticket.via = Via::Unsigned;
        }
        let refusal = config
            .refusal
            .map(|told| Refusal::new(told.status, told.code));
        let outcome = match (refusal, action) {
            (Some(refusal), _) => Err(refusal),
            (None, Some(action)) => self.serve_sts(wire, &ticket, action),
            (None, None) => Err(Refusal::new(404, "InvalidAction.NotFound")),
        };
        let noted = (ticket.action.as_str(), ticket.via, ticket.nonce.clone());
        let request_id = self.shared.world().note_sts(
            self.shared.now(),
            noted,
            &ticket.params,
            outcome.as_ref().err(),
        );
        let manner = Manner {
            delay: config.delay,
            ..Manner::default()
        };
        match outcome {
            Ok(mut value) => {
                value["RequestId"] = request_id.into();
                let root = format!("{}Response", ticket.action);
                let root = (!ticket.json).then_some(root.as_str());
                reply::finish(200, &value, root, manner)
            }
            Err(refusal) => {
                let host = wire.header("host").unwrap_or("sts.example");
                let value = render::refusal(&refusal, &request_id, host);
                let root = (!ticket.json).then_some("Error");
                reply::finish(refusal.status, &value, root, manner)
            }
        }
    }

    fn serve_sts(
        &self,
        wire: &Wire<'_>,
        ticket: &Ticket,
        action: StsAction,
    ) -> Result<Value, Refusal> {
        let now = self.shared.now();
        let mut world = self.shared.world();
        let mut memory = self.memory();
        let config = world.config.clone();
        let doorman = Doorman {
            keys: &self.keys,
            config: &config,
            now,
            version: VERSION,
        };
        if action != StsAction::AssumeRoleWithOidc {
            doorman.check(wire, ticket, &mut memory)?;
        }
        let issued = &mut memory.issued;
        Ok(match action {
            StsAction::AssumeRole => answer(&world.assume_role(now, &ticket.params, issued)?),
            StsAction::AssumeRoleWithOidc => {
                let (session, claims) = world.assume_role_with_oidc(now, &ticket.params, issued)?;
                let mut value = answer(&session);
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
            StsAction::GetCallerIdentity => identity(wire, issued),
        })
    }
}

fn assumed(session: &Session) -> String {
    let role = session.role.rsplit_once('/').map_or("", |(_, name)| name);
    format!("acs:ram::{ACCOUNT}:assumed-role/{role}/{}", session.name)
}

fn answer(session: &Session) -> Value {
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

/// Whose key signed this request, which has been checked.
fn identity(wire: &Wire<'_>, issued: &Sessions) -> Value {
    let key = Ticket::key_of(wire).unwrap_or_default();
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

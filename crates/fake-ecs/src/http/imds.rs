//! The instance metadata service, under `/imds/<instance>/latest/…`: each instance has its own, so
//! that one fake cloud serves many nodes on one machine.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::gateway::Gateway;
use super::imds_sessions::Sessions;
use super::request::HttpRequest;
use super::response::{self, Exchange, Response};
use crate::advance::advance;
use crate::distribution::after;
use crate::world::World;

const TTL: &str = "x-aliyun-ecs-metadata-token-ttl-seconds";
const TOKEN: &str = "x-aliyun-ecs-metadata-token";

impl Gateway {
    /// `path` is the part after `/imds/`.
    pub(super) fn imds(&self, request: &HttpRequest<'_>, path: &str) -> Exchange {
        let now = self.shared.now();
        let mut world = self.shared.world();
        advance(&mut world, now);
        let config = world.config.metadata.clone();
        if config.unreachable {
            return Exchange::Reset;
        }
        let Some((instance, path)) = path.split_once("/latest/") else {
            return Exchange::Response(response::text(404, "not found"));
        };
        let mut state = self.state();
        let sessions = &mut state.sessions;
        let busy = config.rate.is_some_and(|rate| sessions.is_over(instance, rate, now));
        let response = if busy {
            response::text(429, "too many requests")
        } else if !world.instances.contains_key(instance) {
            response::text(404, "unknown instance")
        } else if path == "api/token" && config.no_tokens {
            response::text(404, "not found")
        } else if path == "api/token" {
            issue(request, sessions, &mut world, instance, now)
        } else if let Some(rejected) = rejected(request, sessions, instance, now, config.token_required) {
            rejected
        } else if request.method != "GET" {
            response::text(405, "only GET")
        } else {
            match self.item(&world, instance, path, now) {
                Some(item) => response::text(200, item),
                None => response::text(404, "not found"),
            }
        };
        Exchange::Response(response.after(config.delay))
    }

    fn item(&self, world: &World, instance: &str, path: &str, now: Timestamp) -> Option<String> {
        let row = world.instances.get(instance)?;
        let path = path.trim_end_matches('/');
        let serial = instance.trim_start_matches("i-");
        Some(match path {
            "meta-data/instance-id" => row.id.clone(),
            "meta-data/region-id" => world.region.clone(),
            "meta-data/zone-id" => row.zone.clone(),
            "meta-data/hostname" | "meta-data/instance/instance-name" => row.name.clone(),
            "meta-data/instance/instance-type" => row.instance_type.clone(),
            "meta-data/serial-number" => serial.to_owned(),
            "meta-data/owner-account-id" => "1000000000000001".to_owned(),
            "meta-data/private-ipv4" => "192.0.2.10".to_owned(),
            "dynamic/instance-identity/document" => json!({
                "instance-id": row.id,
                "region-id": world.region,
                "zone-id": row.zone,
                "instance-type": row.instance_type,
                "serial-number": serial,
                "owner-account-id": "1000000000000001",
                "private-ipv4": "192.0.2.10",
                "image-id": "debian_13_x64.vhd",
                "mac": "00:16:3e:00:00:01",
            })
            .to_string(),
            "meta-data/disks" => {
                let serials = attached(world, instance).map(|row| format!("{}/\n", row.serial));
                serials.collect()
            }
            "meta-data/ram/security-credentials" => world.config.metadata.role.clone()?,
            _ => {
                if let Some(role) = path.strip_prefix("meta-data/ram/security-credentials/") {
                    return self.role(world, role, now);
                }
                let (serial, field) = path.strip_prefix("meta-data/disks/")?.split_once('/')?;
                let row = attached(world, instance).find(|row| row.serial == serial)?;
                match field {
                    "id" => row.id.clone(),
                    "name" => row.name.clone(),
                    _ => return None,
                }
            }
        })
    }

    fn role(&self, world: &World, role: &str, now: Timestamp) -> Option<String> {
        let config = &world.config.metadata;
        config.role.as_deref().filter(|own| *own == role)?;
        let key = self.keys.role(now, config.credential_lifetime);
        let document = json!({
            "AccessKeyId": key.id,
            "AccessKeySecret": key.secret,
            "SecurityToken": key.token,
            "LastUpdated": key.issued.to_string(),
            "Expiration": key.expires.to_string(),
            "Code": "Success",
        });
        Some(document.to_string())
    }
}

fn attached<'a>(world: &'a World, instance: &'a str) -> impl Iterator<Item = &'a crate::disk::DiskRow> {
    let rows = world.disks.ids_on(instance).filter_map(|id| world.disks.get(id));
    rows.filter(move |row| row.shown().any(|a| a.instance == instance))
}

fn issue(
    request: &HttpRequest<'_>,
    sessions: &mut Sessions,
    world: &mut World,
    instance: &str,
    now: Timestamp,
) -> Response {
    if request.method != "PUT" {
        return response::text(405, "only PUT");
    }
    if request.header("x-forwarded-for").is_some() {
        return response::text(403, "forwarded requests do not receive a token");
    }
    let ttl = request.header(TTL).and_then(|text| text.parse().ok());
    match ttl {
        Some(seconds @ 1..=21600) => {
            let token = world.rng.word(40);
            let expires = after(now, Duration::from_secs(seconds));
            let owner = (instance.to_owned(), expires);
            sessions.tokens.insert(token.clone(), owner);
            response::text(200, token)
        }
        _ => response::text(400, "the time to live must be 1 to 21600 seconds"),
    }
}

fn rejected(
    request: &HttpRequest<'_>,
    sessions: &mut Sessions,
    instance: &str,
    now: Timestamp,
    required: bool,
) -> Option<Response> {
    match request.header(TOKEN) {
        Some(token) if sessions.is_good(token, instance, now) => None,
        Some(_) => Some(response::text(401, "the token is not valid")),
        None if required => Some(response::text(403, "a token is required")),
        None => None,
    }
}

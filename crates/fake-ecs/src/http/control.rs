//! The control API, `/_control/…`: tests and operators read and change the fake cloud while it
//! runs. It requires no credentials, so it is served on loopback addresses only.
//!
//! | request | effect |
//! | --- | --- |
//! | `GET state` | the current state of all disks, snapshots and instances |
//! | `GET calls` | the call log and the number of calls of each action; `DELETE` clears both |
//! | `GET audit` | totals of all calls: resources created under each name, calls per minute |
//! | `GET config` | the configuration; `PATCH` applies a JSON merge patch |
//! | `POST instances` | `{"op": "add"\|"start"\|"stop"\|"remove", "id": …, "zone", "type", "tags"}` |
//! | `POST sessions` | `{"op": "expire"}` expires all keys of the Security Token Service |
//! | `POST disks` | `{"op": "release", "id": …}` completes a detach that a fault keeps stuck |

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::gateway::Gateway;
use super::request::HttpRequest;
use super::response::{self, Exchange, Response};
use crate::advance::advance;
use crate::detach;
use crate::error_text::error_text;
use crate::id::{is_instance, is_zone};
use crate::instance::NodeSpec;
use crate::instance_changes;
use crate::world::World;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InstanceRequest {
    op: InstanceOp,
    id: Option<String>,
    zone: Option<String>,
    #[serde(rename = "type")]
    instance_type: Option<String>,
    #[serde(default)]
    tags: BTreeMap<String, String>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
enum InstanceOp {
    Add,
    Start,
    Stop,
    Remove,
}

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
enum DiskRequest {
    Release { id: String },
}

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
enum SessionRequest {
    Expire {},
}

impl Gateway {
    /// `path` is the part after `/_control/`.
    pub(super) fn control(&self, request: &HttpRequest<'_>, path: &str) -> Exchange {
        if !self.loopback {
            let why = "the control API is served on loopback addresses only";
            return Exchange::Response(failure(403, why));
        }
        let now = self.shared.now();
        let mut world = self.shared.world();
        advance(&mut world, now);
        let response = match (request.method, path) {
            ("GET", "state") => response::json(200, &world.state()),
            ("GET", "calls") => response::json(200, &calls(&world)),
            ("GET", "audit") => response::json(200, &json!(world.log.tally.audit())),
            ("DELETE", "calls") => {
                world.log.clear();
                response::json(200, &json!({}))
            }
            ("GET", "config") => response::json(200, &json!(world.config)),
            ("PATCH", "config") => with(request.body, |patch| configure(&mut world, &patch)),
            ("POST", "instances") => with(request.body, |instance| instances(&mut world, instance)),
            ("POST", "disks") => with(request.body, |DiskRequest::Release { id }| {
                detach::release(&mut world, &id);
                response::json(200, &json!({"id": id}))
            }),
            ("POST", "sessions") => with(request.body, |SessionRequest::Expire {}| {
                let expired = self.state().issued.expire(now);
                response::json(200, &json!({"expired": expired}))
            }),
            _ => failure(404, "unknown control request"),
        };
        advance(&mut world, now);
        drop(world);
        self.shared.wake();
        Exchange::Response(response)
    }
}

fn failure(status: u16, why: &str) -> Response {
    response::json(status, &json!({"error": why}))
}

fn calls(world: &World) -> Value {
    let entries: Vec<_> = world.log.entries().collect();
    json!({"counts": world.log.counts(), "calls": entries})
}

fn configure(world: &mut World, patch: &Value) -> Response {
    match world.config.patched(patch) {
        Ok(config) => {
            world.configure(config);
            response::json(200, &json!(world.config))
        }
        Err(error) => failure(400, &error_text(&error)),
    }
}

/// The response to a request with this body.
fn with<T: DeserializeOwned>(body: &[u8], respond: impl FnOnce(T) -> Response) -> Response {
    match serde_json::from_slice(body) {
        Ok(request) => respond(request),
        Err(error) => failure(400, &error.to_string()),
    }
}

fn instances(world: &mut World, instance: InstanceRequest) -> Response {
    if let Some(id) = instance.id.as_ref().filter(|id| !is_instance(id)) {
        return failure(400, &format!("{id:?} is not a valid instance ID"));
    }
    if let Some(zone) = instance.zone.as_ref().filter(|zone| !is_zone(zone)) {
        return failure(400, &format!("{zone:?} is not a valid zone ID"));
    }
    let id = instance.id;
    let done = match (instance.op, &id) {
        (InstanceOp::Add, Some(id)) if world.instances.contains_key(id) => {
            return failure(409, "the instance already exists");
        }
        (InstanceOp::Add, _) => {
            let id = instance_changes::launch(
                world,
                NodeSpec {
                    id,
                    zone: instance.zone,
                    instance_type: instance.instance_type,
                    tags: instance.tags,
                },
            );
            return response::json(200, &json!({"id": id}));
        }
        (_, None) => return failure(400, "the field id is missing"),
        (InstanceOp::Start, Some(id)) => instance_changes::set_instance_power(world, id, true),
        (InstanceOp::Stop, Some(id)) => instance_changes::set_instance_power(world, id, false),
        (InstanceOp::Remove, Some(id)) => instance_changes::remove_instance(world, id),
    };
    if done {
        response::json(200, &json!({"id": id}))
    } else {
        failure(404, "the instance does not exist")
    }
}

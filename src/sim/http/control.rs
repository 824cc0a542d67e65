//! The control path, `/_control/…`: what a test or a person reads back and changes while the fake
//! cloud runs. It asks for no credentials, so it is served only on a loopback address.
//!
//! | request | what it does |
//! | --- | --- |
//! | `GET state` | all disks, snapshots and instances, as they really are now |
//! | `GET calls` | the call log and the count of each action; `DELETE` forgets both |
//! | `GET audit` | what all calls add up to: what was made under each name, calls a minute |
//! | `GET config` | the configuration; `PATCH` takes a JSON merge patch |
//! | `POST instances` | `{"op": "add"\|"start"\|"stop"\|"remove", "id": …, "zone", "type", "tags"}` |
//! | `POST sessions` | `{"op": "expire"}` lets all keys of the Security Token Service end now |
//! | `POST disks` | `{"op": "release", "id": …}` ends a detach that is stuck on purpose |

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::face::Face;
use super::reply::{self, Response, Wired};
use super::request::Wire;
use crate::base::chain::chain;
use crate::model::{InstanceId, ZoneId};
use crate::sim::instance::NodeSpec;
use crate::sim::sts::Sessions;
use crate::sim::world::World;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InstanceOrder {
    op: InstanceOp,
    id: Option<InstanceId>,
    zone: Option<ZoneId>,
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
#[serde(deny_unknown_fields)]
struct DiskOrder {
    op: DiskOp,
    id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum DiskOp {
    Release,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionOrder {
    op: SessionOp,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SessionOp {
    Expire,
}

impl Face {
    /// `path` is what follows `/_control/`.
    pub(super) fn control(&self, wire: &Wire<'_>, path: &str) -> Wired {
        if !self.loopback {
            let why = "the control path is served only on a loopback address";
            return Wired::Respond(failure(403, why));
        }
        let now = self.shared.now();
        let mut world = self.shared.world();
        world.advance(now);
        let response = match (wire.method, path) {
            ("GET", "state") => reply::json(200, &world.state()),
            ("GET", "calls") => reply::json(200, &calls(&world)),
            ("GET", "audit") => reply::json(200, &json!(world.log.tally.audit())),
            ("DELETE", "calls") => {
                world.log.clear();
                reply::json(200, &json!({}))
            }
            ("GET", "config") => reply::json(200, &json!(world.config)),
            ("PATCH", "config") => configure(&mut world, wire.body),
            ("POST", "instances") => instances(&mut world, wire.body),
            ("POST", "disks") => disks(&mut world, wire.body),
            ("POST", "sessions") => sessions(wire.body, now, &mut self.memory().issued),
            _ => failure(404, "no such control"),
        };
        drop(world);
        self.shared.ring();
        Wired::Respond(response)
    }
}

fn failure(status: u16, why: &str) -> Response {
    reply::json(status, &json!({"error": why}))
}

fn calls(world: &World) -> Value {
    let entries: Vec<_> = world.log.entries().collect();
    json!({"counts": world.log.counts(), "calls": entries})
}

fn configure(world: &mut World, body: &[u8]) -> Response {
    let patch: Value = match serde_json::from_slice(body) {
        Ok(patch) => patch,
        Err(error) => return failure(400, &error.to_string()),
    };
    match world.config.patched(&patch) {
        Ok(config) => {
            world.configure(config);
            reply::json(200, &json!(world.config))
        }
        Err(error) => failure(400, &chain(&error)),
    }
}

fn instances(world: &mut World, body: &[u8]) -> Response {
    let order: InstanceOrder = match serde_json::from_slice(body) {
        Ok(order) => order,
        Err(error) => return failure(400, &error.to_string()),
    };
    let id = order.id.map(String::from);
    let done = match (order.op, &id) {
        (InstanceOp::Add, Some(id)) if world.instance(id).is_some() => {
            return failure(409, "the instance is there already");
        }
        (InstanceOp::Add, _) => {
            let id = world.add_instance(NodeSpec {
                id,
                zone: order.zone.map(String::from),
                instance_type: order.instance_type,
                tags: order.tags,
            });
            return reply::json(200, &json!({"id": id}));
        }
        (_, None) => return failure(400, "which instance?"),
        (InstanceOp::Start, Some(id)) => world.switch_instance(id, true),
        (InstanceOp::Stop, Some(id)) => world.switch_instance(id, false),
        (InstanceOp::Remove, Some(id)) => world.remove_instance(id),
    };
    if done {
        reply::json(200, &json!({"id": id}))
    } else {
        failure(404, "no such instance")
    }
}

fn disks(world: &mut World, body: &[u8]) -> Response {
    match serde_json::from_slice(body) {
        Ok(DiskOrder {
            op: DiskOp::Release,
            id,
        }) => {
            world.release(&id);
            reply::json(200, &json!({"id": id}))
        }
        Err(error) => failure(400, &error.to_string()),
    }
}

fn sessions(body: &[u8], now: Timestamp, issued: &mut Sessions) -> Response {
    match serde_json::from_slice(body) {
        Ok(SessionOrder {
            op: SessionOp::Expire,
        }) => reply::json(200, &json!({"expired": issued.expire(now)})),
        Err(error) => failure(400, &error.to_string()),
    }
}

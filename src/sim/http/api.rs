//! The API itself: from a signed request to the world and back.

use super::doorman::{Doorman, Ticket, VERSION};
use super::render::{self, Scene};
use super::reply::{self, Manner, Wired};
use super::request::Wire;
use super::server::Face;
use crate::sim::action::Action;
use crate::sim::gate::Call;
use crate::sim::params::Params;
use crate::sim::reply::Refusal;

impl Face {
    pub(super) async fn api(&self, wire: &Wire<'_>) -> Wired {
        let ticket = Ticket::of(wire);
        match self.let_in(wire, &ticket) {
            Ok(action) => self.act(wire, &ticket, action).await,
            Err(refusal) => {
                let now = self.shared.now();
                let nonce = ticket.nonce.clone();
                let mut world = self.shared.world();
                let action = ticket.action.as_str();
                let request_id = world.turn_away(now, action, ticket.via, nonce, &refusal);
                drop(world);
                refused(wire, &ticket, &refusal, &request_id)
            }
        }
    }

    fn let_in(&self, wire: &Wire<'_>, ticket: &Ticket) -> Result<Action, Refusal> {
        let config = self.shared.world().config.clone();
        let doorman = Doorman {
            keys: &self.keys,
            config: &config,
            now: self.shared.now(),
            version: VERSION,
        };
        doorman.check(wire, ticket, &mut self.memory())?;
        ticket.action.parse().map_err(|()| {
            Refusal::new(404, "InvalidAction.NotFound")
                .because("Specified api is not found, please check your url and method.")
        })
    }

    async fn act(&self, wire: &Wire<'_>, ticket: &Ticket, action: Action) -> Wired {
        let mut params = Params::default();
        for (name, value) in &ticket.params {
            params.set(name, value);
        }
        let call = Call {
            action,
            params,
            via: ticket.via,
            nonce: ticket.nonce.clone(),
        };
        let now = self.shared.now();
        let admission = self.shared.world().admit(now, &call);
        if !admission.delay.is_zero() {
            tokio::time::sleep(admission.delay).await;
        }
        let now = self.shared.now();
        let mut world = self.shared.world();
        let served = world.serve(now, &call, admission);
        let scene = Scene {
            region: &world.region,
            now: world.now,
        };
        let manner = Manner {
            mangle: served.mangle,
            delay: served.delay,
            drip: served.drip,
        };
        let outcome = served.reply.map(|answer| scene.answer(answer));
        drop(world);
        self.shared.ring();
        match outcome {
            Ok(mut value) => {
                value["RequestId"] = served.request_id.into();
                let root = format!("{}Response", action.as_str());
                let root = (!ticket.json).then_some(root.as_str());
                reply::finish(200, &value, root, manner)
            }
            Err(refusal) => {
                let value = render::refusal(&refusal, &served.request_id, host(wire));
                let root = (!ticket.json).then_some("Error");
                let wired = reply::finish(refusal.status, &value, root, manner);
                reply::with_rate_limit(wired, &refusal)
            }
        }
    }
}

fn host<'a>(wire: &'a Wire<'_>) -> &'a str {
    wire.header("host").unwrap_or("ecs.example")
}

fn refused(wire: &Wire<'_>, ticket: &Ticket, refusal: &Refusal, request_id: &str) -> Wired {
    let value = render::refusal(refusal, request_id, host(wire));
    let root = (!ticket.json).then_some("Error");
    reply::finish(refusal.status, &value, root, Manner::default())
}

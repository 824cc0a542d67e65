//! The API itself: from a signed request to the world and back.

use std::time::Duration;

use super::doorman::{Doorman, Ticket, VERSION};
use super::face::Face;
use super::render::{self, Scene};
use super::reply::{self, Manner, Wired};
use super::request::Wire;
use crate::sim::action::Action;
use crate::sim::gate::{Admission, Call};
use crate::sim::params::Params;
use crate::sim::reply::Refusal;

/// A request, decided or still to take effect.
pub(super) enum Started {
    Decided(Wired),
    Admitted(Box<Admitted>),
}

/// A call that was let in and has not taken effect.
pub(super) struct Admitted {
    call: Call,
    admission: Admission,
    json: bool,
    host: String,
}

impl Admitted {
    /// How long it takes before the call has an effect.
    pub(super) fn delay(&self) -> Duration {
        self.admission.delay
    }
}

impl Face {
    pub(super) fn api(&self, wire: &Wire<'_>) -> Started {
        let ticket = Ticket::of(wire);
        let action = match self.let_in(wire, &ticket) {
            Ok(action) => action,
            Err(refusal) => return Started::Decided(self.turn_away(wire, &ticket, &refusal)),
        };
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
        Started::Admitted(Box::new(Admitted {
            call,
            admission,
            json: ticket.json,
            host: host(wire).to_owned(),
        }))
    }

    fn turn_away(&self, wire: &Wire<'_>, ticket: &Ticket, refusal: &Refusal) -> Wired {
        let now = self.shared.now();
        let nonce = ticket.nonce.clone();
        let mut world = self.shared.world();
        let action = ticket.action.as_str();
        let request_id = world.turn_away(now, action, ticket.via, nonce, refusal);
        drop(world);
        let value = render::refusal(refusal, &request_id, host(wire));
        let root = (!ticket.json).then_some("Error");
        reply::finish(refusal.status, &value, root, Manner::default())
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

    /// Lets a call take effect.
    pub(super) fn finish(&self, admitted: Box<Admitted>) -> Wired {
        let Admitted {
            call,
            admission,
            json,
            host,
        } = *admitted;
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
                let root = format!("{}Response", call.action.as_str());
                let root = (!json).then_some(root.as_str());
                reply::finish(200, &value, root, manner)
            }
            Err(refusal) => {
                let value = render::refusal(&refusal, &served.request_id, &host);
                let root = (!json).then_some("Error");
                let wired = reply::finish(refusal.status, &value, root, manner);
                reply::with_rate_limit(wired, &refusal)
            }
        }
    }
}

fn host<'a>(wire: &'a Wire<'_>) -> &'a str {
    wire.header("host").unwrap_or("ecs.example")
}

//! `ClientToken`: the same token and request give the same result, and nothing is done twice.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use jiff::Timestamp;

use super::action::Action;
use super::params::Params;
use super::reply::{Refusal, Reply};
use super::spread::until;
use super::world::World;

/// Longest token (ECS API, ClientToken semantics).
const LONGEST: usize = 64;

/// The tokens that are remembered.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    used: BTreeMap<(Action, String), Use>,
    /// The same by age.
    queue: VecDeque<(Timestamp, (Action, String))>,
    /// Whether the last call was answered from here, and so made nothing.
    pub(crate) repeated: bool,
}

#[derive(Debug)]
struct Use {
    fingerprint: String,
    at: Timestamp,
    reply: Reply,
}

impl Tokens {
    fn forget(&mut self, now: Timestamp, memory: Duration) {
        while let Some((at, key)) = self.queue.front()
            && until(*at, now) >= memory
        {
            self.used.remove(key);
            self.queue.pop_front();
        }
    }
}

impl World {
    /// Does what is asked, unless its token says that it was done before.
    pub(crate) fn once(
        &mut self,
        action: Action,
        params: &Params,
        work: impl FnOnce(&mut Self) -> Reply,
    ) -> Reply {
        let Some(token) = params.get("ClientToken") else {
            return work(self);
        };
        if token.len() > LONGEST || !token.is_ascii() {
            return Err(Refusal::new(403, "InvalidClientToken.Malformed"));
        }
        let rules = self.config.rules.clone();
        self.tokens.forget(self.now, rules.token_memory);
        let key = (action, token.to_owned());
        let fingerprint = params.fingerprint();
        if let Some(used) = self.tokens.used.get(&key) {
            if used.fingerprint != fingerprint {
                return Err(mismatch(action));
            }
            if until(used.at, self.now) < rules.token_in_flight {
                return Err(in_flight(action));
            }
            self.tokens.repeated = true;
            return used.reply.clone();
        }
        let reply = work(self);
        // A failed call sometimes records its token, and nobody can tell when.
        if reply.is_ok() || self.rng.percent(rules.token_burn_percent) {
            let at = self.now;
            let reply = reply.clone();
            self.tokens.queue.push_back((at, key.clone()));
            self.tokens.used.insert(
                key,
                Use {
                    fingerprint,
                    at,
                    reply,
                },
            );
        }
        reply
    }
}

fn mismatch(action: Action) -> Refusal {
    let status = match action {
        Action::CreateSnapshot | Action::CreateSnapshotGroup => 403,
        _ => 400,
    };
    Refusal::new(status, "IdempotentParameterMismatch")
        .because("The request uses the same client token as a previous, but non-identical request.")
}

fn in_flight(action: Action) -> Refusal {
    match action {
        Action::CreateSnapshot | Action::CreateSnapshotGroup => {
            Refusal::new(403, "IdempotentProcessing")
        }
        _ => Refusal::new(403, "LastTokenProcessing"),
    }
}

//! `ClientToken`: a repeated request with the same token returns the first result and has no
//! further effect.

use super::action::Action;
use super::api_error::ApiError;
use super::distribution::until;
use super::params::Params;
use super::response::ApiResult;
use super::tokens::Use;
use super::world::World;

/// Maximum length of a token (ECS API, ClientToken semantics).
const MAX_LENGTH: usize = 64;

/// Runs `work`, or returns the recorded result of a request with the same token.
pub(crate) fn once(
    world: &mut World,
    action: Action,
    params: &Params,
    work: impl FnOnce(&mut World) -> ApiResult,
) -> ApiResult {
    let Some(token) = params.get("ClientToken") else {
        return work(world);
    };
    if token.len() > MAX_LENGTH || !token.is_ascii() {
        return Err(ApiError::new(403, "InvalidClientToken.Malformed"));
    }
    let rules = world.config.rules.clone();
    world.tokens.forget(world.now, rules.token_memory);
    let key = (action, token.to_owned());
    let fingerprint = params.fingerprint();
    if let Some(used) = world.tokens.used.get(&key) {
        if used.fingerprint != fingerprint {
            return Err(mismatch(action));
        }
        if until(used.at, world.now) < rules.token_in_flight {
            return Err(in_flight(action));
        }
        world.tokens.repeated = true;
        return used.reply.clone();
    }
    let reply = work(world);
    // A failed call sometimes records its token; the documents do not say when.
    if reply.is_ok() || world.rng.percent(rules.token_burn_percent) {
        let at = world.now;
        let reply = reply.clone();
        world.tokens.queue.push_back((at, key.clone()));
        world.tokens.used.insert(key, Use { fingerprint, at, reply });
    }
    reply
}

fn mismatch(action: Action) -> ApiError {
    let status = match action {
        Action::CreateSnapshot | Action::CreateSnapshotGroup => 403,
        _ => 400,
    };
    ApiError::new(status, "IdempotentParameterMismatch")
        .with_message("The request uses the same client token as a previous, but non-identical request.")
}

fn in_flight(action: Action) -> ApiError {
    match action {
        Action::CreateSnapshot | Action::CreateSnapshotGroup => ApiError::new(403, "IdempotentProcessing"),
        _ => ApiError::new(403, "LastTokenProcessing"),
    }
}

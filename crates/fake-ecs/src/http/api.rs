//! The ECS API over HTTP: from a signed request to its response.

use std::time::Duration;

use super::authenticator::{Authenticator, ParsedRequest, VERSION};
use super::gateway::Gateway;
use super::render::Renderer;
use super::request::HttpRequest;
use super::response::{self, Delivery, Exchange, Origin};
use crate::action::Action;
use crate::api_error::ApiError;
use crate::call::ApiCall;
use crate::dispatch::{self, Admission};
use crate::params::Params;

/// A request that is complete or has still to take effect.
pub(super) enum Started {
    Decided(Exchange),
    Admitted(Box<Admitted>),
}

/// An authenticated call that has not taken effect yet.
pub(super) struct Admitted {
    call: ApiCall,
    admission: Admission,
    json: bool,
    host: String,
}

impl Admitted {
    /// The delay before the call takes effect.
    pub(super) fn delay(&self) -> Duration {
        self.admission.delay
    }
}

impl Gateway {
    pub(super) fn api(&self, request: &HttpRequest<'_>) -> Started {
        let parsed = ParsedRequest::of(request);
        let action = match self.authenticate(request, &parsed) {
            Ok(action) => action,
            Err(error) => return Started::Decided(self.reject(request, &parsed, error)),
        };
        let json = parsed.json;
        let call = ApiCall {
            action,
            params: parsed.params,
            via: parsed.via,
            nonce: parsed.nonce,
        };
        let now = self.shared.now();
        let admission = dispatch::admit(&mut self.shared.world(), now, &call);
        Started::Admitted(Box::new(Admitted {
            call,
            admission,
            json,
            host: request.host().to_owned(),
        }))
    }

    fn reject(&self, request: &HttpRequest<'_>, parsed: &ParsedRequest, error: ApiError) -> Exchange {
        let now = self.shared.now();
        let origin = parsed.origin(request);
        let request_id = dispatch::log_call(
            &mut self.shared.world(),
            now,
            origin.action,
            (parsed.via, parsed.nonce.clone()),
            &Params::default(),
            Some(&error),
        );
        response::finish(origin, Err(error), &request_id, Delivery::default())
    }

    fn authenticate(&self, request: &HttpRequest<'_>, parsed: &ParsedRequest) -> Result<Action, ApiError> {
        let config = self.shared.world().config.clone();
        let authenticator = Authenticator {
            keys: &self.keys,
            config: &config,
            now: self.shared.now(),
            version: VERSION,
        };
        authenticator.check(request, parsed, &mut self.state())?;
        parsed.action.parse().map_err(|()| {
            ApiError::new(404, "InvalidAction.NotFound")
                .with_message("Specified api is not found, please check your url and method.")
        })
    }

    /// Lets a call take effect.
    pub(super) fn finish(&self, admitted: Box<Admitted>) -> Exchange {
        let Admitted {
            call,
            admission,
            json,
            host,
        } = *admitted;
        let now = self.shared.now();
        let mut world = self.shared.world();
        let served = dispatch::serve(&mut world, now, &call, admission);
        let renderer = Renderer {
            region: &world.region,
            now: world.now,
        };
        let delivery = Delivery {
            response_fault: served.response_fault,
            delay: served.delay,
            drip: served.drip,
        };
        let outcome = served.reply.map(|response| renderer.response(response));
        drop(world);
        self.shared.wake();
        let origin = Origin {
            action: call.action.as_str(),
            json,
            host: &host,
        };
        response::finish(origin, outcome, &served.request_id, delivery)
    }
}

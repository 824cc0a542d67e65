//! The fake cloud on a [`wiremock::MockServer`].
//!
//! A test adds a fault as an ordinary mock, which takes precedence by wiremock's default priority. A temporary fault
//! uses `up_to_n_times` or a matcher that can be switched off: with mocks of several priorities, wiremock 0.6 removes
//! the wrong one when a scoped mock is dropped.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use wiremock::matchers::any;
use wiremock::{Match, Mock, MockServer, Request, Respond, ResponseTemplate};

use crate::http::{Exchange, HttpHandler, Reset};

/// Longer than any test.
const NEVER: Duration = Duration::from_hours(24);

/// The lowest priority but one, and the lowest.
const RESETS: u8 = 254;
const RESPONSES: u8 = 255;

/// The fake cloud as a responder of wiremock. [`mount`] also resets connections, which a responder cannot.
#[derive(Debug, Clone)]
struct Responder {
    http: HttpHandler,
    /// The outcome of the last request. The server handles one request at a time.
    decided: Arc<Mutex<Option<Exchange>>>,
}

/// Mounts the fake cloud with the lowest priority.
pub(crate) async fn mount(http: HttpHandler, server: &MockServer) {
    let responder = Responder {
        http,
        decided: Arc::default(),
    };
    // A `Respond` always has a response, so a separate mock resets connections.
    let resets = Mock::given(Resets(responder.clone())).respond_with_err(|_: &Request| Reset);
    resets.with_priority(RESETS).mount(server).await;
    let responses = Mock::given(any()).respond_with(responder);
    responses.with_priority(RESPONSES).mount(server).await;
}

impl Responder {
    fn decide(&self, request: &Request) -> Exchange {
        let mut whole = hyper::Request::new(request.body.clone());
        *whole.method_mut() = request.method.clone();
        *whole.uri_mut() = request.url.as_str().parse().expect("a URL is a URI");
        *whole.headers_mut() = request.headers.clone();
        self.http.respond(&whole)
    }

    fn decided(&self) -> MutexGuard<'_, Option<Exchange>> {
        self.decided.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Respond for Responder {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        // Set by the mock with the higher priority.
        let decided = self.decided().take();
        match decided.unwrap_or_else(|| self.decide(request)) {
            Exchange::Response(response) => {
                let template = ResponseTemplate::new(response.status).set_delay(response.delay);
                let headers = response.headers.into_iter();
                let template = headers.fold(template, |template, (name, value)| template.append_header(name, value));
                template.set_body_bytes(response.body)
            }
            Exchange::Hang => ResponseTemplate::new(200).set_delay(NEVER),
            Exchange::Reset => panic!("the mock with the higher priority resets connections"),
        }
    }
}

/// Matches requests whose connection the fake cloud resets.
struct Resets(Responder);

impl Match for Resets {
    fn matches(&self, request: &Request) -> bool {
        let decided = self.0.decide(request);
        let reset = decided == Exchange::Reset;
        *self.0.decided() = (!reset).then_some(decided);
        reset
    }
}

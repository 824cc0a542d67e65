//! Routes a request, independent of the server that reads it.

use super::api::Started;
use super::gateway::Gateway;
use super::request::HttpRequest;
use super::response::{self, Exchange};

impl Gateway {
    /// Processes a request. A call takes effect after its delay.
    pub(super) async fn handle(&self, request: &HttpRequest<'_>) -> Exchange {
        match self.start(request) {
            Started::Decided(outcome) => outcome,
            Started::Admitted(admitted) => {
                tokio::time::sleep(admitted.delay()).await;
                self.finish(admitted)
            }
        }
    }

    /// Processes a request without waiting. A call takes effect immediately, and the delay is added to its response.
    pub(super) fn handle_now(&self, request: &HttpRequest<'_>) -> Exchange {
        match self.start(request) {
            Started::Decided(outcome) => outcome,
            Started::Admitted(admitted) => {
                let delay = admitted.delay();
                let mut exchange = self.finish(admitted);
                if let Exchange::Response(response) = &mut exchange {
                    response.delay += delay;
                }
                exchange
            }
        }
    }

    fn start(&self, request: &HttpRequest<'_>) -> Started {
        if request.path == "/" && super::sts::is_for(request) {
            Started::Decided(self.sts(request))
        } else if request.path == "/" {
            self.api(request)
        } else if let Some(path) = request.path.strip_prefix("/imds/") {
            Started::Decided(self.imds(request, path))
        } else if let Some(path) = request.path.strip_prefix("/_control/") {
            Started::Decided(self.control(request, path))
        } else {
            Started::Decided(Exchange::Response(response::text(404, "not found")))
        }
    }
}

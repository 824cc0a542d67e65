//! The HTTP server: wiremock, which accepts and serialises; everything else is ours.
//!
//! wiremock answers requests one after another, each in two steps: matchers see it, then the mock
//! that matched answers. The first matcher handles the request; it matches when the connection
//! shall end without an answer, and else leaves the answer for the second mock to pick up.

use std::fmt;
use std::io;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use wiremock::matchers::any;
use wiremock::{Match, Mock, MockServer, Request, Respond, ResponseTemplate};

use super::doorman::Nonces;
use super::imds::Sessions;
use super::reply::{self, Wired};
use super::request::Wire;
use crate::base::Tasks;
use crate::sim::credential::Keys;
use crate::sim::shared::Shared;

/// wiremock keeps every request that a mock matched, for verifications that nobody asks for: after
/// so many its mocks are replaced, so that memory does not grow.
const RENEW_AFTER: u32 = 2000;

/// The fake cloud over HTTP.
pub(crate) struct Server {
    mock: Arc<MockServer>,
}

/// What all requests share.
pub(super) struct Face {
    pub(super) shared: Arc<Shared>,
    pub(super) keys: Keys,
    /// Whether the listener is bound to a loopback address.
    pub(super) loopback: bool,
    memory: Mutex<Memory>,
    answer: Mutex<Option<ResponseTemplate>>,
    served: AtomicU32,
    server: OnceLock<Weak<MockServer>>,
    tasks: Tasks,
}

/// What the gateway and the metadata service remember.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) nonces: Nonces,
    pub(super) sessions: Sessions,
    /// The temporary keys that the Security Token Service gave out.
    pub(super) issued: crate::sim::sts::Sessions,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({})", self.mock.uri())
    }
}

impl Server {
    /// Serves on the listener until it is dropped.
    pub(crate) async fn start(
        listener: TcpListener,
        shared: Arc<Shared>,
        keys: Keys,
    ) -> io::Result<Self> {
        let loopback = listener.local_addr()?.ip().is_loopback();
        let face = Arc::new(Face {
            shared,
            keys,
            loopback,
            memory: Mutex::default(),
            answer: Mutex::default(),
            served: AtomicU32::new(0),
            server: OnceLock::new(),
            tasks: Tasks::default(),
        });
        let builder = MockServer::builder().listener(listener);
        let mock = Arc::new(builder.disable_request_recording().start().await);
        // It is set once, here.
        let _ = face.server.set(Arc::downgrade(&mock));
        mount(&face, &mock).await;
        Ok(Self { mock })
    }

    /// `http://ADDRESS`.
    pub(crate) fn uri(&self) -> String {
        self.mock.uri()
    }
}

async fn mount(face: &Arc<Face>, server: &MockServer) {
    let handle = Handle(Arc::clone(face));
    let reset = |_: &Request| io::Error::from(io::ErrorKind::ConnectionReset);
    let first = Mock::given(handle).respond_with_err(reset).with_priority(1);
    first.mount(server).await;
    let second = Mock::given(any()).respond_with(PickUp(Arc::clone(face)));
    second.mount(server).await;
}

/// Handles a request; matches when it gets no answer.
struct Handle(Arc<Face>);

impl Match for Handle {
    fn matches(&self, request: &Request) -> bool {
        self.0.renew();
        match self.0.handle(&Wire::of(request)) {
            Wired::Reset => true,
            Wired::Respond(response) => {
                *self.0.answer() = Some(response);
                false
            }
        }
    }
}

/// Answers what the first mock has handled.
struct PickUp(Arc<Face>);

impl Respond for PickUp {
    fn respond(&self, _: &Request) -> ResponseTemplate {
        let answer = self.0.answer().take();
        answer.unwrap_or_else(|| ResponseTemplate::new(500))
    }
}

impl Face {
    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self) -> MutexGuard<'_, Option<ResponseTemplate>> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self, wire: &Wire<'_>) -> Wired {
        if wire.path == "/" && super::sts::is_for(wire) {
            self.sts(wire)
        } else if wire.path == "/" {
            self.api(wire)
        } else if let Some(path) = wire.path.strip_prefix("/imds/") {
            self.imds(wire, path)
        } else if let Some(path) = wire.path.strip_prefix("/_control/") {
            self.control(wire, path)
        } else {
            Wired::Respond(reply::text(404, "not found"))
        }
    }

    /// Replaces the mocks now and then. The task runs on wiremock's own single thread and meets no
    /// lock that is held across an await, so no request sees the server without its mocks.
    fn renew(self: &Arc<Self>) {
        if self.served.fetch_add(1, Ordering::Relaxed) + 1 < RENEW_AFTER {
            return;
        }
        self.served.store(0, Ordering::Relaxed);
        let Some(server) = self.server.get().and_then(Weak::upgrade) else {
            return;
        };
        let face = Arc::clone(self);
        self.tasks.start(async move {
            server.reset().await;
            mount(&face, &server).await;
        });
    }
}

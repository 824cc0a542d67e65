//! Captures log output in unit tests.

use std::sync::{LazyLock, Mutex};

use tracing::Dispatch;
use tracing::subscriber::{DefaultGuard, NoSubscriber};
use tracing_subscriber::fmt::MakeWriter;

/// A second dispatcher. With a single one, tracing caches as disabled every callsite that a thread without a subscriber
/// reaches first, and its events are lost.
static SECOND_DISPATCH: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));

/// The log output of the current thread while the guard exists.
#[derive(Debug)]
pub(crate) struct LogCapture(&'static Mutex<Vec<u8>>);

impl LogCapture {
    pub(crate) fn start() -> (Self, DefaultGuard) {
        LazyLock::force(&SECOND_DISPATCH);
        let log: &Mutex<_> = Box::leak(Box::default());
        let subscriber = tracing_subscriber::fmt()
            .with_writer(|| log.make_writer())
            .with_ansi(false)
            .finish();
        (Self(log), tracing::subscriber::set_default(subscriber))
    }

    /// The lines logged since the previous call.
    pub(crate) fn lines(&self) -> Vec<String> {
        let text = std::mem::take(&mut *self.0.lock().unwrap());
        let text = String::from_utf8(text).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

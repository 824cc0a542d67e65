//! Captures log output in unit tests.

use std::io;
use std::sync::{Arc, LazyLock, Mutex};

use tracing::Dispatch;
use tracing::subscriber::{DefaultGuard, NoSubscriber};

/// A second dispatcher. With a single one, tracing caches as disabled every callsite that a thread without a subscriber
/// reaches first, and its events are lost.
static SECOND_DISPATCH: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));

/// The log output of the current thread while the guard exists.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogCapture(Arc<Mutex<Vec<u8>>>);

impl io::Write for LogCapture {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl LogCapture {
    pub(crate) fn start() -> (Self, DefaultGuard) {
        LazyLock::force(&SECOND_DISPATCH);
        let capture = Self::default();
        let writer = capture.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .finish();
        (capture, tracing::subscriber::set_default(subscriber))
    }

    /// The lines logged since the previous call.
    pub(crate) fn lines(&self) -> Vec<String> {
        let text = std::mem::take(&mut *self.0.lock().unwrap());
        let text = String::from_utf8(text).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

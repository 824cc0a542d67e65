//! For unit tests: what is logged.

use std::io;
use std::sync::{Arc, LazyLock, Mutex};

use tracing::Dispatch;
use tracing::subscriber::{DefaultGuard, NoSubscriber};

/// Where a subscriber is the only one of the process, what another thread without one reaches first is never asked for again,
/// and so not heard.
static OTHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));

/// What is logged on this thread as long as the guard lives.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<Vec<u8>>>);

impl io::Write for Heard {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Heard {
    /// Listens from now on.
    pub(crate) fn listen() -> (Self, DefaultGuard) {
        LazyLock::force(&OTHER);
        let heard = Self::default();
        let writer = heard.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .finish();
        (heard, tracing::subscriber::set_default(subscriber))
    }

    /// The lines since the last time.
    pub(crate) fn lines(&self) -> Vec<String> {
        let text = std::mem::take(&mut *self.0.lock().unwrap());
        let text = String::from_utf8(text).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

//! SIGTERM and SIGINT, which both mean: finish what runs and end.

use std::future::Future;

use tokio::signal::unix::{SignalKind, signal};

/// Resolves at the first of the two signals. From this call on neither ends the process by itself.
///
/// # Errors
/// When the handlers cannot be installed.
pub(crate) fn stop() -> std::io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

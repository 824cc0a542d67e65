//! SIGTERM and SIGINT, which both mean: finish what runs and end.

use std::future::Future;

use tokio::signal::unix::{SignalKind, signal};

/// Like [`stop`], also when the terminal is closed. Only for what is run from a terminal: others may
/// have been told by `nohup` to outlive it.
///
/// # Errors
/// When the handlers cannot be installed.
#[cfg(feature = "mock-cloud")]
pub(crate) fn stop_or_hangup() -> std::io::Result<impl Future<Output = ()> + Send + 'static> {
    let stop = stop()?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            () = stop => {}
            _ = hangup.recv() => {}
        }
    })
}

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

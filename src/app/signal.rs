//! SIGTERM and SIGINT, which both start a graceful shutdown.

use std::future::Future;

use tokio::signal::unix::{SignalKind, signal};

/// Like [`stop`], and on SIGHUP when the terminal closes. Not for daemons, which may run under `nohup`.
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

/// Resolves at the first of the two signals. After this call, neither terminates the process by default.
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

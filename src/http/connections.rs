//! The limit of parallel connections. If all are in use, a new one replaces the one that has waited longest for its
//! request, so that clients without a request do not block kubelet's probes.

use std::collections::VecDeque;
use std::future::Future;

use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// Of about 10 KiB each.
const MAX: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Connections {
    tasks: JoinSet<()>,
    /// The connections that may wait for their request, the oldest first, each with whether the request has arrived.
    waiting: VecDeque<(AbortHandle, CancellationToken)>,
}

impl Connections {
    /// Serves a connection on its own task, which cancels the token when the request has arrived: from then on another
    /// connection no longer replaces it. Waits if all others have their request.
    pub(super) async fn serve<F>(&mut self, serve: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        while self.tasks.try_join_next().is_some() {}
        self.waiting
            .retain(|(task, arrived)| !task.is_finished() && !arrived.is_cancelled());
        if self.tasks.len() >= MAX {
            if let Some((oldest, _)) = self.waiting.pop_front() {
                oldest.abort();
            }
            self.tasks.join_next().await;
        }
        let arrived = CancellationToken::new();
        let task = self.tasks.spawn(serve(arrived.clone()));
        self.waiting.push_back((task, arrived));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::mpsc::unbounded_channel;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_new_connection_replaces_the_oldest_without_a_request() {
        let mut connections = Connections::default();
        let (ended, mut results) = unbounded_channel();
        for number in 0..=MAX {
            let ended = ended.clone();
            let serve = |arrived: CancellationToken| async move {
                // The first one has its request.
                if number == 0 {
                    arrived.cancel();
                }
                let guard = scopeguard::guard((arrived, ended), |(_, ended)| {
                    let _ = ended.send(number);
                });
                std::future::pending::<()>().await;
                drop(guard);
            };
            let served = timeout(Duration::from_secs(1), connections.serve(serve)).await;
            assert!(served.is_ok(), "connection {number} waits");
            tokio::task::yield_now().await;
        }
        assert_eq!(results.recv().await, Some(1));
        assert!(results.try_recv().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn connections_with_a_request_are_not_replaced() {
        let mut connections = Connections::default();
        for _ in 0..MAX {
            let serve = |arrived: CancellationToken| async move {
                arrived.cancel();
                tokio::time::sleep(Duration::from_secs(10)).await;
            };
            connections.serve(serve).await;
            tokio::task::yield_now().await;
        }
        let more = connections.serve(|_arrived| async {});
        assert!(timeout(Duration::from_secs(9), more).await.is_err());
        let more = connections.serve(|_arrived| async {});
        assert!(timeout(Duration::from_secs(2), more).await.is_ok());
    }
}

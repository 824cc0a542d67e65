//! Runs several futures concurrently on one task.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Runs all futures to completion and returns their outputs in the same order. Dropping the returned future drops all
/// of them.
pub async fn join_all<T>(futures: impl IntoIterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut running: Vec<_> = futures.into_iter().map(|future| Some(Box::pin(future))).collect();
    let mut outputs: Vec<Option<T>> = running.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (slot, output) in running.iter_mut().zip(&mut outputs) {
            if let Some(future) = slot
                && let Poll::Ready(value) = Pin::as_mut(future).poll(context)
            {
                *output = Some(value);
                *slot = None;
            }
        }
        if running.iter().any(Option::is_some) {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn futures_run_concurrently_and_outputs_keep_their_order() {
        let start = Instant::now();
        let waits = [3, 1, 2].map(|seconds| async move {
            sleep(Duration::from_secs(seconds)).await;
            seconds
        });
        assert_eq!(join_all(waits).await, [3, 1, 2]);
        assert_eq!(start.elapsed().as_secs(), 3);
        assert!(join_all(Vec::<std::future::Ready<()>>::new()).await.is_empty());
    }
}

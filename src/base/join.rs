//! Runs several futures concurrently on one task.

use std::future::{Future, poll_fn};
use std::task::Poll;

/// Runs all futures to completion and returns their outputs in the same order. Dropping the returned future drops all
/// of them.
pub async fn join_all<T>(futures: impl IntoIterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut running: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    poll_fn(|context| {
        let mut is_complete = true;
        for (future, output) in running.iter_mut().filter(|(_, output)| output.is_none()) {
            match future.as_mut().poll(context) {
                Poll::Ready(value) => *output = Some(value),
                Poll::Pending => is_complete = false,
            }
        }
        if is_complete { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    running.into_iter().filter_map(|(_, output)| output).collect()
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

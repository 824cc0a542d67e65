//! Several futures of one task, side by side.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Runs all of them to their ends; the outcomes are in their order. Dropping it drops them all.
pub async fn all<T>(futures: impl IntoIterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut running: Vec<_> = futures.into_iter().map(|one| Some(Box::pin(one))).collect();
    let mut ended: Vec<Option<T>> = running.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (place, outcome) in running.iter_mut().zip(&mut ended) {
            if let Some(future) = place
                && let Poll::Ready(value) = Pin::as_mut(future).poll(context)
            {
                *outcome = Some(value);
                *place = None;
            }
        }
        if running.iter().any(Option::is_some) {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
    ended.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn they_take_as_long_as_the_longest_and_keep_their_order() {
        let begun = Instant::now();
        let waits = [3, 1, 2].map(|seconds| async move {
            sleep(Duration::from_secs(seconds)).await;
            seconds
        });
        assert_eq!(all(waits).await, [3, 1, 2]);
        assert_eq!(begun.elapsed().as_secs(), 3);
        assert!(all(Vec::<std::future::Ready<()>>::new()).await.is_empty());
    }
}

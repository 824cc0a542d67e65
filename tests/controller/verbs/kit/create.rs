//! Whether the error of a creation is final, and pauses between retries.

use super::*;

pub(crate) fn is_final(error: &Error) -> bool {
    !matches!(
        error.failure_kind(),
        FailureKind::Unavailable | FailureKind::Aborted | FailureKind::DeadlineExceeded
    )
}

pub(crate) async fn sleep(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// Repeats a call as a sidecar does, for at most this time: without proof, the error is `UNAVAILABLE` for a while.
pub(crate) async fn retry<T>(seconds: u64, mut call: impl AsyncFnMut() -> Result<T, Error>) -> Result<T, Error> {
    let end = Instant::now() + Duration::from_secs(seconds);
    loop {
        match call().await {
            Err(error) if !is_final(&error) && Instant::now() < end => sleep(5).await,
            outcome => return outcome,
        }
    }
}

/// Cancels the creation as soon as its disk exists.
pub(crate) async fn create_until_row(setup: &Setup, call: impl Future<Output = Result<Disk, Error>>) {
    let before = setup.rows().len();
    let created = async {
        while setup.rows().len() == before {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        biased;
        () = created => {}
        _ = call => panic!("create returned"),
    }
}

/// Repeats a call as the sidecars do: after a growing pause, unless the error is final.
pub(crate) async fn with_retries<T, F>(call: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut pause = Duration::from_secs(1);
    loop {
        match call().await {
            Err(error) if !is_final(&error) && pause <= Duration::from_secs(512) => {
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            outcome => return outcome,
        }
    }
}

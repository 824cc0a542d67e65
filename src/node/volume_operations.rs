//! Runs at most one operation of a volume at a time, to its end even if the caller gives up. The errors of calls at
//! their deadline, and of calls during the operation, state its current step and how long it has been running.

use std::collections::HashMap;
use std::fmt::Display;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use scopeguard::ScopeGuard;
use tokio::time::Instant;

use super::{Error, Result};
use crate::base::{Deadline, Tasks, error_chain, lock};
use crate::model::{DiskId, Failure};

/// An error at the deadline that names the awaited condition arrives within this time.
const GRACE: Duration = Duration::from_millis(100);

/// The running operations. Clones share the state.
#[derive(Debug, Clone, Default)]
pub(super) struct VolumeOperations {
    running: Arc<Mutex<HashMap<DiskId, Running>>>,
    /// What the operations run on; the shutdown waits for them.
    pub(super) tasks: Tasks,
}

#[derive(Debug)]
struct Running {
    operation: &'static str,
    since: Instant,
    /// The current step that can take long, and its start.
    step: Option<(String, Instant)>,
    /// The device that completes no I/O, and the start of that.
    hung: Option<(String, Instant)>,
}

impl VolumeOperations {
    /// Runs an operation that changes the volume's state on this node, and waits for it until the deadline. Large
    /// futures are boxed by the caller.
    ///
    /// # Errors
    /// [`Failure::OperationPending`] or [`Failure::DiskHung`] if another operation of the volume is running, or if this
    /// one continues after the deadline.
    pub(super) async fn run<F, T>(
        &self,
        volume: &DiskId,
        name: &'static str,
        deadline: Deadline,
        operation: F,
    ) -> Result<T>
    where
        F: Future<Output = Result<T>> + Send + 'static,
        T: Send + 'static,
    {
        let running = self.begin(volume, name)?;
        let caller = Arc::new(());
        let waiting = Arc::downgrade(&caller);
        let exclusive = async move {
            let result = operation.await;
            if let (Err(error), None) = (&result, waiting.upgrade()) {
                let error = error_chain(error);
                tracing::warn!(disk.id = %*running, error, "{name} failed, and no caller waits for it any more");
            }
            drop(running);
            result
        };
        let mut task = pin!(self.tasks.run(exclusive));
        if let Ok(result) = deadline.bound(&mut task).await {
            return result;
        }
        match tokio::time::timeout(GRACE, task).await {
            Ok(result) => result,
            Err(_) => Err(pending(volume, lock(&self.running).get(volume))),
        }
    }

    /// Begins the operation of a volume, which ends when the result is dropped.
    fn begin(
        &self,
        volume: &DiskId,
        operation: &'static str,
    ) -> Result<ScopeGuard<DiskId, impl FnOnce(DiskId) + use<>>> {
        let mut all = lock(&self.running);
        if let Some(running) = all.get(volume) {
            return Err(pending(volume, Some(running)));
        }
        let running = Running {
            operation,
            since: Instant::now(),
            step: None,
            hung: None,
        };
        all.insert(volume.clone(), running);
        let operations = self.clone();
        let end = move |volume| drop(lock(&operations.running).remove(&volume));
        Ok(scopeguard::guard(volume.clone(), end))
    }

    /// Names a step of the running operation that can take long. When the result is dropped, the step around it is the
    /// current one again.
    pub(super) fn step(&self, volume: &DiskId, step: String) -> impl Drop {
        let mut all = lock(&self.running);
        let running = all.get_mut(volume);
        let outer = running.and_then(|running| running.step.replace((step, Instant::now())));
        scopeguard::guard(outer, move |outer| {
            if let Some(running) = lock(&self.running).get_mut(volume) {
                running.step = outer;
            }
        })
    }

    /// Records since when the device of the volume has completed no I/O; `None` if it completes I/O.
    pub(super) fn set_hung(&self, volume: &DiskId, hung: Option<(String, Instant)>) {
        if let Some(running) = lock(&self.running).get_mut(volume) {
            running.hung = hung;
        }
    }
}

fn pending(volume: &DiskId, running: Option<&Running>) -> Error {
    let error = |progress: &str| {
        let message = format!("volume {volume}: an operation is still running: {progress}");
        Error::new(Failure::OperationPending, message)
    };
    let Some(running) = running else {
        return error("it has just ended");
    };
    let seconds = |since: Instant| since.elapsed().as_secs();
    let mut progress = format!("{} for {} s", running.operation, seconds(running.since));
    if let Some((step, since)) = &running.step {
        progress += &format!(", {step} for {} s", seconds(*since));
    }
    match &running.hung {
        Some((device, since)) => hung(volume, device, since.elapsed(), &progress),
        None => error(&progress),
    }
}

/// The device has completed no I/O although some is in flight; `progress` waits for it.
pub(super) fn hung(volume: &DiskId, device: impl Display, lasts: Duration, progress: &str) -> Error {
    let seconds = lasts.as_secs();
    let message = format!("volume {volume}: {device} has completed no I/O for {seconds} s: {progress}");
    Error::new(Failure::DiskHung, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn errors_state_the_step_and_its_duration() {
        let operations = VolumeOperations::default();
        let id: DiskId = "d-bp1".parse().unwrap();
        let inner = operations.clone();
        let long = async move {
            let volume: DiskId = "d-bp1".parse().unwrap();
            tokio::time::sleep(Duration::from_secs(3)).await;
            let _check = inner.step(&volume, "check the filesystem".to_owned());
            let _tool = inner.step(&volume, "`e2fsck -p /dev/vdb`".to_owned());
            drop(inner.step(&volume, "a short step".to_owned()));
            tokio::time::sleep(Duration::from_secs(20)).await;
            inner.set_hung(&volume, Some(("/dev/vdb".to_owned(), Instant::now())));
            tokio::time::sleep(Duration::from_secs(1000)).await;
            Ok(())
        };
        let after = |seconds| Deadline::after(Duration::from_secs(seconds));
        let run = operations.run(&id, "staging", after(10), long);
        let error = run.await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "volume d-bp1: an operation is still running: staging for 10 s, `e2fsck -p /dev/vdb` for 7 s"
        );
        tokio::time::sleep(Duration::from_secs(50)).await;
        let again = operations.run(&id, "staging", after(10), async { Ok(()) }).await;
        let error = again.unwrap_err();
        assert_eq!(error.failure(), Failure::DiskHung);
        assert!(
            error.to_string().contains("/dev/vdb has completed no I/O for 37 s"),
            "{error}"
        );
        tokio::time::sleep(Duration::from_secs(1000)).await;
        let again = operations.run(&id, "staging", after(10), async { Ok(()) }).await;
        again.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_at_the_deadline_is_returned_instead_of_the_progress() {
        let operations = VolumeOperations::default();
        let id: DiskId = "d-bp1".parse().unwrap();
        let deadline = Deadline::after(Duration::from_secs(10));
        let fails = async move {
            let _ = deadline.bound(std::future::pending::<()>()).await;
            Err::<(), _>(Error::new(
                Failure::ToolQueueTimeout,
                "2 full filesystem checks".to_owned(),
            ))
        };
        let run = operations.run(&id, "staging", deadline, fails);
        assert_eq!(run.await.unwrap_err().to_string(), "2 full filesystem checks");
    }
}

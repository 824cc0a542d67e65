//! The sidecars as the controller sees them: a call with a timeout, repeated with exponential backoff after any error.
//! They give up early when they restart, and then send the call again while the first one may still run.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use diskplugin::csi::controller::Service;
use tonic::{Code, Request, Response, Status};

use crate::history::Invariant;
use crate::plant::Plant;
use crate::rng::Rng;
use crate::world::World;

pub(crate) type Sent<R> = Pin<Box<dyn Future<Output = Result<Response<R>, Status>> + Send>>;

/// Maximum pause between two attempts: shorter than the five minutes of the sidecars, so that runs are short.
const MAX_PAUSE: Duration = Duration::from_secs(40);
/// How long a call lasts when no controller runs.
const NO_CONTROLLER: Duration = Duration::from_millis(300);

#[derive(Debug)]
pub(crate) struct Sidecar {
    pub(crate) world: Arc<World>,
    pub(crate) rng: Rng,
}

impl Sidecar {
    /// One call. `what` names it in the history.
    pub(crate) async fn once<M, R>(
        &mut self,
        what: &str,
        message: &M,
        send: fn(Service, Request<M>) -> Sent<R>,
    ) -> Result<R, Status>
    where
        M: Clone + Send + Sync + 'static,
        R: Send + 'static,
    {
        let world = Arc::clone(&self.world);
        let Some(process) = world.process() else {
            tokio::time::sleep(NO_CONTROLLER).await;
            return Err(Status::unavailable("no controller serves"));
        };
        let timeout = match self.rng.chance(10) {
            true => self.rng.millis(50, 5_000),
            false => self.rng.millis(15_000, 90_000),
        };
        let start = || {
            let mut request = Request::new(message.clone());
            request.set_timeout(timeout);
            send(process.service.clone(), request)
        };
        // The same call of an earlier process of the sidecar.
        let double = self
            .rng
            .chance(5)
            .then(|| tokio::spawn(tokio::time::timeout(timeout, start())));
        world.history.record(&format!("{what} ..."));
        let outcome = tokio::select! {
            biased;
            () = process.killed.cancelled() => Err(Status::unavailable("the controller was killed")),
            outcome = tokio::time::timeout(timeout, start()) => match outcome {
                Ok(outcome) => outcome.map(Response::into_inner),
                Err(_) => Err(Status::deadline_exceeded("the caller gave up")),
            },
        };
        if let Some(double) = double {
            tokio::select! {
                biased;
                () = process.killed.cancelled() => {}
                _ = double => {}
            }
        }
        let result = match &outcome {
            Ok(_) => "OK".to_owned(),
            Err(status) => format!("{:?} {}", status.code(), status.message()),
        };
        world.history.record(&format!("{what}: {result}"));
        let (_, secret) = world.cloud.access_key();
        let leak = (world.plant == Some(Plant::Secret)).then_some(secret);
        if let Some(error) = outcome.as_ref().err().map(Status::message).or(leak)
            && error.contains(secret)
        {
            world.history.violation(
                Invariant::NoSecret,
                format!("{what}: the error contains the secret key"),
            );
        }
        outcome
    }

    /// The pause before the next attempt.
    pub(crate) async fn pause(&mut self, attempt: u32) {
        let pause = Duration::from_secs(1 << attempt.min(6)).min(MAX_PAUSE);
        tokio::time::sleep(pause + self.rng.millis(0, 500)).await;
    }
}

/// Whether external-provisioner assumes that the volume may still be created (`isFinalError` in its controller.go).
pub(crate) fn is_final(status: &Status) -> bool {
    let pending = [
        Code::Cancelled,
        Code::DeadlineExceeded,
        Code::Unavailable,
        Code::Aborted,
    ];
    !pending.contains(&status.code())
}

//! The fake cloud in memory as the transport of one controller process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use diskplugin::base::Deadline;
use ecs::transport::{Lost, Transport};
use fake_ecs::{Cloud, HttpHandler};
use http::header::DATE;
use http::{HeaderValue, Request, Response};
use jiff::fmt::rfc2822::DateTimePrinter;
use tokio_util::bytes::Bytes;

use crate::history::History;

#[derive(Debug)]
pub(crate) struct ProcessTransport {
    cloud: Cloud,
    http: HttpHandler,
    /// None for calls of operators.
    history: Option<Arc<History>>,
    is_killed: Arc<AtomicBool>,
}

impl ProcessTransport {
    pub(crate) fn new(cloud: &Cloud, history: Option<Arc<History>>, is_killed: &Arc<AtomicBool>) -> Self {
        Self {
            cloud: cloud.clone(),
            http: cloud.http(),
            history,
            is_killed: Arc::clone(is_killed),
        }
    }
}

#[async_trait]
impl Transport for ProcessTransport {
    async fn send(&self, request: Request<String>, deadline: Deadline) -> Result<Response<Bytes>, Lost> {
        if self.is_killed.load(Ordering::Relaxed) {
            // What remains of a killed process sends nothing and never continues.
            std::future::pending::<()>().await;
        }
        if let Some(history) = &self.history {
            history.record_sent(&request);
        }
        let mut request = request.map(String::into_bytes);
        request.headers_mut().insert("host", HeaderValue::from_static("memory"));
        // A request that is on its way takes effect even if its sender is killed or gives up.
        let http = self.http.clone();
        let served = tokio::spawn(async move { http.serve(request).await });
        let served = deadline.bound(served).await.map_err(lost)?;
        if self.is_killed.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        let served = served.map_err(lost)?.map_err(lost)?;
        let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&self.cloud.now());
        let date = date.map_err(lost)?;
        let response = Response::builder().status(served.status).header(DATE, date);
        let headers = served.headers.into_iter();
        let response = headers.fold(response, |response, (name, value)| response.header(name, value));
        response.body(served.body.into()).map_err(lost)
    }
}

fn lost(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Lost {
    let was_sent = true;
    Lost {
        was_sent,
        ..Lost::not_sent(error)
    }
}

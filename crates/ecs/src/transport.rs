//! How requests reach the cloud: HTTP, or a fake cloud in memory.

use std::error::Error;
use std::fmt::Debug;

use async_trait::async_trait;
use http::{Request, Response};
use tokio_util::bytes::Bytes;

use crate::base::Deadline;

#[async_trait]
pub trait Transport: Debug + Send + Sync {
    /// Sends a request, whose URI is absolute and whose extensions contain its [`Action`], and reads the complete
    /// response.
    ///
    /// # Errors
    /// The connection failed, or the response had not arrived in full by the deadline.
    async fn send(&self, request: Request<String>, deadline: Deadline) -> Result<Response<Bytes>, Lost>;
}

#[derive(Debug, Clone, Copy)]
pub struct Action(pub &'static str);

/// A request without a complete response.
#[derive(Debug)]
pub struct Lost {
    /// Whether the request may have taken effect.
    pub was_sent: bool,
    /// The status of an incomplete response.
    pub status: Option<u16>,
    /// Contains no part of the request, which has key ID and signature.
    pub source: Box<dyn Error + Send + Sync>,
}

impl Lost {
    pub fn not_sent(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            was_sent: false,
            status: None,
            source: source.into(),
        }
    }
}

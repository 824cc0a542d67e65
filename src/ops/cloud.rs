//! The cloud, as commands reach it.

use std::sync::Arc;

use ecs::credential::CredentialProvider;
use ecs::metadata::Metadata;
use ecs::{Client, ServerClock};

use crate::cli::CloudArgs;
use crate::model::RegionId;

/// A client, its credentials, and the clock by which it signs.
#[derive(Debug)]
pub struct CloudClient {
    pub ecs: Arc<Client>,
    pub credentials: Arc<dyn CredentialProvider>,
    pub clock: ServerClock,
}

/// Creates the client that the flags describe. `app` selects the source of its credentials.
pub type Connect = fn(CloudArgs, Metadata, &RegionId) -> anyhow::Result<CloudClient>;

//! The client of the cloud, which `app` creates.

use std::sync::Arc;

use ecs::Client;
use ecs::credential::CredentialProvider;
use ecs::metadata::Metadata;

use crate::cli::CloudArgs;
use crate::model::RegionId;

/// A client and its credentials.
#[derive(Debug)]
pub struct CloudClient {
    pub ecs: Arc<Client>,
    pub credentials: Arc<dyn CredentialProvider>,
}

/// Creates the client that the flags describe. `app` selects the source of its credentials.
pub type Connect = fn(CloudArgs, Metadata, &RegionId) -> anyhow::Result<CloudClient>;

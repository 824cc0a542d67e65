//! The way to the API server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use crate::base::Deadline;

/// How long one question may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// The API server of this cluster. Clones share its connections.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").finish_non_exhaustive()
    }
}

/// Why the API server cannot be spoken to, whether it is there or not.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No kubeconfig is given, and this is not a pod with a token.
    #[error(
        "not running in a pod with a ServiceAccount token: in a pod, mount it at \
         /var/run/secrets/kubernetes.io/serviceaccount; elsewhere, set --kubeconfig"
    )]
    NoPod(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The kubeconfig cannot be used.
    #[error("--kubeconfig {} cannot be used", file.display())]
    Kubeconfig {
        file: PathBuf,
        #[source]
        source: Box<KubeconfigError>,
    },
    /// The configuration found is unusable.
    #[error("no client can be made for the API server at {url}")]
    Client {
        url: String,
        #[source]
        source: Box<kube::Error>,
    },
}

impl Cluster {
    /// The API server that the kubeconfig names; without one that of the pod, by the token of its ServiceAccount, which is
    /// read again when it changes. Nothing is sent yet.
    ///
    /// # Errors
    /// When the settings do not suffice to ask it anything.
    pub async fn new(kubeconfig: Option<&Path>) -> Result<Self, ConnectError> {
        let config = match kubeconfig {
            Some(file) => from_file(file).await?,
            None => Config::incluster().map_err(|error| ConnectError::NoPod(Box::new(error)))?,
        };
        let url = config.cluster_url.to_string();
        let client = Client::try_from(config).map_err(|source| ConnectError::Client {
            url,
            source: Box::new(source),
        })?;
        Ok(Self { client })
    }

    /// The namespace of the ServiceAccount, or that of the kubeconfig's context.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.client.default_namespace()
    }

    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }
}

async fn from_file(file: &Path) -> Result<Config, ConnectError> {
    let wrong = |source| ConnectError::Kubeconfig {
        file: file.to_owned(),
        source: Box::new(source),
    };
    let read = Kubeconfig::read_from(file).map_err(wrong)?;
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(read, &options).await;
    config.map_err(wrong)
}

/// Until when one question must be answered.
pub(super) fn soon() -> Deadline {
    Deadline::after(PATIENCE)
}

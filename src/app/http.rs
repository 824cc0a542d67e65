//! The HTTP port that the flags describe.

use crate::base::error_chain;
use crate::cli::InvalidSettings;
use crate::cli::{HttpArgs, HttpAuthorization, PageArgs};
use crate::cluster::Cluster;
use crate::http::{Authorizer, Port, Tls, bind};

/// Binds the address, if one is set.
pub(crate) async fn port(args: &HttpArgs) -> anyhow::Result<Option<Port>> {
    let Some(address) = args.http_address else {
        return Ok(None);
    };
    let tls = match (&args.http_tls_cert_file, &args.http_tls_key_file) {
        (Some(certificate), Some(key)) => Some(Tls::new(certificate.clone(), key.clone())?),
        _ => None,
    };
    bind(address, tls).await.map(Some)
}

/// Who may read the pages of a role that may use the API server.
pub(crate) async fn authorizer(args: &PageArgs) -> Result<Authorizer, InvalidSettings> {
    match args.http_authorization {
        HttpAuthorization::None => Ok(Authorizer::default()),
        HttpAuthorization::TokenReview => {
            let cluster = Cluster::new(args.http_kubeconfig.as_deref()).await;
            let cluster = cluster.map_err(|error| {
                let error = error_chain(&error);
                let flag = "--http-authorization token-review";
                InvalidSettings(vec![format!("{flag}: requires the API server: {error}")])
            })?;
            Ok(Authorizer::new(cluster))
        }
    }
}

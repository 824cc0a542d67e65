//! The HTTP port that the flags describe.

use std::sync::Arc;

use super::cluster::required;
use crate::cli::InvalidSettings;
use crate::cli::{HttpArgs, HttpAuthorization, PageArgs};
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
pub(crate) async fn authorizer(args: &PageArgs) -> Result<Arc<Authorizer>, InvalidSettings> {
    match args.http_authorization {
        HttpAuthorization::None => Ok(Arc::default()),
        HttpAuthorization::TokenReview => {
            let flag = "--http-authorization token-review";
            let cluster = required(args.http_kubeconfig.as_deref(), flag).await?;
            Ok(Arc::new(Authorizer::new(cluster)))
        }
    }
}

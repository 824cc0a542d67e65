//! Flags of the HTTP port.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub struct HttpArgs {
    /// Address and port for /healthz, /readyz, /metrics and /debug/volumes over HTTP, such as [::]:9808 for every
    /// address: of IPv6 and IPv4, or of IPv4 only on a machine without IPv6. Default: not served.
    #[arg(long, env = "DISKPLUGIN_HTTP_ADDRESS", value_parser = address)]
    pub http_address: Option<SocketAddr>,

    /// PEM file of the certificate chain: serve HTTPS. It is read again after it was replaced.
    #[arg(long, env = "DISKPLUGIN_HTTP_TLS_CERT_FILE", requires = "http_tls_key_file")]
    pub http_tls_cert_file: Option<PathBuf>,

    /// PEM file of the private key of --http-tls-cert-file.
    #[arg(long, env = "DISKPLUGIN_HTTP_TLS_KEY_FILE", requires = "http_tls_cert_file")]
    pub http_tls_key_file: Option<PathBuf>,
}

/// The pages of the HTTP port of roles that may use the API server.
#[derive(Debug, Args)]
pub struct PageArgs {
    /// Serve /status: a page for browsers with queues, waits, rate limits, recent failures and readiness. Only with
    /// --http-address.
    #[arg(long, env = "DISKPLUGIN_STATUS_PAGE", requires = "http_address")]
    pub status_page: bool,

    /// Who may read /metrics, /debug/volumes and /status. /healthz and /readyz are always open.
    #[arg(long, env = "DISKPLUGIN_HTTP_AUTHORIZATION", value_enum, default_value_t)]
    pub http_authorization: HttpAuthorization,

    /// kubeconfig for --http-authorization token-review outside of a pod. Default: the ServiceAccount token of the pod.
    #[arg(long, env = "DISKPLUGIN_HTTP_KUBECONFIG")]
    pub http_kubeconfig: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum HttpAuthorization {
    /// Everyone who can reach the port.
    #[default]
    None,
    /// Users with a ClusterRole that permits the verb get on the path, by bearer token (TokenReview and
    /// SubjectAccessReview).
    TokenReview,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let allowed = "allowed: ADDRESS:PORT, such as [::]:9808 for every address or 0.0.0.0:9808 for those of IPv4";
    text.parse().map_err(|_| allowed.to_owned())
}

//! TLS of the HTTP port. The certificate is read again after it was replaced, as cert-manager does.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use anyhow::Context;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::base::{error_chain, lock};

/// The files of a certificate chain and its private key, in PEM format.
#[derive(Debug)]
pub(crate) struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    config: Arc<ServerConfig>,
    modified: Modified,
}

impl Tls {
    pub(crate) fn new(certificate: PathBuf, key: PathBuf) -> anyhow::Result<Self> {
        let modified = modified(&certificate, &key);
        let config = config(&certificate, &key)?;
        Ok(Self {
            certificate,
            key,
            current: Mutex::new(Current { config, modified }),
        })
    }

    /// The acceptor for the next connection. With unreadable new files, the previous certificate stays in use.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let mut current = lock(&self.current);
        let modified = modified(&self.certificate, &self.key);
        if modified != current.modified {
            // Also if the files cannot be used, so that each change is logged once.
            current.modified = modified;
            match config(&self.certificate, &self.key) {
                Ok(config) => {
                    tracing::info!("the certificate of the HTTP port was replaced");
                    current.config = config;
                }
                Err(error) => {
                    let error = error_chain(error.as_ref());
                    tracing::warn!(error, "the previous certificate of the HTTP port stays in use");
                }
            }
        }
        TlsAcceptor::from(Arc::clone(&current.config))
    }
}

/// When certificate and key were last written: they may be replaced one after the other.
type Modified = [Option<SystemTime>; 2];

fn modified(certificate: &PathBuf, key: &PathBuf) -> Modified {
    let time = |file| std::fs::metadata(file).ok()?.modified().ok();
    [time(certificate), time(key)]
}

fn config(certificate: &PathBuf, key: &PathBuf) -> anyhow::Result<Arc<ServerConfig>> {
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .with_context(|| format!("cannot read --http-tls-cert-file {}", certificate.display()))?;
    let private = PrivateKeyDer::from_pem_file(key)
        .with_context(|| format!("cannot read --http-tls-key-file {}", key.display()))?;
    let provider = Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private))
        .with_context(|| {
            format!(
                "the certificate {} and the key {} cannot be used",
                certificate.display(),
                key.display()
            )
        })?;
    Ok(Arc::new(config))
}

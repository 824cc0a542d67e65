//! TLS of HTTPS requests: which certificates are trusted, and why one is rejected.

use std::error::Error as StdError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use rustls_platform_verifier::Verifier;
use webpki::EndEntityCert;

use super::error::Condition;

/// The trusted authorities: those of the system, and of a PEM file.
#[derive(Debug, Clone)]
pub struct Trust(pub(super) ClientConfig);

#[derive(Debug)]
struct Authorities {
    bundle: Option<PathBuf>,
    at_start: Verifier,
}

#[derive(Debug, Clone, thiserror::Error)]
#[error("the certificate of {host}, issued by {issuer:?}, is rejected: {reason}")]
pub(super) struct RejectedCertificate {
    condition: Condition,
    host: String,
    issuer: String,
    reason: String,
}

impl Trust {
    /// Trusts the authorities of the system (`SSL_CERT_FILE` and `SSL_CERT_DIR` replace them) and of the bundle.
    ///
    /// # Errors
    /// The reason why the bundle cannot be used.
    pub fn new(bundle: Option<PathBuf>) -> Result<Self, String> {
        let at_start = verifier(bundle.as_deref())?;
        let authorities = Arc::new(Authorities { bundle, at_start });
        let config = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let config = config.map_err(|error| error.to_string())?.dangerous();
        let mut config = config
            .with_custom_certificate_verifier(authorities)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(config))
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

fn verifier(bundle: Option<&Path>) -> Result<Verifier, String> {
    let added = bundle.map(authorities).transpose()?.unwrap_or_default();
    Verifier::new_with_extra_roots(added, provider()).map_err(|error| error.to_string())
}

fn authorities(bundle: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let content = std::fs::read(bundle).map_err(|error| format!("cannot read the file: {error}"))?;
    let text = String::from_utf8_lossy(&content);
    let text = text.trim_start_matches('\u{feff}');
    if text.contains("PRIVATE KEY-----") {
        return Err("the file has a private key, which a client does not need: remove it".to_owned());
    }
    let found = CertificateDer::pem_slice_iter(text.as_bytes()).collect::<Result<Vec<_>, _>>();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err("the file has no certificate in PEM format (-----BEGIN CERTIFICATE-----)".to_owned()),
        Err(_) => Err("the file is not valid PEM: a section has no end, or is not base64".to_owned()),
    }
}

impl ServerCertVerifier for Authorities {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verify = |verifier: &Verifier| verifier.verify_server_cert(certificate, intermediates, host, ocsp, now);
        // The bundle may have been replaced.
        let again = |error| verifier(self.bundle.as_deref()).map_or(Err(error), |current| verify(&current));
        verify(&self.at_start).or_else(again).map_err(|error| match error {
            Error::InvalidCertificate(reason) => {
                let rejected = RejectedCertificate::new(&reason, certificate, host);
                CertificateError::Other(OtherError(Arc::new(rejected))).into()
            }
            error => error,
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.at_start.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.at_start.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.at_start.supported_verify_schemes()
    }
}

impl RejectedCertificate {
    fn new(reason: &CertificateError, certificate: &CertificateDer<'_>, host: &ServerName<'_>) -> Self {
        let (condition, reason) = match reason {
            // The latter if a trusted authority has the name of the issuer, but another key.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                (Condition::TlsUntrusted, "the issuer is not trusted".to_owned())
            }
            CertificateError::Other(reason) => (Condition::TlsInvalid, reason.0.to_string()),
            reason => (Condition::TlsInvalid, reason.to_string()),
        };
        let parsed = EndEntityCert::try_from(certificate);
        Self {
            condition,
            host: host.to_str().into_owned(),
            issuer: parsed.map(|parsed| common_names(parsed.issuer())).unwrap_or_default(),
            reason,
        }
    }

    /// The rejected certificate among the causes of an error.
    pub(super) fn cause<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Self> {
        if let Some(Error::InvalidCertificate(CertificateError::Other(other))) = error.downcast_ref() {
            return other.0.downcast_ref();
        }
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // The source of an I/O error is that of the error in it, and an Arc hides the type of its error.
        let shared = error.downcast_ref::<Arc<dyn StdError + Send + Sync>>();
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        match inner.or(shared.map(|shared| &**shared)) {
            Some(inner) => Self::cause(inner),
            None => Self::cause(error.source()?),
        }
    }
}

/// Why a certificate was rejected, if that is a cause of the error.
pub fn rejection(error: &(dyn StdError + 'static)) -> Option<Condition> {
    RejectedCertificate::cause(error).map(|rejected| rejected.condition)
}

/// The common name, organization and unit in a name, which is encoded in DER.
fn common_names(name: &[u8]) -> String {
    let attributes = (0..name.len()).filter_map(|at| {
        let [0x06, 0x03, 0x55, 0x04, kind @ (3 | 10 | 11), _, length, rest @ ..] = &name[at..] else {
            return None;
        };
        let value = rest.get(..usize::from(*length))?;
        let kind = ["CN", "O", "OU"][usize::from(*kind).saturating_sub(9)];
        Some(format!("{kind}={}", String::from_utf8_lossy(value)))
    });
    attributes.collect::<Vec<_>>().join(", ")
}

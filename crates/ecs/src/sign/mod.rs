//! Signatures: pure functions of request, credentials, time and nonce.

pub mod canonical;
mod request;
mod v1;
mod v3;

pub(super) use request::format_timestamp;
pub use request::{API_VERSION, SignedRequest, UnsignedRequest};

/// The signature of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Scheme {
    /// HMAC-SHA1 over the query (`SignatureVersion=1.0`).
    #[default]
    V1,
    /// ACS3-HMAC-SHA256 over a canonical request.
    V3,
}

impl Scheme {
    pub fn sign(self, request: &UnsignedRequest<'_>) -> SignedRequest {
        match self {
            Self::V1 => v1::sign(request),
            Self::V3 => v3::sign(request),
        }
    }
}

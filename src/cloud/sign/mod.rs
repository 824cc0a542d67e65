//! Signatures: pure functions of request, credentials, time and nonce.

mod attempt;
pub mod canonical;
pub mod v1;
pub mod v3;

pub(super) use attempt::stamp;
pub use attempt::{API_VERSION, Attempt, Signed};

/// Which signature requests carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Scheme {
    /// HMAC-SHA1 over the query (`SignatureVersion=1.0`).
    #[default]
    V1,
    /// ACS3-HMAC-SHA256 over a canonical request.
    V3,
}

impl Scheme {
    /// Signs the attempt.
    pub fn sign(self, attempt: &Attempt<'_>) -> Signed {
        match self {
            Self::V1 => v1::prepare(attempt),
            Self::V3 => v3::prepare(attempt),
        }
    }
}

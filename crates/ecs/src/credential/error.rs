//! Errors of credential providers. They never contain any part of credentials or tokens.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Condition, Error, Kind};
use crate::metadata::MetadataError;

#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    #[error("no credentials are configured: {0}")]
    NotConfigured(String),
    #[error("{place} has {present}, but {absent} is missing or empty")]
    Incomplete {
        place: String,
        present: String,
        absent: String,
    },
    /// A key in a file or variable has a character that no key has.
    #[error("{name} in {place} has {found}; allowed are ASCII letters, digits and {punctuation}: write it again")]
    InvalidKey {
        place: String,
        name: String,
        /// The character and its position, without any other part of the key.
        found: String,
        punctuation: &'static str,
    },
    #[error("cannot read {}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    /// The file does not contain an OIDC token.
    #[error("{} does not contain an OIDC token: {why}", path.display())]
    InvalidToken {
        path: PathBuf,
        /// The reason, without any of the content.
        why: &'static str,
    },
    /// The call of the Security Token Service failed.
    #[error(transparent)]
    Sts(Error),
    /// A malformed response, whose content is omitted because it may be secret.
    #[error("the response of {from} has no usable credentials: {why}")]
    InvalidResponse {
        from: String,
        /// The reason, without any of the content.
        why: &'static str,
    },
    /// New credentials have already expired.
    #[error("the credentials of {from} expired at {at}: check the clock of this machine")]
    Expired { from: String, at: jiff::Timestamp },
    #[error("cannot get role credentials of the instance")]
    Metadata(#[from] MetadataError),
    #[error("no credentials within {0:?}")]
    TimedOut(Duration),
    /// The base credentials are not available, or may not assume the role.
    #[error("cannot assume role {role}")]
    AssumeRole { role: String, source: Box<Self> },
    /// The error of a renewal that several callers waited for.
    #[error(transparent)]
    Shared(Arc<Self>),
}

impl CredentialError {
    /// Whether a retry may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Expired { .. } | Self::TimedOut(_) => true,
            Self::Sts(error) => {
                let transient = [Kind::Throttled, Kind::Unreachable, Kind::Ambiguous];
                match error.status() {
                    // The service does not redirect.
                    Some(300..400) => false,
                    Some(429 | 500..) => true,
                    _ => transient.contains(&error.kind()),
                }
            }
            Self::Metadata(error) => error.is_transient(),
            Self::AssumeRole { source, .. } => source.is_transient(),
            Self::Shared(error) => error.is_transient(),
            Self::NotConfigured(_)
            | Self::Incomplete { .. }
            | Self::InvalidKey { .. }
            | Self::Unreadable { .. }
            | Self::InvalidToken { .. }
            | Self::InvalidResponse { .. } => false,
        }
    }

    /// Whether the Security Token Service rejected the key that signed the request.
    pub(super) fn is_key_rejected(&self) -> bool {
        matches!(self, Self::Sts(error) if matches!(
            error.condition(),
            Condition::AccessKeyNotFound
                | Condition::KeyInactive
                | Condition::TokenExpired
                | Condition::TokenRefused
                | Condition::SignatureMismatch
        ))
    }
}

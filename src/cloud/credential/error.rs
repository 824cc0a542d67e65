//! Why there are no credentials. Never carries any part of them, nor of a token.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::cloud::error::{Condition, Error, Kind};
use crate::cloud::metadata::MetadataError;

#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    #[error("no credentials are configured: {0}")]
    Missing(String),
    /// Half of what belongs together was configured.
    #[error("{place} has {present} but not {absent}")]
    Incomplete {
        place: String,
        present: String,
        absent: String,
    },
    #[error("cannot read {}", path.display())]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    /// The file of the OIDC token holds none.
    #[error("{} holds no OIDC token: {why}", path.display())]
    NoToken {
        path: PathBuf,
        /// What is wrong with its content, without any of it.
        why: &'static str,
    },
    /// The Security Token Service refuses, or does not answer.
    #[error(transparent)]
    Sts(Error),
    /// An answer has not what it should have. What it has is not told: it may be a secret.
    #[error("the answer of {from} has no credentials that can be used: {why}")]
    Unusable {
        from: String,
        /// What is wrong with it, without any of it.
        why: &'static str,
    },
    /// The credentials that came are at their end already.
    #[error("the credentials of {from} came at their end, {at}: compare the clock of this machine")]
    Stale { from: String, at: jiff::Timestamp },
    #[error("the instance has no role credentials")]
    Metadata(#[source] MetadataError),
    #[error("{0:?} were not enough to get credentials")]
    Slow(Duration),
    /// The credentials to assume a role with cannot be had.
    #[error("role {role} cannot be assumed")]
    Base { role: String, source: Box<Self> },
    /// What all who waited for one renewal are told.
    #[error(transparent)]
    Shared(Arc<Self>),
}

impl CredentialError {
    /// Whether it may pass by itself, so that a later try is worth while.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Stale { .. } | Self::Slow(_) => true,
            Self::Sts(error) => {
                let is_passing = [Kind::Throttled, Kind::Unreachable, Kind::Ambiguous];
                match error.status() {
                    // What redirects is not the service.
                    Some(300..400) => false,
                    Some(429 | 500..) => true,
                    _ => is_passing.contains(&error.kind()),
                }
            }
            Self::Metadata(error) => error.is_passing(),
            Self::Base { source, .. } => source.is_passing(),
            Self::Shared(error) => error.is_passing(),
            Self::Missing(_)
            | Self::Incomplete { .. }
            | Self::Unreadable { .. }
            | Self::NoToken { .. }
            | Self::Unusable { .. } => false,
        }
    }

    /// Whether the Security Token Service refused the key that the request was signed with.
    pub(super) fn is_about_the_key(&self) -> bool {
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

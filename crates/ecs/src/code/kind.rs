//! The consequence of an error for the caller, independent of its code.

/// The consequence of an error for the caller. Determined by the `Code`, because actions return the
/// same condition with different HTTP statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The request never reached the cloud: nothing happened.
    Unreachable,
    /// The request may have taken effect: connection lost, malformed response, 5xx.
    Ambiguous,
    /// Too many calls; wait.
    Throttled,
    /// The resource is currently in another state; describe it again.
    Conflict,
    /// An earlier call under the same token is still running.
    OperationPending,
    /// The client token was used before for a different request.
    TokenMismatch,
    NotFound,
    /// The category is not available in this zone or with these options; another zone or category may be.
    OutOfStock,
    /// A quota or limit of the account or instance is reached.
    Quota,
    /// The disk, instance, key or account must be changed first.
    Precondition,
    /// The size, performance level or number of IOPS is not supported.
    OutOfRange,
    /// The temporary credentials are expired, or the key is unknown and may have been replaced:
    /// renew them and sign again.
    Expired,
    /// The request is malformed or uses an unknown action: an error in the caller.
    Bug,
    /// The credentials are wrong, expired or not permitted.
    Denied,
    /// The nonce was used before: sign again.
    NonceUsed,
    /// The request can never succeed as it is.
    Invalid,
    /// The deadline passed; whether the request took effect is unknown.
    Deadline,
    Credentials,
}

impl Kind {
    /// The name of an error without a code of the cloud, in metrics and traces.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "Unreachable",
            Self::Ambiguous => "NoResponse",
            Self::Throttled => "Throttled",
            Self::Conflict => "Conflict",
            Self::OperationPending => "OperationPending",
            Self::TokenMismatch => "TokenMismatch",
            Self::NotFound => "NotFound",
            Self::OutOfStock => "OutOfStock",
            Self::Quota => "QuotaExceeded",
            Self::Precondition => "FailedPrecondition",
            Self::OutOfRange => "OutOfRange",
            Self::Expired => "CredentialsExpired",
            Self::Bug => "MalformedRequest",
            Self::Denied => "Denied",
            Self::NonceUsed => "NonceUsed",
            Self::Invalid => "Invalid",
            Self::Deadline => "DeadlineExceeded",
            Self::Credentials => "NoCredentials",
        }
    }

    /// Whether a call with this error may have taken effect, or may still. A used nonce may be that
    /// of a copy of this request.
    pub(crate) fn is_ambiguous(self) -> bool {
        matches!(
            self,
            Self::Ambiguous | Self::OperationPending | Self::NonceUsed | Self::Deadline
        )
    }
}

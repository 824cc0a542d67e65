//! What an error means for the caller, whatever its code.

/// What an error means for the caller. Decided by the string `Code`; the same condition comes with
/// different HTTP statuses from different actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The request never reached the cloud: nothing happened.
    Unreachable,
    /// It may or may not have happened: connection lost, unreadable answer, 5xx.
    Ambiguous,
    /// Too many calls; wait.
    Throttled,
    /// The resource is in another state now; read it again.
    Conflict,
    /// An earlier call under the same token is still running.
    InFlight,
    /// The token was used before, for another request.
    TokenMismatch,
    NotFound,
    /// This category cannot be had in this zone now, or not as wanted: another pair may do.
    OutOfStock,
    /// A quota or limit of the account or instance is reached.
    Quota,
    /// Somebody must change something about the disk, the instance, the key or the account first.
    Precondition,
    /// No such size, performance level or number of IOPS.
    OutOfRange,
    /// The temporary credentials are expired, or the key is unknown and may have been replaced: renew
    /// them and sign again.
    Expired,
    /// The request is malformed or names what the API does not have: a mistake of this driver.
    Bug,
    /// The credentials are wrong, expired or not permitted.
    Denied,
    /// The nonce was used before: sign again.
    Resign,
    /// The request can never succeed as it is.
    Invalid,
    /// The caller's deadline came first; whether it happened is unknown.
    Deadline,
    Credentials,
}

impl Kind {
    /// Whether a call that failed like this may have taken effect, or may still. A used nonce may be that of a copy of
    /// this very request.
    pub(in crate::cloud) fn is_ambiguous(self) -> bool {
        matches!(
            self,
            Self::Ambiguous | Self::InFlight | Self::Resign | Self::Deadline
        )
    }
}

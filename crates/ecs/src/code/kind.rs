//! The consequence of an error for the caller, independent of its code.

/// Each row: the variant, and the name of an error without a code of the cloud.
macro_rules! kinds {
    ($($(#[$about:meta])* $variant:ident = $name:literal,)*) => {
        /// The consequence of an error for the caller. Determined by the `Code`, because actions return the same
        /// condition with different HTTP statuses.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Kind { $($(#[$about])* $variant,)* }

        impl Kind {
            /// The name of an error without a code of the cloud, in metrics and traces.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

kinds! {
    /// The request never reached the cloud: nothing happened.
    Unreachable = "Unreachable",
    /// The request may have taken effect: connection lost, malformed response, 5xx.
    Ambiguous = "NoResponse",
    /// Too many calls; wait.
    Throttled = "Throttled",
    /// The resource is currently in another state; describe it again.
    Conflict = "Conflict",
    /// An earlier call under the same token is still running.
    OperationPending = "OperationPending",
    /// The client token was used before for a different request.
    TokenMismatch = "TokenMismatch",
    NotFound = "NotFound",
    /// The category is not available in this zone or with these options; another zone or category may be.
    OutOfStock = "OutOfStock",
    /// A quota or limit of the account or instance is reached.
    Quota = "QuotaExceeded",
    /// The disk, instance, key or account must be changed first.
    Precondition = "FailedPrecondition",
    /// The size, performance level or number of IOPS is not supported.
    OutOfRange = "OutOfRange",
    /// The temporary credentials are expired, or the key is unknown and may have been replaced:
    /// renew them and sign again.
    Expired = "CredentialsExpired",
    /// The request is malformed or uses an unknown action: an error in the caller.
    Bug = "MalformedRequest",
    /// The credentials are wrong, expired or not permitted.
    Denied = "Denied",
    /// The nonce was used before: sign again.
    NonceUsed = "NonceUsed",
    /// The request can never succeed as it is.
    Invalid = "Invalid",
    /// The deadline passed; whether the request took effect is unknown.
    Deadline = "DeadlineExceeded",
    Credentials = "NoCredentials",
}

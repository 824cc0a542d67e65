//! Kinds of failures.

/// The kind of a failure. Each maps to the gRPC code of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    NotFound,
    /// The name belongs to another resource.
    AlreadyExists,
    /// A state must be changed before the call can succeed.
    FailedPrecondition,
    /// No capacity, stock or quota is left.
    ResourceExhausted,
    OutOfRange,
    /// The operation may have succeeded or be in progress; the caller must retry.
    Unavailable,
    /// Another operation is in progress; the caller must retry later.
    Aborted,
    /// The operation may be in progress; the caller must retry.
    DeadlineExceeded,
    PermissionDenied,
    Unauthenticated,
    /// The request can never succeed as it is.
    InvalidArgument,
    /// The operation was attempted and failed.
    Internal,
}

impl FailureKind {
    /// Whether the caller may conclude that the call had no effect. After any other failure it must repeat the call
    /// until it succeeds or fails with a final code (CSI sidecars; promise 11).
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Unavailable | Self::Aborted | Self::DeadlineExceeded)
    }
}

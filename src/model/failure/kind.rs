//! Kinds of failures.

/// The kind of a failure, with the number of the gRPC code of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    NotFound = 5,
    /// The name belongs to another resource.
    AlreadyExists = 6,
    /// A state must be changed before the call can succeed.
    FailedPrecondition = 9,
    /// No capacity, stock or quota is left. The scheduler chooses another node.
    ResourceExhausted = 8,
    OutOfRange = 11,
    /// The operation may have succeeded or be in progress; the caller must retry.
    Unavailable = 14,
    /// Another operation is in progress; the caller must retry later.
    Aborted = 10,
    /// The operation may be in progress; the caller must retry.
    DeadlineExceeded = 4,
    PermissionDenied = 7,
    Unauthenticated = 16,
    /// The request can never succeed as it is.
    InvalidArgument = 3,
    /// The operation was attempted and failed.
    Internal = 13,
}

impl FailureKind {
    /// Whether the caller may conclude that the call had no effect. After any other failure it must repeat the call
    /// until it succeeds or fails with a final code (as the CSI sidecars do).
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Unavailable | Self::Aborted | Self::DeadlineExceeded)
    }
}

//! The failure that a cloud error is for users.

use ecs::Condition;

use super::Failure;

impl From<&ecs::Error> for Failure {
    fn from(error: &ecs::Error) -> Self {
        error.condition().into()
    }
}

impl From<Condition> for Failure {
    fn from(condition: Condition) -> Self {
        match condition {
            Condition::Unreachable => Self::CloudUnreachable,
            Condition::Ambiguous | Condition::NonceUsed => Self::OutcomeUnknown,
            Condition::Deadline => Self::TimedOut,
            Condition::Throttled | Condition::AccountThrottled | Condition::TooManyOperations => Self::Throttled,
            Condition::OperationPending => Self::CloudOperationPending,
            Condition::TokenMismatch => Self::ClientTokenConflict,
            Condition::NoCredentials => Self::NoCredentials,
            Condition::OidcTokenExpired
            | Condition::TokenExpired
            | Condition::OidcTokenRefused
            | Condition::TokenRefused => Self::CredentialsExpired,
            Condition::AccessKeyNotFound => Self::AccessKeyNotFound,
            Condition::Denied => Self::AccessDenied,
            Condition::KeyInactive => Self::AccessKeyInactive,
            Condition::SignatureMismatch => Self::SignatureMismatch,
            Condition::ClockSkew | Condition::ClockFormat => Self::ClockSkew,
            Condition::RoleNotAssumable | Condition::RoleParameter => Self::RoleNotAssumable,
            Condition::FeatureNotEnabled => Self::FeatureNotEnabled,
            Condition::Conflict
            | Condition::DiskStatus
            | Condition::NotAttached
            | Condition::DiskUnchanged
            | Condition::ChangedTooOften => Self::ResourceBusy,
            Condition::DiskStillAttached => Self::DiskStillAttached,
            Condition::SnapshotNotReady => Self::SnapshotNotReady,
            Condition::NodeOccupied | Condition::NodeStatus | Condition::NodeStopped => Self::NodeBusy,
            Condition::NotFound | Condition::AlreadyDetached => Self::NoSuchResource,
            Condition::NoSuchDisk => Self::NoSuchDisk,
            Condition::NoSuchSnapshot => Self::NoSuchSnapshot,
            Condition::NoSuchGroup => Self::NoSuchGroup,
            Condition::NoSuchNode => Self::NoSuchNode,
            Condition::OutOfStock | Condition::ZoneClosed | Condition::IncompatibleOptions => Self::OutOfStock,
            Condition::Quota | Condition::AccountQuota | Condition::TooManyGroupDisks | Condition::GroupTooLarge => {
                Self::QuotaReached
            }
            Condition::AttachLimitExceeded => Self::AttachLimitExceeded,
            Condition::TooManyAttachments => Self::TooManyAttachments,
            Condition::Precondition
            | Condition::CategoryDenied
            | Condition::CategoryUnsupported
            | Condition::SharedDisk
            | Condition::MixedCategories
            | Condition::LocalDisk
            | Condition::NotBootable
            | Condition::ForceUnsupported => Self::InvalidState,
            Condition::NotSnapshottable | Condition::CategoryNotSnapshottable => Self::SnapshotUnsupported,
            Condition::SubscriptionDisk
            | Condition::DeleteWithInstanceRequired
            | Condition::AttachedElsewhereBefore
            | Condition::SystemDisk => Self::DiskNotPortable,
            Condition::ForceInSameZone | Condition::NotInSameZone => Self::NotInSameZone,
            Condition::InstanceTypeIncompatible => Self::InstanceTypeIncompatible,
            Condition::NodeNeedsRestart => Self::NodeNeedsRestart,
            Condition::NodeLocked => Self::NodeLocked,
            Condition::NeverAttached => Self::NeverAttached,
            Condition::CoolingPeriod => Self::CoolingPeriod,
            Condition::OfflineExpansionOnly => Self::OfflineExpansionOnly,
            Condition::UsedByDisk | Condition::UsedByImage => Self::SnapshotInUse,
            Condition::SnapshotLocked | Condition::SnapshotShared | Condition::SnapshotManaged => Self::SnapshotLocked,
            Condition::SnapshotIncompatible => Self::SnapshotIncompatible,
            Condition::KmsKeyUnusable => Self::KmsKeyUnusable,
            Condition::AccountInArrears => Self::AccountInArrears,
            Condition::UnknownRegion | Condition::RegionUnsupported => Self::UnknownRegion,
            Condition::NeedsTls | Condition::InvalidCloudEndpoint => Self::InvalidCloudEndpoint,
            Condition::OutOfRange
            | Condition::NotLarger
            | Condition::SizeUnavailable
            | Condition::PerformanceOutOfRange => Self::OutOfRange,
            Condition::Invalid | Condition::PerformanceUnsupported => Self::RequestRejected,
            Condition::UnknownZone | Condition::ZoneFilter => Self::UnknownZone,
            Condition::EncryptionMismatch | Condition::EncryptionUnsupported => Self::EncryptionMismatch,
            Condition::TooManyTags => Self::TooManyTags,
            Condition::Bug | Condition::DryRunAccepted | Condition::NothingToModify => Self::DriverBug,
        }
    }
}

#[cfg(test)]
mod tests {
    use ecs::Kind;

    use super::*;

    #[test]
    fn an_error_without_a_listed_code_has_the_failure_of_its_kind() {
        for (kind, name) in [
            (Kind::Expired, "CREDENTIALS_EXPIRED"),
            (Kind::Denied, "ACCESS_DENIED"),
            (Kind::Conflict, "RESOURCE_BUSY"),
            (Kind::NotFound, "NO_SUCH_RESOURCE"),
            (Kind::Quota, "QUOTA_REACHED"),
            (Kind::Precondition, "INVALID_STATE"),
            (Kind::Invalid, "REQUEST_REJECTED"),
            (Kind::Bug, "DRIVER_BUG"),
        ] {
            assert_eq!(Failure::from(&ecs::Error::new(kind, "X")).name(), name);
        }
    }
}

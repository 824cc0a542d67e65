//! The stable name of each failure: of the verb's own refusals, and of the cloud's codes.

use super::Error;
use crate::cloud::view::WaitError;
use crate::cloud::{self, Kind};
use crate::model::Failure;

impl Error {
    /// The name that people know it by, with what it means and what to do.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match self {
            Self::NoSuchDisk { .. } => Failure::NoSuchDisk,
            Self::NoSuchSnapshot { .. } => Failure::NoSuchSnapshot,
            Self::NoSuchNode { .. } => Failure::NoSuchNode,
            Self::NoSuchGroup { .. } => Failure::NoSuchGroup,
            Self::NotOurs { .. } => Failure::NotOurs,
            Self::InUseElsewhere { .. } => Failure::DiskInUseElsewhere,
            Self::StillAttached { .. } => Failure::DiskStillAttached,
            Self::Exists { .. } => Failure::NameTaken,
            Self::OutOfStock { .. } => Failure::OutOfStock,
            Self::OutOfRange { .. } => Failure::OutOfRange,
            Self::Incompatible(incompatible) => incompatible.failure(),
            Self::NodeFull { .. } => Failure::NodeFull,
            Self::FellBack { .. } => Failure::AttachFellBack,
            Self::StillDetaching { .. } => Failure::StillDetaching,
            Self::SnapshotFailed { .. } => Failure::SnapshotFailed,
            Self::NeverAttached { .. } => Failure::NeverAttached,
            Self::NotCut { .. } => Failure::SnapshotNotCut,
            Self::SnapshotHeld { source, .. } => of_cloud(source),
            // CSI: the first and the last of these are INVALID_ARGUMENT.
            Self::InGroup { .. } => Failure::SnapshotInGroup,
            Self::NotGroupable { .. } => Failure::NotGroupable,
            Self::GroupFailed { .. } => Failure::GroupFailed,
            Self::GroupHeld { .. } => Failure::GroupHeld,
            Self::OtherMembers { .. } => Failure::OtherMembers,
            Self::SnapshotNotReady { .. } => Failure::SnapshotNotReady,
            Self::CannotBecome { .. } | Self::Unchangeable { .. } => Failure::ChangeRefused,
            Self::Cooling { .. } => Failure::CoolingPeriod,
            Self::TaskFailed { .. } => Failure::ChangeFailed,
            Self::OnlyOffline { .. } => Failure::OnlyOffline,
            Self::NodeStopped { .. } => Failure::NodeStopped,
            Self::CreationUnresolved { .. } => Failure::CreationUnresolved,
            Self::Queue { .. } => Failure::QueueTooLong,
            Self::EmptyResponse { .. } => Failure::EmptyResponse,
            Self::Wait {
                source: WaitError::Deadline { .. },
                ..
            } => Failure::DeadlinePassed,
            Self::Wait {
                source: WaitError::Cloud(source),
                ..
            } => of_cloud(source),
            Self::Wait {
                source: WaitError::Unproven { .. },
                ..
            } => Failure::AbsenceUnproven,
            Self::Cloud { source, .. } => of_cloud(source),
        }
    }
}

/// The name of a cloud's refusal: by its code where that says more than its kind.
#[must_use]
pub fn of_cloud(error: &cloud::Error) -> Failure {
    const NO_SNAPSHOTS: [&str; 3] = [
        "DiskCategory.OperationNotSupported",
        "IncorrectDiskType.NotSupport",
        "DiskId.ValueNotSupported",
    ];
    let snapshots = error.action().starts_with("CreateSnapshot");
    if snapshots
        && error
            .code()
            .is_some_and(|code| NO_SNAPSHOTS.contains(&code))
    {
        return Failure::SnapshotUnsupported;
    }
    let by_code = error.code().and_then(|code| {
        let has = |(_, codes): &&(Failure, &str)| codes.split_whitespace().any(|one| one == code);
        CODES.iter().find(has).map(|(failure, _)| *failure)
    });
    by_code
        .or_else(|| error.code().and_then(of_family))
        .unwrap_or_else(|| of_kind(error.kind()))
}

fn of_family(code: &str) -> Option<Failure> {
    let families = [
        ("InvalidParameter.KMSKeyId.", Failure::KmsKeyUnusable),
        ("InvalidKMSKeyId.", Failure::KmsKeyUnusable),
        ("InvalidAccountStatus.", Failure::AccountInArrears),
        ("InvalidInstanceType.", Failure::NodeTypeUnfit),
        ("InvalidSecurityToken", Failure::CredentialsExpired),
        ("AuthenticationFail.", Failure::CredentialsExpired),
        ("InvalidEncrypted.", Failure::EncryptionMismatch),
        ("IncorrectInstanceStatus.", Failure::NodeNeedsRestart),
    ];
    let found = families.iter().find(|(start, _)| code.starts_with(start));
    found.map(|(_, failure)| *failure)
}

fn of_kind(kind: Kind) -> Failure {
    match kind {
        Kind::Unreachable => Failure::CloudUnreachable,
        Kind::Ambiguous | Kind::Resign => Failure::CloudUnclear,
        Kind::Throttled => Failure::Throttled,
        Kind::Conflict => Failure::ResourceBusy,
        Kind::InFlight => Failure::CallInFlight,
        Kind::TokenMismatch => Failure::TokenTaken,
        Kind::NotFound => Failure::NoSuchResource,
        Kind::OutOfStock => Failure::OutOfStock,
        Kind::Quota => Failure::QuotaReached,
        Kind::Precondition => Failure::StateForbids,
        Kind::OutOfRange => Failure::OutOfRange,
        Kind::Bug => Failure::DriverBug,
        Kind::Denied => Failure::CredentialsDenied,
        Kind::Expired => Failure::CredentialsExpired,
        Kind::Credentials => Failure::NoCredentials,
        Kind::Invalid => Failure::CloudRefuses,
        Kind::Deadline => Failure::DeadlinePassed,
    }
}

/// Codes that tell people more than their kind does.
const CODES: &[(Failure, &str)] = &[
    (Failure::NoSuchDisk, "InvalidDiskId.NotFound"),
    (
        Failure::NoSuchSnapshot,
        "InvalidSnapshotId.NotFound InvalidSnapshot.NotFound",
    ),
    (Failure::NoSuchGroup, "InvalidSnapshotGroupId.NotFound"),
    (Failure::NoSuchNode, "InvalidInstanceId.NotFound"),
    (Failure::DiskStillAttached, "DiskStillAttached"),
    (
        Failure::NodeFull,
        "InstanceDiskLimitExceeded InvalidOperation.DiskQueueNumberNotEnough",
    ),
    (Failure::TooManyHolders, "DiskAttachedNumberExceeded"),
    (
        Failure::AccountInArrears,
        "DiskInArrears InstanceExpiredOrInArrears Account.Arrearage
         InsufficientBalance.AgentAccount InvalidPayMethod OperationDenied.UnfinishedOrder",
    ),
    (
        Failure::KmsKeyUnusable,
        "InvalidParameter.KmsNotEnabled InvalidParameter.Encrypted.KmsNotEnable
         InvalidParameter.DataEncryptedKeyCreateFailed",
    ),
    (
        Failure::EncryptionMismatch,
        "InvalidParameter.EncryptedIllegal InvalidParameter.EncryptedNotSupported
         InvalidKmsKeyId.NotMatchSnapshot EncryptedOption.Conflict",
    ),
    (
        Failure::NotInSameZone,
        "ResourcesNotInSameZone InvalidInstance.ZoneConflict InvalidDiskIds.NotInSameZone",
    ),
    (
        Failure::NodeTypeUnfit,
        "InvalidDiskCategory.InstanceTypeUnsupported InvalidOperation.InstanceTypeNotSupport",
    ),
    (
        Failure::NodeNeedsRestart,
        "InstanceSpecModification.NotEffective",
    ),
    (Failure::NodeLocked, "InstanceLockedForSecurity"),
    (
        Failure::DiskNotMovable,
        "DiskNotPortable DiskTypeViolation InvalidOperation.OtherInstanceUnsupported
         InvalidOperation.DiskCategoryUnsupported InvalidParameter.DeleteWithInstance",
    ),
    (Failure::CoolingPeriod, "DiskInCoolingPeriod"),
    (
        Failure::OnlyOffline,
        "InvalidDiskSize.NotSupportResizeOnline
         InvalidOperation.InstanceTypeNotSupportOnlineResize
         InvalidOperation.MultiAttachDiskNotSupportResizeOnline",
    ),
    (
        Failure::NeverAttached,
        "IncorrectDiskStatus.NeverAttached IncorrectDiskStatus.NeverUsed",
    ),
    (
        Failure::SnapshotNotReady,
        "InvalidSnapshot.NotReady InvalidSnapshotId.NotReady",
    ),
    (
        Failure::SnapshotInUse,
        "SnapshotCreatedDisk SnapshotCreatedImage",
    ),
    (
        Failure::SnapshotLocked,
        "InvalidOperation.SnapshotIsLocked InvalidOperation.DeleteSharedSnapshotUnsupported
         InvalidOperation.ResourceManagedByCloudProduct",
    ),
    (
        Failure::SnapshotUnfit,
        "InvalidSnapshot.TooOld InvalidSnapshot.TooLarge InvalidSnapshotId.NotDataDiskSnapshot
         InvalidOperation.CreateFromSnapshotUnsupported OperationDenied.SnapshotNotAllowed
         NotSupportSnapshotEncrypted.RegionId NotSupportSnapshotEncrypted.ShareImage",
    ),
    (
        Failure::WrongRegion,
        "InvalidRegionId.NotFound InvalidRegionId.MalFormed InvalidRegion.NotFound
         InvalidRegion.NotSupport Invalid.RegionId Unavailable.Regions",
    ),
    (Failure::WrongZone, "InvalidZoneId.NotFound"),
    (Failure::TooManyTags, "QuotaExceed.Tags"),
    (
        Failure::WrongEndpoint,
        "InvalidApi.NotFound InvalidAction.NotFound InvalidVersion NoSuchVersion
         UnsupportedHTTPMethod InvalidProtocol.NeedSsl",
    ),
    (
        Failure::NodeBusy,
        "InvalidOperation.Conflict OperationConflict.DisksAttachingParallellyExceed
         DisksDetachingOnEcsExceeded IncorrectInstanceStatus InvalidInstanceStatus.NotRunning
         InvalidOperation.InstanceStatusUnsupported",
    ),
    (
        Failure::CredentialsExpired,
        "InvalidSecurityToken.Expired MissingSecurityToken",
    ),
    (Failure::KeyUnknown, "InvalidAccessKeyId.NotFound"),
    (Failure::KeySwitchedOff, "InvalidAccessKeyId.Inactive"),
    (Failure::SignatureRefused, "SignatureDoesNotMatch"),
    (
        Failure::ClockWrong,
        "InvalidTimeStamp.Expired InvalidTimeStamp.Format IllegalTimestamp",
    ),
    (
        Failure::RoleUnusable,
        "EntityNotExist.Role NoPermission InvalidParameter.RoleArn
         InvalidParameter.RoleSessionName InvalidParameter.DurationSeconds
         InvalidParameter.OIDCProviderArn",
    ),
    (
        Failure::FeatureNotEnabled,
        "UserNotInTheWhiteList RegionUnauthorized",
    ),
];

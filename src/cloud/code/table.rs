//! The table of conditions with kind, error name and codes. Every code is listed once, or belongs to a family (see
//! [`super::condition`]). Sources: the gateway's common errors, the error lists of the actions and of STS, and codes in
//! public reports. The spelling is the cloud's, including misspellings.
//!
//! The kind depends on the remedy. Transient errors are [`Kind::Conflict`], [`Kind::OperationPending`],
//! [`Kind::Throttled`] or [`Kind::Ambiguous`]. If another zone or category may work, it is [`Kind::OutOfStock`]. If the
//! disk, node, key or account must be changed, it is [`Kind::Precondition`]; for the PersistentVolumeClaim or its
//! class,
//! [`Kind::OutOfRange`] or [`Kind::Invalid`]. An error that only a defect of this driver causes is [`Kind::Bug`]. Only
//! the disk, snapshot, group or instance of the call itself is [`Kind::NotFound`]: deletion treats that as success,
//! which would be wrong for a missing key or zone.

use super::kind::Kind;
use crate::model::Failure;

/// Each row: the variant, its kind, its name, and its codes.
macro_rules! conditions {
    ($($variant:ident $kind:ident $failure:ident $codes:literal;)*) => {
        /// The condition that an error code reports.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Condition { $($variant,)* }

        impl Condition {
            /// All conditions with their codes. The first one of a kind is its generic condition.
            pub(super) const ALL: &[(Self, &str)] = &[$((Self::$variant, $codes),)*];

            pub(in crate::cloud) fn kind(self) -> Kind {
                match self { $(Self::$variant => Kind::$kind,)* }
            }

            pub fn failure(self) -> Failure {
                match self { $(Self::$variant => Failure::$failure,)* }
            }
        }
    };
}

conditions! {
    // The call did not reach the cloud or was not processed.
    Unreachable Unreachable CloudUnreachable "";
    Ambiguous Ambiguous OutcomeUnknown
        "InternalError ServiceUnavailable UnknownError CreateSnapshot.Failed";
    NonceUsed NonceUsed OutcomeUnknown "SignatureNonceUsed";
    Deadline Deadline TimedOut "";
    Throttled Throttled Throttled "Throttling Throttling.Api Rejected.Throttling";
    AccountThrottled Throttled Throttled "Throttling.User";
    TooManyOperations Throttled Throttled "Throttling.ConcurrentLimitExceeded";
    OperationPending OperationPending CloudOperationPending "LastTokenProcessing IdempotentProcessing LastOrderProcessing";
    TokenMismatch TokenMismatch ClientTokenConflict "IdempotentParameterMismatch";

    // Key, signature, permissions and region.
    NoCredentials Credentials NoCredentials "";
    OidcTokenExpired Expired CredentialsExpired "AuthenticationFail.OIDCToken.Expired";
    TokenExpired Expired CredentialsExpired
        "MissingSecurityToken InvalidSecurityToken.Expired InvalidSecurityToken.Malformed
         InvalidSecurityToken.MismatchWithAccessKey";
    AccessKeyNotFound Expired AccessKeyNotFound "InvalidAccessKeyId.NotFound";
    Denied Denied AccessDenied "Forbidden NoPermission.Tag";
    OidcTokenRefused Denied CredentialsExpired "AuthenticationFail.OIDCToken.Invalid";
    TokenRefused Denied CredentialsExpired "";
    KeyInactive Denied AccessKeyInactive "InvalidAccessKeyId.Inactive";
    SignatureMismatch Denied SignatureMismatch "SignatureDoesNotMatch";
    ClockSkew Denied ClockSkew "InvalidTimeStamp.Expired";
    RoleNotAssumable Denied RoleNotAssumable "EntityNotExist.Role NoPermission";
    FeatureNotEnabled Denied FeatureNotEnabled "RegionUnauthorized UserNotInTheWhiteList";

    // The resource, or its instance, is in a transient state.
    Conflict Conflict ResourceBusy
        "IncorrectVolumeStatus DISK_HAS_CREATING_SNAPSHOT DiskCreatingSnapshot DiskId.StatusNotSupported
         InvalidDisk.InUse Operation.Conflict InvalidOperation.DiskDetachingFromThisEcs
         InvalidStatus.Upgrading InvalidStatus.DiskNotReady OperationDenied.DiskExpansionUnfinished
         BurstingEnabledForModifyingDiskUnsupported QuotaExceed.ConcurrentSnapshotQuota
         InvalidOperation.RelatedSnapshotNotFinished InvalidOperation.UnfinishedEncryptedSnapshotCopy
         InvalidOperation.UnfinishedCrossRegionCopy";
    DiskStatus Conflict ResourceBusy "IncorrectDiskStatus";
    DiskStillAttached Conflict DiskStillAttached "DiskStillAttached";
    NotAttached Conflict ResourceBusy "DependencyViolation";
    DiskUnchanged Conflict ResourceBusy "NoChangeInDiskCategoryAndPerformanceLevel";
    ChangedTooOften Conflict ResourceBusy "ModifyingDiskCategoryLimitExceed";
    SnapshotNotReady Conflict SnapshotNotReady "InvalidSnapshot.NotReady InvalidSnapshotId.NotReady";
    // The instance is busy with another disk.
    NodeOccupied Conflict NodeBusy
        "InvalidOperation.Conflict OperationConflict DisksDetachingOnEcsExceeded
         OperationConflict.DisksAttachingParallellyExceed";
    NodeStatus Conflict NodeBusy "IncorrectInstanceStatus InvalidOperation.InstanceStatusUnsupported";
    NodeStopped Conflict NodeBusy "InvalidInstanceStatus.NotRunning";

    // The resource of the call does not exist.
    NotFound NotFound NoSuchResource "InvalidResourceId.NotFound";
    NoSuchDisk NotFound NoSuchDisk "InvalidDiskId.NotFound";
    NoSuchSnapshot NotFound NoSuchSnapshot "InvalidSnapshotId.NotFound InvalidSnapshot.NotFound";
    NoSuchGroup NotFound NoSuchGroup "InvalidSnapshotGroupId.NotFound";
    NoSuchNode NotFound NoSuchNode "InvalidInstanceId.NotFound";
    AlreadyDetached NotFound NoSuchResource "InvalidDisk.AlreadyDetached";

    // Not available in this zone or category; another one may work.
    OutOfStock OutOfStock OutOfStock
        "ZoneNotOnSale OperationDenied.NoStock OperationDenied.NotEnoughCapacity
         OperationDenied.CloudSSDNotSupported InvalidDiskCategory.ValueUnauthorized
         InvalidPerformanceLevel.ValueNotSupported NotSupportSnapshotEncrypted.ZoneId
         InvalidStorageClusterId.CapacityNotEnough";
    ZoneClosed OutOfStock OutOfStock "Zone.NotOnSale OperationDenied.ZoneNotAllowed";
    // Not available with other options of the request, such as multi-attach or encryption.
    IncompatibleOptions OutOfStock OutOfStock
        "OperationDenied.ZoneNotSupportMultiAttachDisk NotSupportSnapshotEncrypted.DiskCategory
         InvalidDiskCategory.ConflictSnapshotCategory
         InvalidParameter.DiskCategoryAndMultiAttachConflict
         InvalidParameter.DiskCategoryAndMultiAttachNotMatch";

    Quota Quota QuotaReached "OperationDenied.QuotaExceed";
    AccountQuota Quota QuotaReached "InstanceDiskCategoryLimitExceed";
    AttachLimitExceeded Quota AttachLimitExceeded "InstanceDiskLimitExceeded InvalidOperation.DiskQueueNumberNotEnough";
    TooManyAttachments Quota TooManyAttachments "DiskAttachedNumberExceeded";
    TooManyGroupDisks Quota QuotaReached "NumberExceed.TooManyDisks";
    GroupTooLarge Quota QuotaReached "CapacityExceed.TooManyDisks";

    // The disk, node, snapshot, key or account must be changed first.
    Precondition Precondition InvalidState
        "DiskError DiskHasFlashSnapshot InvalidDiskId.OperationNotSupported
         InvalidDiskStatus.DeleteProtection InvalidDisk.DetachedSystemDisk
         IncorrectDiskType.NotSupport OperationDenied InvalidResourceId.NotSupported
         IncorrectDiskStatus.Invalid IncorrectDiskStatus.InReplication
         InvalidOperation.DiskInReplicaPairsUnsupported InvalidDiskSize.NotSupportMultiAttachDisk
         InvalidOperation.CanNotAttachMultiAttachDiskAsSystemDisk DeleteWithInstance.Conflict
         InvalidInstance.ImageCategory InvalidInstance.NoDisk InvalidInstance.NotOriginInstance
         DependencyViolation.WindowsInstance";
    // The zone or category is closed, or not enabled for this account.
    CategoryDenied Precondition InvalidState "";
    CategoryUnsupported Precondition InvalidState
        "InvalidDiskCategory.NotSupported InvalidDiskCategory.ValueNotSupported Downgrade.NotSupported";
    SharedDisk Precondition InvalidState "InvalidOperation.MultiAttachDisk InvalidDisk.ShareVolume";
    MixedCategories Precondition InvalidState "InvalidDisk.DiskCategoryInconsistent";
    // The disk does not support snapshots.
    NotSnapshottable Precondition SnapshotUnsupported "";
    CategoryNotSnapshottable Precondition SnapshotUnsupported "";
    SubscriptionDisk Precondition DiskNotPortable "DiskNotPortable";
    LocalDisk Precondition InvalidState "DiskCategory.OperationNotSupported DiskId.ValueNotSupported";
    // Elastic ephemeral disks require `DeleteWithInstance`.
    DeleteWithInstanceRequired Precondition DiskNotPortable
        "InvalidParameter.DeleteWithInstance InvalidOperation.DiskCategoryUnsupported";
    AttachedElsewhereBefore Precondition DiskNotPortable "InvalidOperation.OtherInstanceUnsupported";
    SystemDisk Precondition DiskNotPortable "DiskTypeViolation";
    NotBootable Precondition InvalidState "InvalidDisk.DiskNotBootable";
    ForceUnsupported Precondition InvalidState "";
    ForceInSameZone Precondition NotInSameZone "InvalidInstance.ZoneConflict";
    NotInSameZone Precondition NotInSameZone "ResourcesNotInSameZone InvalidDiskIds.NotInSameZone";
    InstanceTypeIncompatible Precondition InstanceTypeIncompatible
        "InvalidDiskCategory.InstanceTypeUnsupported InvalidOperation.InstanceTypeNotSupport";
    NodeNeedsRestart Precondition NodeNeedsRestart
        "InstanceSpecModification.NotEffective IncorrectInstanceStatus.NotSupportESSD";
    NodeLocked Precondition NodeLocked "InstanceLockedForSecurity";
    NeverAttached Precondition NeverAttached
        "IncorrectDiskStatus.NeverAttached IncorrectDiskStatus.NeverUsed";
    CoolingPeriod Precondition CoolingPeriod "DiskInCoolingPeriod";
    OfflineExpansionOnly Precondition OfflineExpansionOnly
        "InvalidDiskSize.NotSupportResizeOnline InvalidOperation.InstanceTypeNotSupportOnlineResize
         InvalidOperation.MultiAttachDiskNotSupportResizeOnline";
    UsedByDisk Precondition SnapshotInUse "SnapshotCreatedDisk";
    UsedByImage Precondition SnapshotInUse "SnapshotCreatedImage";
    SnapshotLocked Precondition SnapshotLocked "InvalidOperation.SnapshotIsLocked";
    SnapshotShared Precondition SnapshotLocked "InvalidOperation.DeleteSharedSnapshotUnsupported";
    SnapshotManaged Precondition SnapshotLocked "InvalidOperation.ResourceManagedByCloudProduct";
    SnapshotIncompatible Precondition SnapshotIncompatible
        "InvalidSnapshot.TooOld InvalidSnapshot.TooLarge InvalidSnapshotId.NotDataDiskSnapshot
         InvalidOperation.CreateFromSnapshotUnsupported OperationDenied.SnapshotNotAllowed
         NotSupportSnapshotEncrypted.RegionId NotSupportSnapshotEncrypted.ShareImage";
    KmsKeyUnusable Precondition KmsKeyUnusable
        "InvalidParameter.KmsNotEnabled InvalidParameter.Encrypted.KmsNotEnable
         InvalidParameter.DataEncryptedKeyCreateFailed";
    AccountInArrears Precondition AccountInArrears
        "DiskInArrears InstanceExpiredOrInArrears Account.Arrearage
         InsufficientBalance.AgentAccount InvalidPayMethod OperationDenied.UnfinishedOrder";
    UnknownRegion Precondition UnknownRegion "Invalid.RegionId Unavailable.Regions";
    RegionUnsupported Precondition UnknownRegion "InvalidRegion.NotSupport";
    NeedsTls Precondition InvalidCloudEndpoint "InvalidProtocol.NeedSsl";

    // Another size, performance level or number of IOPS works.
    OutOfRange OutOfRange OutOfRange
        "InvalidSize.ValueNotSupported InvalidDiskSize.NotSupported InvalidDiskSizeOrCategory
         InvalidDiskSize.ExceedsMultiAttachLimit";
    NotLarger OutOfRange OutOfRange "InvalidDiskSize InvalidDiskSize.TooSmall";
    SizeUnavailable OutOfRange OutOfRange "InvalidDiskSize.TooLarge InvalidDataDiskSize.ValueNotSupported";
    PerformanceOutOfRange OutOfRange OutOfRange
        "OperationDenied.PerformanceLevelNotMatch InvalidPerformanceLevel.TooLow
         InvalidProvisionedIops.LimitExceed InvalidBurstingEnabled.DiskSizeTooSmall";

    // The PersistentVolumeClaim, its class or its tags are invalid.
    Invalid Invalid RequestRejected
        "InvalidParameter InvalidParameter.Conflict InvalidDiskName.Malformed
         InvalidSnapshotName.Malformed InvalidDescription.Malformed InvalidRetentionDays.Malformed
         ProvisionedIopsForDiskCategoryRequired InvalidParameter.MultiAttach
         InvalidParameter.MultiAttachAndInstanceIdConflict
         InvalidResourceGroup.NotFound InvalidStorageSetId.NotFound
         InvalidStorageClusterId.NotExist InvalidStorageClusterId.StatusNotSupport
         InvalidStorageClusterId.CategoryNotMatch InvalidStorageClusterId.PerformanceLevelNotMatch
         InvalidStorageClusterId.ConflictWithStorageSetId
         InvalidStorageClusterId.ConflictWithInstanceId
         InvalidStorageClusterId.DiskCategoryUnsupported
         Duplicate.TagKey TagKey.Duplication InvalidTagKey.Malformed InvalidTagValue.Malformed
         NumberExceed.Tags";
    PerformanceUnsupported Invalid RequestRejected
        "InvalidPerformanceLevel.Malformed InvalidPerformanceLevelParam.Mismatch
         ProvisionedIopsForDiskCategoryUnsupported BurstingEnabledForDiskCategoryUnsupported
         BurstingEnabledForMultiAttachDiskUnsupported";
    UnknownZone Invalid UnknownZone "InvalidZoneId.NotFound";
    EncryptionMismatch Invalid EncryptionMismatch
        "InvalidParameter.EncryptedIllegal InvalidKmsKeyId.NotMatchSnapshot EncryptedOption.Conflict";
    EncryptionUnsupported Invalid EncryptionMismatch "InvalidParameter.EncryptedNotSupported";
    TooManyTags Invalid TooManyTags "QuotaExceed.Tags";
    RoleParameter Invalid RoleNotAssumable
        "InvalidParameter.RoleArn InvalidParameter.RoleSessionName InvalidParameter.DurationSeconds
         InvalidParameter.OIDCProviderArn";

    // Requests that the driver never sends.
    Bug Bug DriverBug
        "IncompleteSignature IncompleteParamter InvalidParamter InvalidSignatureMethod
         ParameterConflict.DiskIdAndDiskIds Param.Conflict InvalidParam.Type
         InvalidParam.ZoneIdAndInstanceId.Conflict
         InvalidParam.ExcludeDiskIdsAndDiskIds.Conflict InvalidParameter.AllEmpty
         InvalidZoneId.DiskCategoryUnsupported InvalidClientToken.Malformed
         InvalidOperation.NotSupportCopyInSameRegion
         InvalidDevice.Malformed InvalidDevice.InUse
         InvalidDiskType.ValueNotSupported InvalidCategory.ValueNotSupported
         InvalidStatus.ValueNotSupported InvalidParameter.DiskIds InvalidDiskIds.Malformed
         InvalidDiskIds.ValueNotSupported InvalidSnapshotIds.Malformed
         InvalidTag.Mismatch InvalidTagCount InvalidFilterKey.NotFound InvalidFilterValue
         InvalidDiskChargeType.NotFound InvalidLockReason.NotFound InvalidStatus.NotFound
         InvalidUsage InvalidSourceDiskType InvalidSnapshotType.NotFound
         InvalidSnapshotLinkId.NotFound NumberExceed.ResourceIds InvalidResourceType.NotFound
         Invalid.Param Invalid.InstanceChargeType Invalid.ResourceType Invalid.DestinationResource
         InvalidParam.TypeAndCpuMem.Conflict InvalidParam.Cores InvalidParam.Memory
         InvalidParameter.Scope DiskIdLimitExceeded EventIdLimitExceeded
         InvalidParameter.TimeEndBeforeStart TooManyDiskEvent.DiskIdRequired
         InvalidParameter.TooManyDataQueried InvalidEndTime.Malformed InvalidPeriod.ValueNotSupported";
    // A dry run reports with this code that the call is valid.
    DryRunAccepted Bug DriverBug "DryRunOperation";
    NothingToModify Bug DriverBug "NoAttributeToModify";
    ClockFormat Bug ClockSkew "InvalidTimeStamp.Format IllegalTimestamp";
    ZoneFilter Bug UnknownZone "";
    InvalidCloudEndpoint Bug InvalidCloudEndpoint
        "InvalidApi.NotFound InvalidAction.NotFound InvalidVersion NoSuchVersion UnsupportedHTTPMethod";
}

//! The table of conditions with kind and codes. Every code is listed once, or belongs to a family to which the cloud
//! adds new codes: those with a prefix that is listed with `*`. Sources: the gateway's common errors, the error lists
//! of the actions and of STS, and codes in public reports. The spelling is the cloud's, including misspellings.
//!
//! The kind depends on the remedy. Transient errors are [`Kind::Conflict`], [`Kind::OperationPending`],
//! [`Kind::Throttled`] or [`Kind::Ambiguous`]. If another zone or category may work, it is [`Kind::OutOfStock`]. If the
//! disk, node, key or account must be changed, it is [`Kind::Precondition`]; for the request, [`Kind::OutOfRange`] or
//! [`Kind::Invalid`]. An error that only a defect of the caller causes is [`Kind::Bug`]. Only the disk, snapshot, group
//! or instance of the call itself is [`Kind::NotFound`]: deletion treats that as success, which would be wrong for a
//! missing key or zone.

use super::kind::Kind;

/// Each row: the variant, its kind, and its codes.
macro_rules! conditions {
    ($($variant:ident $kind:ident $codes:literal;)*) => {
        /// The condition that an error code reports.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Condition { $($variant,)* }

        impl Condition {
            /// All conditions with their codes. The first one of a kind is its generic condition.
            pub(super) const ALL: &[(Self, &str)] = &[$((Self::$variant, $codes),)*];

            pub(crate) fn kind(self) -> Kind {
                match self { $(Self::$variant => Kind::$kind,)* }
            }
        }
    };
}

conditions! {
    // The call did not reach the cloud or was not processed.
    Unreachable Unreachable "";
    TlsUntrusted Unreachable "";
    TlsInvalid Unreachable "";
    Ambiguous Ambiguous
        "InternalError ServiceUnavailable UnknownError CreateSnapshot.Failed";
    NonceUsed NonceUsed "SignatureNonceUsed";
    Deadline Deadline "";
    Throttled Throttled "Throttling Throttling.Api Rejected.Throttling";
    AccountThrottled Throttled "Throttling.User";
    TooManyOperations Throttled "Throttling.ConcurrentLimitExceeded";
    OperationPending OperationPending "LastTokenProcessing IdempotentProcessing LastOrderProcessing";
    TokenMismatch TokenMismatch "IdempotentParameterMismatch";

    // Key, signature, permissions and region.
    NoCredentials Credentials "";
    OidcTokenExpired Expired "AuthenticationFail.OIDCToken.Expired";
    TokenExpired Expired
        "MissingSecurityToken InvalidSecurityToken.Expired InvalidSecurityToken.Malformed
         InvalidSecurityToken.MismatchWithAccessKey";
    AccessKeyNotFound Expired "InvalidAccessKeyId.NotFound InvalidAccessKeyId*";
    Denied Denied "Forbidden NoPermission.Tag Forbidden.* NoPermission*";
    OidcTokenRefused Denied "AuthenticationFail.OIDCToken.Invalid AuthenticationFail.*";
    TokenRefused Denied "InvalidSecurityToken*";
    KeyInactive Denied "InvalidAccessKeyId.Inactive";
    SignatureMismatch Denied "SignatureDoesNotMatch";
    ClockSkew Denied "InvalidTimeStamp.Expired";
    RoleNotAssumable Denied "EntityNotExist.Role NoPermission";
    FeatureNotEnabled Denied "RegionUnauthorized UserNotInTheWhiteList";

    // The resource, or its instance, is in a transient state.
    Conflict Conflict
        "IncorrectVolumeStatus DISK_HAS_CREATING_SNAPSHOT DiskCreatingSnapshot DiskId.StatusNotSupported
         InvalidDisk.InUse Operation.Conflict InvalidOperation.DiskDetachingFromThisEcs
         InvalidStatus.Upgrading InvalidStatus.DiskNotReady OperationDenied.DiskExpansionUnfinished
         BurstingEnabledForModifyingDiskUnsupported QuotaExceed.ConcurrentSnapshotQuota
         InvalidOperation.RelatedSnapshotNotFinished InvalidOperation.UnfinishedEncryptedSnapshotCopy
         InvalidOperation.UnfinishedCrossRegionCopy IncorrectDiskStatus.* OperationConflict.*";
    DiskStatus Conflict "IncorrectDiskStatus";
    DiskStillAttached Conflict "DiskStillAttached";
    NotAttached Conflict "DependencyViolation";
    DiskUnchanged Conflict "NoChangeInDiskCategoryAndPerformanceLevel";
    ChangedTooOften Conflict "ModifyingDiskCategoryLimitExceed";
    SnapshotNotReady Conflict "InvalidSnapshot.NotReady InvalidSnapshotId.NotReady";
    // The instance is busy with another disk.
    NodeOccupied Conflict
        "InvalidOperation.Conflict OperationConflict DisksDetachingOnEcsExceeded
         OperationConflict.DisksAttachingParallellyExceed";
    NodeStatus Conflict "IncorrectInstanceStatus InvalidOperation.InstanceStatusUnsupported";
    NodeStopped Conflict "InvalidInstanceStatus.NotRunning";

    // The resource of the call does not exist.
    NotFound NotFound "InvalidResourceId.NotFound";
    NoSuchDisk NotFound "InvalidDiskId.NotFound";
    NoSuchSnapshot NotFound "InvalidSnapshotId.NotFound InvalidSnapshot.NotFound";
    NoSuchGroup NotFound "InvalidSnapshotGroupId.NotFound";
    NoSuchNode NotFound "InvalidInstanceId.NotFound";
    AlreadyDetached NotFound "InvalidDisk.AlreadyDetached";

    // Not available in this zone or category; another one may work.
    OutOfStock OutOfStock
        "ZoneNotOnSale OperationDenied.NoStock OperationDenied.NotEnoughCapacity
         OperationDenied.CloudSSDNotSupported InvalidDiskCategory.ValueUnauthorized
         InvalidPerformanceLevel.ValueNotSupported NotSupportSnapshotEncrypted.ZoneId
         InvalidStorageClusterId.CapacityNotEnough InvalidDataDiskCategory*";
    ZoneClosed OutOfStock "Zone.NotOnSale OperationDenied.ZoneNotAllowed";
    // Not available with other options of the request, such as multi-attach or encryption.
    IncompatibleOptions OutOfStock
        "OperationDenied.ZoneNotSupportMultiAttachDisk NotSupportSnapshotEncrypted.DiskCategory
         InvalidDiskCategory.ConflictSnapshotCategory
         InvalidParameter.DiskCategoryAndMultiAttachConflict
         InvalidParameter.DiskCategoryAndMultiAttachNotMatch";

    Quota Quota "OperationDenied.QuotaExceed";
    AccountQuota Quota "InstanceDiskCategoryLimitExceed QuotaExceed*";
    AttachLimitExceeded Quota "InstanceDiskLimitExceeded InvalidOperation.DiskQueueNumberNotEnough";
    TooManyAttachments Quota "DiskAttachedNumberExceeded";
    TooManyGroupDisks Quota "NumberExceed.TooManyDisks";
    GroupTooLarge Quota "CapacityExceed.TooManyDisks";

    // The disk, node, snapshot, key or account must be changed first.
    Precondition Precondition
        "DiskError DiskHasFlashSnapshot InvalidDiskId.OperationNotSupported
         InvalidDiskStatus.DeleteProtection InvalidDisk.DetachedSystemDisk
         IncorrectDiskType.NotSupport OperationDenied InvalidResourceId.NotSupported
         IncorrectDiskStatus.Invalid IncorrectDiskStatus.InReplication
         InvalidOperation.DiskInReplicaPairsUnsupported InvalidDiskSize.NotSupportMultiAttachDisk
         InvalidOperation.CanNotAttachMultiAttachDiskAsSystemDisk DeleteWithInstance.Conflict
         InvalidInstance.ImageCategory InvalidInstance.NoDisk InvalidInstance.NotOriginInstance
         DependencyViolation.WindowsInstance";
    // The zone or category is closed, or not enabled for this account.
    CategoryDenied Precondition "";
    CategoryUnsupported Precondition
        "InvalidDiskCategory.NotSupported InvalidDiskCategory.ValueNotSupported Downgrade.NotSupported";
    SharedDisk Precondition "InvalidOperation.MultiAttachDisk InvalidDisk.ShareVolume";
    MixedCategories Precondition "InvalidDisk.DiskCategoryInconsistent";
    // The disk does not support snapshots.
    NotSnapshottable Precondition "";
    CategoryNotSnapshottable Precondition "";
    SubscriptionDisk Precondition "DiskNotPortable";
    LocalDisk Precondition "DiskCategory.OperationNotSupported DiskId.ValueNotSupported";
    // Elastic ephemeral disks require `DeleteWithInstance`.
    DeleteWithInstanceRequired Precondition
        "InvalidParameter.DeleteWithInstance InvalidOperation.DiskCategoryUnsupported";
    AttachedElsewhereBefore Precondition "InvalidOperation.OtherInstanceUnsupported";
    SystemDisk Precondition "DiskTypeViolation";
    NotBootable Precondition "InvalidDisk.DiskNotBootable";
    ForceUnsupported Precondition "InvalidParameterForce.*";
    ForceInSameZone Precondition "InvalidInstance.ZoneConflict";
    NotInSameZone Precondition "ResourcesNotInSameZone InvalidDiskIds.NotInSameZone";
    InstanceTypeIncompatible Precondition
        "InvalidDiskCategory.InstanceTypeUnsupported InvalidOperation.InstanceTypeNotSupport InvalidInstanceType.*";
    NodeNeedsRestart Precondition
        "InstanceSpecModification.NotEffective IncorrectInstanceStatus.NotSupportESSD";
    NodeLocked Precondition "InstanceLockedForSecurity";
    NeverAttached Precondition
        "IncorrectDiskStatus.NeverAttached IncorrectDiskStatus.NeverUsed";
    CoolingPeriod Precondition "DiskInCoolingPeriod";
    OfflineExpansionOnly Precondition
        "InvalidDiskSize.NotSupportResizeOnline InvalidOperation.InstanceTypeNotSupportOnlineResize
         InvalidOperation.MultiAttachDiskNotSupportResizeOnline";
    UsedByDisk Precondition "SnapshotCreatedDisk";
    UsedByImage Precondition "SnapshotCreatedImage";
    SnapshotLocked Precondition "InvalidOperation.SnapshotIsLocked";
    SnapshotShared Precondition "InvalidOperation.DeleteSharedSnapshotUnsupported";
    SnapshotManaged Precondition "InvalidOperation.ResourceManagedByCloudProduct";
    SnapshotIncompatible Precondition
        "InvalidSnapshot.TooOld InvalidSnapshot.TooLarge InvalidSnapshotId.NotDataDiskSnapshot
         InvalidOperation.CreateFromSnapshotUnsupported OperationDenied.SnapshotNotAllowed
         NotSupportSnapshotEncrypted.RegionId NotSupportSnapshotEncrypted.ShareImage";
    KmsKeyUnusable Precondition
        "InvalidParameter.KmsNotEnabled InvalidParameter.Encrypted.KmsNotEnable
         InvalidParameter.DataEncryptedKeyCreateFailed InvalidParameter.KMSKeyId.* InvalidKMSKeyId.*";
    AccountInArrears Precondition
        "DiskInArrears InstanceExpiredOrInArrears Account.Arrearage
         InsufficientBalance.AgentAccount InvalidPayMethod OperationDenied.UnfinishedOrder InvalidAccountStatus*";
    UnknownRegion Precondition "Invalid.RegionId Unavailable.Regions InvalidRegion*";
    RegionUnsupported Precondition "InvalidRegion.NotSupport";
    NeedsTls Precondition "InvalidProtocol.NeedSsl";

    // Another size, performance level or number of IOPS works.
    OutOfRange OutOfRange
        "InvalidSize.ValueNotSupported InvalidDiskSize.NotSupported InvalidDiskSizeOrCategory
         InvalidDiskSize.ExceedsMultiAttachLimit";
    NotLarger OutOfRange "InvalidDiskSize InvalidDiskSize.TooSmall";
    SizeUnavailable OutOfRange "InvalidDiskSize.TooLarge InvalidDataDiskSize.ValueNotSupported";
    PerformanceOutOfRange OutOfRange
        "OperationDenied.PerformanceLevelNotMatch InvalidPerformanceLevel.TooLow
         InvalidProvisionedIops.LimitExceed InvalidBurstingEnabled.DiskSizeTooSmall";

    // The parameters or tags of the request are invalid.
    Invalid Invalid
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
    PerformanceUnsupported Invalid
        "InvalidPerformanceLevel.Malformed InvalidPerformanceLevelParam.Mismatch
         ProvisionedIopsForDiskCategoryUnsupported BurstingEnabledForDiskCategoryUnsupported
         BurstingEnabledForMultiAttachDiskUnsupported";
    UnknownZone Invalid "InvalidZoneId.NotFound";
    EncryptionMismatch Invalid
        "InvalidParameter.EncryptedIllegal InvalidKmsKeyId.NotMatchSnapshot EncryptedOption.Conflict
         InvalidEncrypted.*";
    EncryptionUnsupported Invalid "InvalidParameter.EncryptedNotSupported";
    TooManyTags Invalid "QuotaExceed.Tags";
    RoleParameter Invalid
        "InvalidParameter.RoleArn InvalidParameter.RoleSessionName InvalidParameter.DurationSeconds
         InvalidParameter.OIDCProviderArn";

    // Requests that a correct caller never sends.
    Bug Bug
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
         InvalidParameter.TooManyDataQueried InvalidEndTime.Malformed InvalidPeriod.ValueNotSupported
         Missing* InvalidStartTime.*";
    // A dry run reports with this code that the call is valid.
    DryRunAccepted Bug "DryRunOperation";
    NothingToModify Bug "NoAttributeToModify";
    ClockFormat Bug "InvalidTimeStamp.Format IllegalTimestamp";
    ZoneFilter Bug "";
    InvalidCloudEndpoint Bug
        "InvalidApi.NotFound InvalidAction.NotFound InvalidVersion NoSuchVersion UnsupportedHTTPMethod";
}

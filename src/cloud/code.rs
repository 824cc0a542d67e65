//! What each code of the cloud means: the one table from codes to kinds.
//!
//! Sources: the gateway's table, the error lists of every action that this driver knows, those of
//! STS, and codes that others have met. Spelling is as the cloud's, misspelt ones included.
//!
//! The rule behind a choice is who can do something about it. What passes by itself is
//! [`Kind::Conflict`], [`Kind::InFlight`], [`Kind::Throttled`] or [`Kind::Ambiguous`]. What another
//! zone or category may still give is [`Kind::OutOfStock`]. What a person must change first about the
//! disk, the node, the key or the account is [`Kind::Precondition`], and about the claim or its class
//! [`Kind::OutOfRange`] or [`Kind::Invalid`]. What no person can cause without an error in this
//! driver is [`Kind::Bug`]. Only the disk, snapshot, group or instance of the call itself is ever
//! [`Kind::NotFound`]: deleting takes that for success, and a missing key or zone must not pass for
//! it.
//!
//! Where the same code means something else from another action, or with another status,
//! [`BY_ACTION`] says so first. A code that is in neither falls by its family, then by its status.

use super::error::Kind;

/// What the code means that this action answered with this status.
pub(super) fn kind(action: &str, status: u16, code: &str) -> Kind {
    let special = BY_ACTION
        .iter()
        .find(|row| row.code == code && row.is_of(action, status));
    if let Some(row) = special {
        return row.kind;
    }
    let listed = |(_, codes): &&(Kind, &str)| codes.split_whitespace().any(|known| known == code);
    if let Some((kind, _)) = TABLE.iter().find(listed) {
        return *kind;
    }
    family(code).unwrap_or_else(|| by_status(status, code))
}

/// A code that means something of its own from one action.
#[derive(Debug)]
struct Special {
    action: &'static str,
    /// Only with this status.
    status: Option<u16>,
    code: &'static str,
    kind: Kind,
}

impl Special {
    fn is_of(&self, action: &str, status: u16) -> bool {
        self.action == action && self.status.is_none_or(|only| only == status)
    }
}

const fn special(action: &'static str, code: &'static str, kind: Kind) -> Special {
    Special {
        action,
        status: None,
        code,
        kind,
    }
}

/// Of an existing disk these say that it cannot be what is asked; of a new one, that another zone or
/// category may do.
const BY_ACTION: &[Special] = &[
    // The same code with 400: the zone is closed, or not open to this account.
    Special {
        action: "CreateDisk",
        status: Some(403),
        code: "OperationDenied",
        kind: Kind::Precondition,
    },
    special("CreateDisk", "OperationDenied", Kind::OutOfStock),
    special(
        "CreateDisk",
        "InvalidDiskCategory.NotSupported",
        Kind::OutOfStock,
    ),
    special(
        "CreateDisk",
        "InvalidDiskCategory.ValueNotSupported",
        Kind::OutOfStock,
    ),
    // No user has a say in these filters.
    special("DescribeDisks", "InvalidParameter.MultiAttach", Kind::Bug),
    special("DescribeDisks", "InvalidZoneId.NotFound", Kind::Bug),
    special("DescribeDisksFullStatus", "InvalidParameter", Kind::Bug),
];

/// Codes that mean the same from every action, in the order of the kinds.
const TABLE: &[(Kind, &str)] = &[
    (
        Kind::Ambiguous,
        "InternalError ServiceUnavailable UnknownError CreateSnapshot.Failed",
    ),
    (
        Kind::Throttled,
        "Throttling Throttling.User Throttling.Api Throttling.ConcurrentLimitExceeded
         Rejected.Throttling",
    ),
    (Kind::Resign, "SignatureNonceUsed"),
    (
        Kind::InFlight,
        "LastTokenProcessing IdempotentProcessing LastOrderProcessing",
    ),
    (Kind::TokenMismatch, "IdempotentParameterMismatch"),
    // The resource, or its instance, is in another state now; it leaves it by itself.
    (
        Kind::Conflict,
        "IncorrectDiskStatus IncorrectDiskStatus.Initializing IncorrectDiskStatus.CreatingSnapshot
         IncorrectDiskStatus.Transferring IncorrectDiskStatus.TooManyCreatingSnapshots
         IncorrectVolumeStatus DISK_HAS_CREATING_SNAPSHOT DiskCreatingSnapshot DiskStillAttached
         DiskId.StatusNotSupported InvalidDisk.InUse DependencyViolation
         IncorrectInstanceStatus InvalidInstanceStatus.NotRunning
         InvalidOperation.InstanceStatusUnsupported
         InvalidOperation.Conflict OperationConflict Operation.Conflict
         OperationConflict.DisksAttachingParallellyExceed DisksDetachingOnEcsExceeded
         InvalidOperation.DiskDetachingFromThisEcs
         InvalidStatus.Upgrading InvalidStatus.DiskNotReady OperationDenied.DiskExpansionUnfinished
         ModifyingDiskCategoryLimitExceed NoChangeInDiskCategoryAndPerformanceLevel
         BurstingEnabledForModifyingDiskUnsupported
         InvalidSnapshot.NotReady InvalidSnapshotId.NotReady QuotaExceed.ConcurrentSnapshotQuota
         InvalidOperation.RelatedSnapshotNotFinished
         InvalidOperation.UnfinishedEncryptedSnapshotCopy
         InvalidOperation.UnfinishedCrossRegionCopy",
    ),
    (
        Kind::NotFound,
        "InvalidDiskId.NotFound InvalidSnapshotId.NotFound InvalidSnapshot.NotFound
         InvalidSnapshotGroupId.NotFound InvalidInstanceId.NotFound InvalidResourceId.NotFound
         InvalidDisk.AlreadyDetached",
    ),
    // This zone, category or pair does not have it; the next one may.
    (
        Kind::OutOfStock,
        "Zone.NotOnSale ZoneNotOnSale OperationDenied.NoStock OperationDenied.NotEnoughCapacity
         OperationDenied.ZoneNotAllowed OperationDenied.CloudSSDNotSupported
         OperationDenied.ZoneNotSupportMultiAttachDisk
         InvalidDataDiskCategory.NotSupported InvalidDataDiskCategory.ValueNotSupported
         InvalidDiskCategory.ValueUnauthorized InvalidDiskCategory.ConflictSnapshotCategory
         InvalidPerformanceLevel.ValueNotSupported
         InvalidParameter.DiskCategoryAndMultiAttachConflict
         InvalidParameter.DiskCategoryAndMultiAttachNotMatch
         NotSupportSnapshotEncrypted.ZoneId NotSupportSnapshotEncrypted.DiskCategory
         InvalidStorageClusterId.CapacityNotEnough",
    ),
    // Their families follow below; these have no family.
    (
        Kind::Quota,
        "InstanceDiskLimitExceeded InvalidOperation.DiskQueueNumberNotEnough
         DiskAttachedNumberExceeded InstanceDiskCategoryLimitExceed
         NumberExceed.TooManyDisks CapacityExceed.TooManyDisks OperationDenied.QuotaExceed",
    ),
    // The disk, the node, the snapshot, the key or the account must be changed by somebody.
    (
        Kind::Precondition,
        "DiskNotPortable DiskTypeViolation DiskError DiskInCoolingPeriod DiskHasFlashSnapshot
         DiskId.ValueNotSupported DiskCategory.OperationNotSupported
         InvalidDiskId.OperationNotSupported InvalidDiskStatus.DeleteProtection
         InvalidDiskCategory.NotSupported InvalidDiskCategory.ValueNotSupported
         InvalidDiskCategory.InstanceTypeUnsupported InvalidDisk.DetachedSystemDisk
         InvalidDisk.DiskNotBootable InvalidDisk.DiskCategoryInconsistent InvalidDisk.ShareVolume
         IncorrectDiskType.NotSupport Downgrade.NotSupported OperationDenied
         OperationDenied.UnfinishedOrder InvalidResourceId.NotSupported
         IncorrectDiskStatus.NeverAttached IncorrectDiskStatus.NeverUsed
         IncorrectDiskStatus.Invalid IncorrectDiskStatus.InReplication
         InvalidOperation.DiskInReplicaPairsUnsupported
         InvalidDiskSize.NotSupportResizeOnline InvalidDiskSize.NotSupportMultiAttachDisk
         InvalidOperation.InstanceTypeNotSupportOnlineResize
         InvalidOperation.MultiAttachDiskNotSupportResizeOnline
         InvalidOperation.MultiAttachDisk InvalidOperation.CanNotAttachMultiAttachDiskAsSystemDisk
         InvalidOperation.InstanceTypeNotSupport InvalidOperation.OtherInstanceUnsupported
         InvalidOperation.DiskCategoryUnsupported DeleteWithInstance.Conflict
         InvalidParameter.DeleteWithInstance
         ResourcesNotInSameZone InvalidInstance.ZoneConflict InvalidDiskIds.NotInSameZone
         IncorrectInstanceStatus.NotSupportESSD InstanceSpecModification.NotEffective
         InstanceLockedForSecurity InvalidInstance.ImageCategory InvalidInstance.NoDisk
         InvalidInstance.NotOriginInstance DependencyViolation.WindowsInstance
         InvalidInstanceType.NotSupportDiskCategory InvalidInstanceType.NotSupportPL0
         InvalidInstanceType.NvmeRequired InvalidInstanceType.NvmeUnsupported
         InvalidInstanceType.NotSupportMultiAttachDisk
         InvalidParameterForce.DiskCategoryNotSupported
         InvalidParameterForce.PrepaidDiskNotSupported
         InvalidParameterForce.MultiAttachDiskNotSupported
         InvalidParameterForce.RegionNotSupported
         SnapshotCreatedDisk SnapshotCreatedImage InvalidOperation.SnapshotIsLocked
         InvalidOperation.DeleteSharedSnapshotUnsupported
         InvalidOperation.ResourceManagedByCloudProduct
         InvalidOperation.CreateFromSnapshotUnsupported OperationDenied.SnapshotNotAllowed
         InvalidSnapshot.TooOld InvalidSnapshot.TooLarge InvalidSnapshotId.NotDataDiskSnapshot
         NotSupportSnapshotEncrypted.RegionId NotSupportSnapshotEncrypted.ShareImage
         InvalidParameter.KMSKeyId.NotFound InvalidParameter.KMSKeyId.CMKNotEnabled
         InvalidParameter.KMSKeyId.CMKUnauthorized InvalidParameter.KMSKeyId.KMSUnauthorized
         InvalidKMSKeyId.NotFound InvalidKMSKeyId.NotSymmetric InvalidParameter.KmsNotEnabled
         InvalidParameter.Encrypted.KmsNotEnable InvalidParameter.DataEncryptedKeyCreateFailed
         DiskInArrears InstanceExpiredOrInArrears Account.Arrearage
         InsufficientBalance.AgentAccount InvalidAccountStatus.NotEnoughBalance
         InvalidAccountStatus.SnapshotServiceUnavailable InvalidPayMethod
         InvalidRegionId.NotFound InvalidRegionId.MalFormed InvalidRegion.NotFound
         InvalidRegion.NotSupport Invalid.RegionId Unavailable.Regions InvalidProtocol.NeedSsl",
    ),
    // Another size, performance level or number of IOPS would do.
    (
        Kind::OutOfRange,
        "InvalidSize.ValueNotSupported InvalidDiskSize InvalidDiskSize.NotSupported
         InvalidDiskSize.TooSmall InvalidDiskSize.TooLarge InvalidDiskSize.ExceedsMultiAttachLimit
         InvalidDataDiskSize.ValueNotSupported InvalidDiskSizeOrCategory
         OperationDenied.PerformanceLevelNotMatch InvalidPerformanceLevel.TooLow
         InvalidProvisionedIops.LimitExceed InvalidBurstingEnabled.DiskSizeTooSmall",
    ),
    // New credentials may be in place already.
    (
        Kind::Expired,
        "InvalidAccessKeyId.NotFound MissingSecurityToken InvalidSecurityToken.Expired
         InvalidSecurityToken.Malformed InvalidSecurityToken.MismatchWithAccessKey
         AuthenticationFail.OIDCToken.Expired",
    ),
    (
        Kind::Denied,
        "InvalidAccessKeyId.Inactive SignatureDoesNotMatch InvalidTimeStamp.Expired
         Forbidden Forbidden.RAM Forbidden.RiskControl RegionUnauthorized UserNotInTheWhiteList
         NoPermission NoPermission.Tag EntityNotExist.Role AuthenticationFail.OIDCToken.Invalid",
    ),
    // The claim, its class or its tags ask for what there is not.
    (
        Kind::Invalid,
        "InvalidParameter InvalidParameter.Conflict InvalidZoneId.NotFound
         InvalidDiskName.Malformed InvalidSnapshotName.Malformed InvalidDescription.Malformed
         InvalidRetentionDays.Malformed InvalidPerformanceLevel.Malformed
         InvalidPerformanceLevelParam.Mismatch ProvisionedIopsForDiskCategoryUnsupported
         ProvisionedIopsForDiskCategoryRequired BurstingEnabledForDiskCategoryUnsupported
         BurstingEnabledForMultiAttachDiskUnsupported InvalidParameter.MultiAttach
         InvalidParameter.MultiAttachAndInstanceIdConflict
         InvalidParameter.EncryptedIllegal InvalidParameter.EncryptedNotSupported
         InvalidEncrypted.NotMatchKmsKeyId InvalidEncrypted.NotMatchSnapshot
         InvalidEncrypted.NotMatchDiskDefaultEncryption InvalidKmsKeyId.NotMatchSnapshot
         EncryptedOption.Conflict InvalidResourceGroup.NotFound InvalidStorageSetId.NotFound
         InvalidStorageClusterId.NotExist InvalidStorageClusterId.StatusNotSupport
         InvalidStorageClusterId.CategoryNotMatch InvalidStorageClusterId.PerformanceLevelNotMatch
         InvalidStorageClusterId.ConflictWithStorageSetId
         InvalidStorageClusterId.ConflictWithInstanceId
         InvalidStorageClusterId.DiskCategoryUnsupported
         Duplicate.TagKey TagKey.Duplication InvalidTagKey.Malformed InvalidTagValue.Malformed
         NumberExceed.Tags QuotaExceed.Tags",
    ),
    // No setting of anybody makes this driver send what these refuse.
    (
        Kind::Bug,
        "MissingParameter IncompleteSignature IncompleteParamter InvalidParamter
         InvalidSignatureMethod InvalidTimeStamp.Format IllegalTimestamp
         InvalidApi.NotFound InvalidAction.NotFound InvalidVersion NoSuchVersion
         UnsupportedHTTPMethod DryRunOperation NoAttributeToModify
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
         InvalidParameter.TooManyDataQueried InvalidEndTime.Malformed
         InvalidPeriod.ValueNotSupported",
    ),
];

/// What codes have in common whose list is open: new ones of them appear.
fn family(code: &str) -> Option<Kind> {
    let starts = |prefix: &str| code.starts_with(prefix);
    // Code that means "wait" must never be taken for a final refusal, whatever stands around it.
    if code.contains("Throttling") {
        return Some(Kind::Throttled);
    }
    if starts("Forbidden.") || starts("InvalidSecurityToken") || starts("NoPermission") {
        return Some(Kind::Denied);
    }
    if starts("QuotaExceed") {
        return Some(Kind::Quota);
    }
    if starts("InvalidAccountStatus") || starts("InvalidInstanceType.") {
        return Some(Kind::Precondition);
    }
    if starts("InvalidParameter.KMSKeyId.") {
        return Some(Kind::Precondition);
    }
    if starts("InvalidParameterForce.") {
        return Some(Kind::Precondition);
    }
    if starts("IncorrectDiskStatus.") || starts("OperationConflict.") {
        return Some(Kind::Conflict);
    }
    if starts("InvalidDataDiskCategory.") {
        return Some(Kind::OutOfStock);
    }
    if starts("Missing") || starts("InvalidStartTime.") {
        return Some(Kind::Bug);
    }
    None
}

/// What is left to go by. The cloud refuses with 403 what the state of things forbids, and with 404
/// anything that it does not know; only a listed code may mean that the disk itself is gone.
fn by_status(status: u16, code: &str) -> Kind {
    match status {
        429 => Kind::Throttled,
        500.. => Kind::Ambiguous,
        // A success without sense, or a proxy that lost patience.
        0..=399 | 408 => Kind::Ambiguous,
        401 | 407 => Kind::Denied,
        // Without a code it is not the cloud that forbids, but something on the way to it.
        403 if code.is_empty() => Kind::Denied,
        403 => Kind::Precondition,
        409 => Kind::Conflict,
        _ => Kind::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed() -> impl Iterator<Item = &'static str> {
        TABLE.iter().flat_map(|(_, codes)| codes.split_whitespace())
    }

    #[test]
    fn no_code_is_in_the_table_twice() {
        let mut seen = std::collections::BTreeSet::new();
        for code in listed() {
            assert!(seen.insert(code), "{code}");
        }
    }

    #[test]
    fn the_same_code_can_mean_something_else_from_another_action_or_with_another_status() {
        for (action, status, code, expected) in [
            ("CreateDisk", 400, "OperationDenied", Kind::OutOfStock),
            ("CreateDisk", 403, "OperationDenied", Kind::Precondition),
            ("ResizeDisk", 403, "OperationDenied", Kind::Precondition),
            (
                "CreateDisk",
                400,
                "InvalidDiskCategory.NotSupported",
                Kind::OutOfStock,
            ),
            (
                "ResizeDisk",
                403,
                "InvalidDiskCategory.NotSupported",
                Kind::Precondition,
            ),
            (
                "ModifyDiskSpec",
                403,
                "OperationDenied.NoStock",
                Kind::OutOfStock,
            ),
        ] {
            assert_eq!(kind(action, status, code), expected, "{action} {code}");
        }
    }

    #[test]
    fn an_unknown_code_falls_by_its_family_and_then_by_its_status() {
        for (status, code, expected) in [
            (403, "Throttling.Anew", Kind::Throttled),
            (400, "Rejected.Throttling.Zone", Kind::Throttled),
            (403, "QuotaExceed.Anew", Kind::Quota),
            (403, "QuotaExceeded.PostpaidDataDiskCapacity", Kind::Quota),
            (403, "Forbidden.Anew", Kind::Denied),
            (404, "MissingParameter.RegionId", Kind::Bug),
            (400, "MissingDiskId", Kind::Bug),
            (403, "IncorrectDiskStatus.Anew", Kind::Conflict),
            (400, "Anew", Kind::Invalid),
            (403, "Anew", Kind::Precondition),
            (404, "InvalidAnew.NotFound", Kind::Invalid),
            (409, "Anew", Kind::Conflict),
            (429, "Anew", Kind::Throttled),
            (503, "Anew", Kind::Ambiguous),
            (403, "", Kind::Denied),
            (407, "", Kind::Denied),
            (408, "", Kind::Ambiguous),
            (200, "", Kind::Ambiguous),
        ] {
            assert_eq!(kind("X", status, code), expected, "{status} {code}");
        }
    }

    #[test]
    fn nothing_but_the_resource_of_the_call_counts_as_not_there() {
        for code in [
            "InvalidRegionId.NotFound",
            "InvalidZoneId.NotFound",
            "InvalidParameter.KMSKeyId.NotFound",
            "InvalidResourceGroup.NotFound",
            "InvalidAction.NotFound",
            "EntityNotExist.Role",
        ] {
            assert_ne!(kind("DeleteDisk", 404, code), Kind::NotFound, "{code}");
        }
    }
}

//! Which refusals of a pair leave hope for the next one, and what they say of the pair.

use crate::cloud::{Error, Kind};

/// What a refusal says of the pair that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The zone sells nothing at all now.
    Zone,
    /// It is not sold there now, at any size.
    Stock,
    /// So much of it is beyond a quota.
    Quota,
    /// It is not sold at this size, or with these IOPS, whatever our own table says.
    Size,
    /// It does not go with something else of the request, such as sharing or encryption.
    Unfit,
}

impl Refusal {
    /// What it says; none when no other pair would fare better, or when nothing was decided.
    pub(super) fn of(error: &Error) -> Option<Self> {
        let code = error.code()?;
        match code {
            "Zone.NotOnSale" | "OperationDenied.ZoneNotAllowed" => Some(Self::Zone),
            "InvalidPerformanceLevel.ValueNotSupported"
            | "OperationDenied.CloudSSDNotSupported"
            | "InvalidDiskCategory.ValueUnauthorized" => Some(Self::Stock),
            "InvalidDiskSize.NotSupported"
            | "InvalidDataDiskSize.ValueNotSupported"
            | "InvalidSize.ValueNotSupported"
            | "InvalidDiskSizeOrCategory"
            | "InvalidDiskSize.ExceedsMultiAttachLimit"
            | "OperationDenied.PerformanceLevelNotMatch"
            | "InvalidProvisionedIops.LimitExceed"
            | "InvalidBurstingEnabled.DiskSizeTooSmall" => Some(Self::Size),
            "OperationDenied"
            | "OperationDenied.ZoneNotSupportMultiAttachDisk"
            | "InvalidParameter.DiskCategoryAndMultiAttachConflict"
            | "InvalidParameter.DiskCategoryAndMultiAttachNotMatch"
            | "InvalidParameter.EncryptedNotSupported"
            | "NotSupportSnapshotEncrypted.DiskCategory"
            | "InvalidDiskCategory.ConflictSnapshotCategory" => Some(Self::Unfit),
            // Of tags there would be too many everywhere.
            "QuotaExceed.Tags" => None,
            code if code.starts_with("QuotaExceed") => Some(Self::Quota),
            code if code.starts_with("InvalidDataDiskCategory") => Some(Self::Stock),
            "InstanceDiskCategoryLimitExceed" => Some(Self::Quota),
            _ if error.kind() == Kind::OutOfStock => Some(Self::Stock),
            _ if error.kind() == Kind::OutOfRange => Some(Self::Size),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_pair_can_mend_moves_on_and_what_it_cannot_does_not() {
        for (code, says) in [
            ("Zone.NotOnSale", Some(Refusal::Zone)),
            ("OperationDenied.NoStock", Some(Refusal::Stock)),
            ("InvalidDataDiskCategory.NotSupported", Some(Refusal::Stock)),
            ("InvalidDiskCategory.NotSupported", Some(Refusal::Stock)),
            (
                "InvalidPerformanceLevel.ValueNotSupported",
                Some(Refusal::Stock),
            ),
            ("QuotaExceed.DiskCapacity", Some(Refusal::Quota)),
            (
                "QuotaExceeded.PostpaidDataDiskCapacity",
                Some(Refusal::Quota),
            ),
            ("InvalidDiskSize.NotSupported", Some(Refusal::Size)),
            (
                "OperationDenied.ZoneNotSupportMultiAttachDisk",
                Some(Refusal::Unfit),
            ),
            ("QuotaExceed.Tags", None),
            ("InvalidAccountStatus.NotEnoughBalance", None),
            ("IdempotentParameterMismatch", None),
            ("InternalError", None),
            ("Forbidden.RAM", None),
            ("InvalidParameter.KMSKeyId.CMKNotEnabled", None),
        ] {
            assert_eq!(
                Refusal::of(&Error::answered("CreateDisk", 403, code)),
                says,
                "{code}"
            );
        }
    }
}

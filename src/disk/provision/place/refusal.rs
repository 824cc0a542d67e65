//! Which refusals of a pair leave hope for the next one, and what they say of the pair.

use crate::cloud::{Condition, Error, Kind};

/// What a refusal says of the pair that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The zone sells nothing at all now.
    Zone,
    /// It is not stockouts there now, at any size.
    Stock,
    /// So much of it is beyond a quota.
    Quota,
    /// It is not stockouts at this size, or with these IOPS, whatever our own table says.
    Size,
    /// It does not go with something else of the request, such as sharing or encryption.
    Unfit,
}

impl Refusal {
    /// What it says; none when no other pair would fare better, or when nothing was decided.
    pub(super) fn of(error: &Error) -> Option<Self> {
        use Condition::{CategoryDenied, EncryptionUnsupported, IncompatibleOptions};
        match (error.condition(), error.kind()) {
            (Condition::ZoneClosed, _) => Some(Self::Zone),
            (Condition::AccountQuota, _) => Some(Self::Quota),
            (IncompatibleOptions | CategoryDenied | EncryptionUnsupported, _) => Some(Self::Unfit),
            (_, Kind::OutOfStock) => Some(Self::Stock),
            (_, Kind::OutOfRange) => Some(Self::Size),
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
                Refusal::of(&Error::from_response("CreateDisk", 403, code)),
                says,
                "{code}"
            );
        }
    }
}

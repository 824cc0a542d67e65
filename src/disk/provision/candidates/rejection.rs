//! Classifies rejections of a candidate after which another candidate may succeed.

use ecs::{Condition, Error, Kind};

/// The scope to which a rejection applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rejection {
    /// All categories in the zone.
    Zone,
    /// The candidate at any size: it is out of stock.
    Stock,
    /// This size and larger ones: the account's quota is exceeded.
    Quota,
    /// This size or IOPS, which the cloud does not support.
    Size,
    /// This request: the category is incompatible with another option, such as multi-attach or encryption.
    Incompatible,
}

impl Rejection {
    /// `None` if the error would apply to every other candidate too, or is not a decision.
    pub(super) fn from_error(error: &Error) -> Option<Self> {
        use Condition::{CategoryDenied, EncryptionUnsupported, IncompatibleOptions};
        match (error.condition(), error.kind()) {
            (Condition::ZoneClosed, _) => Some(Self::Zone),
            (Condition::AccountQuota, _) => Some(Self::Quota),
            (IncompatibleOptions | CategoryDenied | EncryptionUnsupported, _) => Some(Self::Incompatible),
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
    fn only_rejections_of_the_candidate_have_a_scope() {
        for (code, scope) in [
            ("Zone.NotOnSale", Some(Rejection::Zone)),
            ("OperationDenied.NoStock", Some(Rejection::Stock)),
            ("InvalidDataDiskCategory.NotSupported", Some(Rejection::Stock)),
            ("InvalidDiskCategory.NotSupported", Some(Rejection::Stock)),
            ("InvalidPerformanceLevel.ValueNotSupported", Some(Rejection::Stock)),
            ("QuotaExceed.DiskCapacity", Some(Rejection::Quota)),
            ("QuotaExceeded.PostpaidDataDiskCapacity", Some(Rejection::Quota)),
            ("InvalidDiskSize.NotSupported", Some(Rejection::Size)),
            (
                "OperationDenied.ZoneNotSupportMultiAttachDisk",
                Some(Rejection::Incompatible),
            ),
            ("QuotaExceed.Tags", None),
            ("InvalidAccountStatus.NotEnoughBalance", None),
            ("IdempotentParameterMismatch", None),
            ("InternalError", None),
            ("Forbidden.RAM", None),
            ("InvalidParameter.KMSKeyId.CMKNotEnabled", None),
        ] {
            assert_eq!(
                Rejection::from_error(&Error::from_response("CreateDisk", 403, code)),
                scope,
                "{code}"
            );
        }
    }
}

//! What each code of the cloud means. A response is classified once, where it is parsed, as a [`Condition`]; its [`Kind`]
//! and its name for people follow. No other file compares codes.

mod kind;
mod table;

pub use kind::Kind;
pub use table::Condition;

impl Kind {
    /// The condition of which no more is known.
    pub(super) fn condition(self) -> Condition {
        let mut all = Condition::ALL.iter().map(|(condition, _)| *condition);
        all.find(|condition| condition.kind() == self)
            .unwrap_or(Condition::Ambiguous)
    }
}

/// What a code means that means something of its own from this action, with this status or any.
fn by_action(action: &str, status: u16, code: &str) -> Option<Condition> {
    let condition = match (action, code) {
        // Of a new disk these say that another zone or category may do; of an existing one, that it cannot be so.
        ("CreateDisk", "OperationDenied") if status == 403 => Condition::PairDenied,
        ("CreateDisk", "OperationDenied") => Condition::UnfitPair,
        ("CreateDisk", "InvalidDiskCategory.NotSupported") => Condition::OutOfStock,
        ("CreateDisk", "InvalidDiskCategory.ValueNotSupported") => Condition::OutOfStock,
        ("CreateSnapshot" | "CreateSnapshotGroup", code) => match code {
            "DiskCategory.OperationNotSupported" => Condition::CategoryNotSnapshottable,
            "IncorrectDiskType.NotSupport" => Condition::CategoryNotSnapshottable,
            "DiskId.ValueNotSupported" => Condition::NotSnapshottable,
            _ => return None,
        },
        // No user has a say in these filters.
        ("DescribeDisksFullStatus", "InvalidParameter") => Condition::Bug,
        ("DescribeDisks" | "DescribeDisksFullStatus", code) => match code {
            "InvalidParameter.MultiAttach" => Condition::Bug,
            "InvalidZoneId.NotFound" => Condition::ZoneFilter,
            _ => return None,
        },
        _ => return None,
    };
    Some(condition)
}

/// Beginnings of codes whose list is open: new ones of them appear.
const FAMILIES: &[(&str, Condition)] = &[
    ("Forbidden.", Condition::Denied),
    ("NoPermission", Condition::Denied),
    ("InvalidSecurityToken", Condition::TokenRefused),
    ("InvalidAccessKeyId", Condition::AccessKeyNotFound),
    ("AuthenticationFail.", Condition::OidcTokenRefused),
    ("InvalidRegion", Condition::UnknownRegion),
    ("InvalidAccountStatus", Condition::AccountInArrears),
    ("QuotaExceed", Condition::AccountQuota),
    ("InvalidDataDiskCategory", Condition::OutOfStock),
    ("InvalidInstanceType.", Condition::InstanceTypeIncompatible),
    ("InvalidParameterForce.", Condition::ForceUnsupported),
    ("InvalidParameter.KMSKeyId.", Condition::KmsKeyUnusable),
    ("InvalidKMSKeyId.", Condition::KmsKeyUnusable),
    ("InvalidEncrypted.", Condition::EncryptionMismatch),
    ("IncorrectDiskStatus.", Condition::Conflict),
    ("OperationConflict.", Condition::Conflict),
    ("Missing", Condition::Bug),
    ("InvalidStartTime.", Condition::Bug),
];

/// What the code means that this action answered with this status.
pub(super) fn condition(action: &str, status: u16, code: &str) -> Condition {
    let has = |codes: &str| codes.split_whitespace().any(|known| known == code);
    let mut all = Condition::ALL.iter();
    let listed = || {
        all.find(|(_, codes)| has(codes))
            .map(|(condition, _)| *condition)
    };
    if let Some(condition) = by_action(action, status, code).or_else(listed) {
        return condition;
    }
    // A code that means "wait" must never be taken for a final refusal, whatever stands around it.
    if code.contains("Throttling") {
        return Condition::Throttled;
    }
    let mut families = FAMILIES.iter();
    // These statuses alone say that the call may have taken effect, or is worth another attempt.
    let is_passing = matches!(status, 429 | 500..);
    let family = families.find(|(start, _)| code.starts_with(start) && !is_passing);
    family.map_or_else(|| by_status(status, code), |(_, condition)| *condition)
}

/// Whether the code says that something in the request is wrong.
pub(super) fn is_about_value(code: &str) -> bool {
    code.starts_with("Invalid")
}

/// What is left to go by. The cloud refuses with 403 what the state of things forbids, and with 404
/// anything that it does not know; only a listed code may mean that the disk itself is gone.
fn by_status(status: u16, code: &str) -> Condition {
    match status {
        429 => Condition::Throttled,
        // A failure of the cloud, a success without sense, or a proxy that lost patience.
        500.. | 0..=399 | 408 => Condition::Ambiguous,
        401 | 407 => Condition::Denied,
        // Without a code it is not the cloud that forbids, but something on the way to it.
        403 if code.is_empty() => Condition::Denied,
        403 => Condition::Precondition,
        409 => Condition::Conflict,
        _ => Condition::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(action: &str, status: u16, code: &str) -> Kind {
        condition(action, status, code).kind()
    }

    fn listed() -> impl Iterator<Item = &'static str> {
        Condition::ALL
            .iter()
            .flat_map(|(_, codes)| codes.split_whitespace())
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
            (400, "InvalidRegion.Anew", Kind::Precondition),
            (500, "InvalidRegion.Anew", Kind::Ambiguous),
            (429, "QuotaExceed.Anew", Kind::Throttled),
            (403, "", Kind::Denied),
            (407, "", Kind::Denied),
            (408, "", Kind::Ambiguous),
            (200, "", Kind::Ambiguous),
        ] {
            assert_eq!(kind("X", status, code), expected, "{status} {code}");
        }
    }

    #[test]
    fn every_kind_has_a_condition_of_which_no_more_is_known() {
        for (condition, _) in Condition::ALL {
            let kind = condition.kind();
            assert_eq!(kind.condition().kind(), kind);
        }
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
            assert_eq!(kind.condition().failure().name(), name);
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

//! Classifies the cloud's error codes. Each response is classified once, when it is parsed, as a [`Condition`], which
//! determines its [`Kind`] and error name. No other file compares codes.

mod kind;
mod table;

use std::collections::BTreeMap;
use std::sync::LazyLock;

pub use kind::Kind;
pub use table::Condition;

impl Kind {
    /// The generic condition of the kind.
    pub(super) fn condition(self) -> Condition {
        let mut all = Condition::ALL.iter().map(|(condition, _)| *condition);
        all.find(|condition| condition.kind() == self)
            .unwrap_or(Condition::Ambiguous)
    }
}

/// The condition of a code that has a different meaning for this action or status.
fn by_action(action: &str, status: u16, code: &str) -> Option<Condition> {
    let condition = match (action, code) {
        // For a new disk another zone or category may work; for an existing disk the state is invalid.
        ("CreateDisk", "OperationDenied") if status == 403 => Condition::CategoryDenied,
        ("CreateDisk", "OperationDenied") => Condition::IncompatibleOptions,
        ("CreateDisk", "InvalidDiskCategory.NotSupported") => Condition::OutOfStock,
        ("CreateDisk", "InvalidDiskCategory.ValueNotSupported") => Condition::OutOfStock,
        ("CreateSnapshot" | "CreateSnapshotGroup", code) => match code {
            "DiskCategory.OperationNotSupported" => Condition::CategoryNotSnapshottable,
            "IncorrectDiskType.NotSupport" => Condition::CategoryNotSnapshottable,
            "DiskId.ValueNotSupported" => Condition::NotSnapshottable,
            _ => return None,
        },
        // Not an earlier call with the token, but another operation on the disk, such as a change of the category.
        ("ResizeDisk" | "ModifyDiskSpec", "LastOrderProcessing") => Condition::Conflict,
        // The client sets these filters.
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

/// All listed codes with their conditions.
static LISTED: LazyLock<BTreeMap<&str, Condition>> = LazyLock::new(|| {
    let all = Condition::ALL.iter();
    all.flat_map(|(condition, codes)| codes.split_whitespace().map(|code| (code, *condition)))
        .collect()
});

/// The condition of the family of codes that this one belongs to.
fn family(code: &str) -> Option<Condition> {
    let mut listed = LISTED.iter();
    let is_member = |known: &str| known.strip_suffix('*').is_some_and(|start| code.starts_with(start));
    let family = listed.find(|(known, _)| is_member(known));
    family.map(|(_, condition)| *condition)
}

/// The condition of a code that this action returned with this status.
pub(super) fn condition(action: &str, status: u16, code: &str) -> Condition {
    let exactly = || LISTED.get(code).copied();
    if let Some(condition) = by_action(action, status, code).or_else(exactly) {
        return condition;
    }
    // Any code that contains `Throttling` is transient and must not be classified as a final rejection.
    if code.contains("Throttling") {
        return Condition::Throttled;
    }
    // These statuses alone mean that the call may have taken effect or can be retried.
    let is_transient = matches!(status, 429 | 500..);
    let family = family(code).filter(|_| !is_transient);
    family.unwrap_or_else(|| by_status(status, code))
}

/// Whether the code reports an invalid value in the request.
pub(super) fn is_about_value(code: &str) -> bool {
    code.starts_with("Invalid")
}

/// The condition by status, for unknown codes. The cloud returns 403 for invalid states, and 404 for any unknown value;
/// only a listed code can mean that the disk itself does not exist.
fn by_status(status: u16, code: &str) -> Condition {
    match status {
        429 => Condition::Throttled,
        // An internal error of the cloud, a malformed success, or a timeout of a proxy.
        500.. | 0..=399 | 408 => Condition::Ambiguous,
        401 | 407 => Condition::Denied,
        // Without a code the response is not from the cloud but from a proxy.
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

    fn codes() -> impl Iterator<Item = &'static str> {
        Condition::ALL.iter().flat_map(|(_, codes)| codes.split_whitespace())
    }

    #[test]
    fn every_code_is_listed_once() {
        let mut seen = std::collections::BTreeSet::new();
        for code in codes() {
            assert!(seen.insert(code), "{code}");
        }
    }

    #[test]
    fn the_condition_of_a_code_can_depend_on_action_and_status() {
        for (action, status, code, expected) in [
            ("CreateDisk", 400, "OperationDenied", Kind::OutOfStock),
            ("CreateDisk", 403, "OperationDenied", Kind::Precondition),
            ("ResizeDisk", 403, "OperationDenied", Kind::Precondition),
            ("CreateDisk", 400, "InvalidDiskCategory.NotSupported", Kind::OutOfStock),
            (
                "ResizeDisk",
                403,
                "InvalidDiskCategory.NotSupported",
                Kind::Precondition,
            ),
            ("ModifyDiskSpec", 403, "OperationDenied.NoStock", Kind::OutOfStock),
        ] {
            assert_eq!(kind(action, status, code), expected, "{action} {code}");
        }
    }

    #[test]
    fn an_unknown_code_is_classified_by_family_then_by_status() {
        for (status, code, expected) in [
            (403, "Throttling.New", Kind::Throttled),
            (400, "Rejected.Throttling.Zone", Kind::Throttled),
            (403, "QuotaExceed.New", Kind::Quota),
            (403, "QuotaExceeded.PostpaidDataDiskCapacity", Kind::Quota),
            (403, "Forbidden.New", Kind::Denied),
            (404, "MissingParameter.RegionId", Kind::Bug),
            (400, "MissingDiskId", Kind::Bug),
            (403, "IncorrectDiskStatus.New", Kind::Conflict),
            (400, "New", Kind::Invalid),
            (403, "New", Kind::Precondition),
            (404, "InvalidNew.NotFound", Kind::Invalid),
            (409, "New", Kind::Conflict),
            (429, "New", Kind::Throttled),
            (503, "New", Kind::Ambiguous),
            (400, "InvalidRegion.New", Kind::Precondition),
            (500, "InvalidRegion.New", Kind::Ambiguous),
            (429, "QuotaExceed.New", Kind::Throttled),
            (403, "", Kind::Denied),
            (407, "", Kind::Denied),
            (408, "", Kind::Ambiguous),
            (200, "", Kind::Ambiguous),
        ] {
            assert_eq!(kind("X", status, code), expected, "{status} {code}");
        }
    }

    #[test]
    fn every_kind_has_a_generic_condition() {
        for (condition, _) in Condition::ALL {
            let kind = condition.kind();
            assert_eq!(kind.condition().kind(), kind);
        }
    }

    #[test]
    fn only_the_resource_of_the_call_is_not_found() {
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

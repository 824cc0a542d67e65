//! Checks of the cloud: what the API allows, offers and reports.

use std::time::Duration;

use jiff::SignedDuration;

use super::check::{Check, Status, first};
use crate::base::clock::describe_difference;
use crate::base::{Deadline, error_chain};
use crate::disk::{Access, ActionAccess, PermissionProbe};
use crate::model::{DiskId, Failure, ZoneId, ZoneStock};

/// Limit of the first call, with its retries.
const REACH_TIMEOUT: Duration = Duration::from_secs(15);

/// Limit of all other calls.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Difference of the clocks that is unusual, and one that is too close to the 15 minutes which the cloud tolerates.
const SKEW_WARNING: SignedDuration = SignedDuration::from_secs(60);
const SKEW_FAILURE: SignedDuration = SignedDuration::from_secs(300);

const DELETED_WITH_INSTANCE: &str = "cloud/delete-with-instance";

/// Actions without which volumes still work, and the effect of their absence.
const OPTIONAL: [&str; 7] = [
    "DescribeAvailableResource: the stock is unknown, and disks are requested also where they are out of stock",
    "DescribeDisksFullStatus: the health of disks is not reported",
    "CreateSnapshot DeleteSnapshot DescribeSnapshots: snapshots and clones do not work",
    "CreateSnapshotGroup DeleteSnapshotGroup DescribeSnapshotGroups: group snapshots do not work",
    "ModifyDiskSpec: a VolumeAttributesClass cannot change disks",
    "ModifyDiskAttribute: a VolumeAttributesClass cannot change bursting, and disks that would be deleted with their \
     instance are not published",
    "DescribeTasks: a VolumeAttributesClass cannot change categories",
];

/// Calls the cloud and checks its responses, after `local_ahead` reads the difference of the clocks.
pub(super) async fn check(
    probe: &PermissionProbe,
    zone: Option<&ZoneId>,
    local_ahead: impl FnOnce() -> Option<SignedDuration>,
) -> Vec<Check> {
    let reached = probe.reach(Deadline::after(REACH_TIMEOUT)).await;
    let mut checks = vec![clock(local_ahead())];
    match reached {
        Ok(_) => checks.push(Check::ok(
            "cloud/api",
            "the API accepts the requests of these credentials",
        )),
        Err(error) => {
            let advice = advice(error.failure());
            checks.push(Check::failed("cloud/api", error_chain(&error), advice));
            let reason = "the API does not accept requests";
            checks.extend(
                ["cloud/permissions", DELETED_WITH_INSTANCE, "cloud/stock"].map(|name| Check::skipped(name, reason)),
            );
            return checks;
        }
    }
    match probe.run(Deadline::after(TIMEOUT)).await {
        Ok(permissions) => {
            checks.extend(permissions.actions.iter().map(permission));
            checks.extend(stock(&permissions.stock, zone));
        }
        Err(error) => checks.push(Check::skipped("cloud/permissions", error_chain(&error))),
    }
    let listed = probe.deleted_with_instance(Deadline::after(TIMEOUT)).await;
    checks.push(match listed {
        Ok(Some(disks)) => deleted_with_instance(&disks),
        Ok(None) => Check::skipped(DELETED_WITH_INSTANCE, "the cloud lists no disks"),
        Err(error) => Check::skipped(DELETED_WITH_INSTANCE, error_chain(&error)),
    });
    let reason = "the ECS API does not describe keys; CreateVolume reports an unusable kmsKeyId";
    checks.push(Check::skipped("cloud/kms-key", reason));
    let reason =
        "the ECS API does not describe quotas; CreateVolume reports an exhausted quota of disks, snapshots or calls";
    checks.push(Check::skipped("cloud/quota", reason));
    checks
}

pub(super) fn advice(failure: Failure) -> String {
    format!("{} (docs/reference/failures.md, {})", failure.advice(), failure.name())
}

/// Judges the attached disks of clusters that are deleted with their instances.
pub(super) fn deleted_with_instance(disks: &[DiskId]) -> Check {
    if disks.is_empty() {
        let found = "no volume is deleted with the instance that it is attached to";
        return Check::ok(DELETED_WITH_INSTANCE, found);
    }
    let names: Vec<_> = disks.iter().map(DiskId::as_str).collect();
    let found = format!(
        "volumes that are deleted with the instance that they are attached to: {}",
        first(&names)
    );
    let advice = "disable the release of these disks with their instance in the console";
    Check::warning(DELETED_WITH_INSTANCE, found, advice)
}

/// Judges the difference between the clocks.
pub(super) fn clock(local_ahead: Option<SignedDuration>) -> Check {
    let name = "cloud/clock";
    let Some(ahead) = local_ahead else {
        return Check::skipped(name, "no response with a Date header");
    };
    let found = describe_difference(ahead);
    let advice = "synchronize the clock (NTP, chrony); beyond 15 minutes, requests are signed with the time of the cloud, \
                  but certificates and tokens may seem invalid";
    match ahead.abs() {
        skew if skew > SKEW_FAILURE => Check::failed(name, found, advice),
        skew if skew > SKEW_WARNING => Check::warning(name, found, advice),
        _ => Check::ok(name, found),
    }
}

fn permission(row: &ActionAccess) -> Check {
    let name = format!("cloud/permission/ecs:{}", row.action);
    match &row.access {
        Access::Allowed => Check::ok(name, "allowed"),
        Access::Unknown(why) => Check::skipped(name, *why),
        Access::Failed(error) => Check::failed(name, error.clone(), "run again; check the network if it persists"),
        Access::ProbablyDenied(why) => Check::warning(
            name,
            format!("probably denied: {why}"),
            format!(
                "check that ecs:{} is granted (deploy/ram-policies/controller.json)",
                row.action
            ),
        ),
        Access::Denied(reason) => {
            let mut optional = OPTIONAL.iter().filter_map(|row| row.split_once(": "));
            let (status, effect) = match optional.find(|(actions, _)| actions.split(' ').any(|one| one == row.action)) {
                Some((_, effect)) => (Status::Warning, effect),
                None => (Status::Failed, "volumes do not work"),
            };
            let advice = format!(
                "grant ecs:{} (deploy/ram-policies/controller.json); without it, {effect}",
                row.action
            );
            Check::new(name, status, format!("denied: {reason}"), advice)
        }
    }
}

/// What the zones offer, and whether the requested one is among them.
pub(super) fn stock(zones: &[ZoneStock], wanted: Option<&ZoneId>) -> Vec<Check> {
    if zones.is_empty() {
        let names = wanted.map(|_| "cloud/zone").into_iter().chain(["cloud/stock"]);
        return names
            .map(|name| Check::skipped(name, "the cloud lists no zones"))
            .collect();
    }
    let known: Vec<_> = zones
        .iter()
        .filter_map(|row| row.zone.as_ref())
        .map(ZoneId::as_str)
        .collect();
    let zone = wanted.map(|wanted| match known.contains(&wanted.as_str()) {
        true => Check::ok("cloud/zone", format!("{wanted} is a zone of the region")),
        false => Check::failed(
            "cloud/zone",
            format!("{wanted} is not a zone of the region"),
            format!("set --zone to a zone of the region: {}", known.join(", ")),
        ),
    });
    let offers = zones.iter().map(|row| {
        let name = format!("cloud/stock/{}", row.zone.as_ref().map_or("region", ZoneId::as_str));
        let available = row.categories.iter().filter(|stock| stock.available);
        let available: Vec<_> = available.map(|stock| stock.category.as_str()).collect();
        match available.is_empty() {
            true => Check::warning(
                name,
                "every category is out of stock",
                "allow other zones in the StorageClass",
            ),
            false => Check::ok(name, format!("in stock: {}", available.join(", "))),
        }
    });
    zone.into_iter().chain(offers).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Category, Stock};

    fn status(seconds: i64) -> Status {
        clock(Some(SignedDuration::from_secs(seconds))).status
    }

    #[test]
    fn clock_warns_over_a_minute_and_fails_over_five() {
        for (seconds, expected) in [
            (0, Status::Ok),
            (60, Status::Ok),
            (-60, Status::Ok),
            (61, Status::Warning),
            (-300, Status::Warning),
            (301, Status::Failed),
            (-301, Status::Failed),
        ] {
            assert_eq!(status(seconds), expected, "{seconds}");
        }
        assert_eq!(clock(None).status, Status::Skipped);
    }

    #[test]
    fn volumes_that_are_deleted_with_their_instance_are_a_warning_that_names_them() {
        assert_eq!(deleted_with_instance(&[]).status, Status::Ok);
        let ids: Vec<DiskId> = (0..7).map(|n| format!("d-{n}").parse().unwrap()).collect();
        let check = deleted_with_instance(&ids);
        assert_eq!(check.status, Status::Warning);
        assert!(check.found.ends_with("d-3, d-4 and 2 more"), "{check:?}");
    }

    #[test]
    fn denied_action_fails_unless_only_a_feature_needs_it() {
        let denied = |action| {
            let access = Access::Denied("Forbidden.RAM".to_owned());
            permission(&ActionAccess { action, access })
        };
        let attach = denied("AttachDisk");
        assert_eq!(attach.status, Status::Failed);
        assert!(attach.advice.contains("ecs:AttachDisk"), "{attach:?}");
        assert_eq!(denied("CreateSnapshot").status, Status::Warning);
    }

    #[test]
    fn optional_actions_are_those_that_the_small_policy_lacks() {
        let actions = |text: &str| {
            let policy: serde_json::Value = serde_json::from_str(text).unwrap();
            let actions = policy["Statement"][0]["Action"].as_array().unwrap().clone();
            let actions = actions.into_iter().map(|one| one.as_str().unwrap()[4..].to_owned());
            actions.collect::<std::collections::BTreeSet<_>>()
        };
        let all = actions(include_str!("../../../deploy/ram-policies/controller.json"));
        let small = actions(include_str!("../../../deploy/ram-policies/volumes-only.json"));
        let mut optional = OPTIONAL
            .iter()
            .flat_map(|row| row.split(": ").next().unwrap().split(' '))
            .collect::<std::collections::BTreeSet<_>>();
        // Every cluster profits from them, but no call needs them.
        assert!(optional.remove("DescribeAvailableResource"));
        assert!(optional.remove("DescribeDisksFullStatus"));
        let lacking = all.difference(&small).map(String::as_str);
        assert_eq!(lacking.collect::<std::collections::BTreeSet<_>>(), optional);
    }

    #[test]
    fn unknown_zone_fails_and_an_empty_one_warns() {
        let zones = [ZoneStock {
            zone: "cn-beijing-a".parse().ok(),
            categories: vec![Stock {
                category: Category::CloudEssd,
                available: false,
            }],
        }];
        let statuses = |zone: &str| {
            let checks = stock(&zones, Some(&zone.parse().unwrap()));
            checks.iter().map(|check| check.status).collect::<Vec<_>>()
        };
        assert_eq!(statuses("cn-beijing-a"), [Status::Ok, Status::Warning]);
        assert_eq!(statuses("cn-beijing-x"), [Status::Failed, Status::Warning]);
        let names = stock(&[], Some(&"cn-beijing-a".parse().unwrap()));
        let names: Vec<_> = names.into_iter().map(|check| check.name).collect();
        assert_eq!(names, ["cloud/zone", "cloud/stock"]);
    }
}

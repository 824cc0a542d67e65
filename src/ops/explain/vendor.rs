//! Classes of the vendor's driver: what differs if this driver serves them (docs/guides/migrate.md).

use super::Settings;
use super::manifest::{Claim, StorageClass};
use super::report::{Explained, Problem};
use crate::model::{Category, topology};

/// Name of the vendor's driver.
pub(super) const DRIVER: &str = "diskplugin.csi.alibabacloud.com";

const ZONE_KEY: &str = "topology.diskplugin.csi.alibabacloud.com/zone";

/// Parameters of the vendor's driver that this driver rejects, in lower case, and what to do.
const REJECTED: [(&str, &str); 19] = [
    ("omitfsck", "use fsck: none"),
    (
        "volumesizeautoavailable",
        "remove it: sizes are always raised to the minimum of the category",
    ),
    ("volumedeletesnapshotretentiondays", TAKE_SNAPSHOT),
    ("volumeexpandautosnapshot", TAKE_SNAPSHOT),
    ("storageclusterid", NOT_SUPPORTED),
    ("restricttohpnzone", NOT_SUPPORTED),
    ("datacachesize", NOT_SUPPORTED),
    ("datacachemode", NOT_SUPPORTED),
    ("readiops", NOT_SUPPORTED),
    ("writeiops", NOT_SUPPORTED),
    ("readbps", NOT_SUPPORTED),
    ("writebps", NOT_SUPPORTED),
    ("alibabacloud.com/createdisk-arn", NOT_SUPPORTED),
    (
        "alibabacloud.com/kms-key-id",
        "use encrypted: \"true\" and kmsKeyId",
    ),
    (
        "csi.alibabacloud.com/disk-snapshot-id",
        "use dataSource of the claim, with a VolumeSnapshot",
    ),
    (
        "volume.alibabacloud.com/disk-id",
        "create a PersistentVolume that names the disk",
    ),
    ("snapshottype", "remove it: it has no effect"),
    ("instantaccessretentiondays", "remove it: it has no effect"),
    (
        "retentiondays",
        "remove it: the vendor's driver rejects it for groups, too",
    ),
];

const TAKE_SNAPSHOT: &str = "not supported: take a VolumeSnapshot";
const NOT_SUPPORTED: &str = "not supported: volumes that need it stay with the vendor's driver";

/// Annotations of claims that the vendor's forked sidecars pass to their driver.
const ANNOTATIONS: [(&str, &str); 5] = [
    (
        "alibabacloud.com/kms-key-id",
        "use a StorageClass with encrypted: \"true\" and kmsKeyId",
    ),
    ("csi.alibabacloud.com/disk-snapshot-id", "use dataSource"),
    (
        "volume.alibabacloud.com/disk-id",
        "create a PersistentVolume that names the disk",
    ),
    (
        "storage.alibabacloud.com/snapshot-ttl",
        "use a VolumeSnapshotClass with retentionDays",
    ),
    ("alibabacloud.com/createdisk-arn", "not supported"),
];

pub(super) fn storage_class(class: &StorageClass, settings: &Settings, to: &mut Explained) {
    to.note(format!(
        "a class of the vendor's driver, explained as if its provisioner were {}",
        settings.driver
    ));
    advise(to);
    let value = |name: &str| {
        let mut entries = class.parameters.iter().flatten();
        let (_, value) = entries.find(|(key, _)| key.eq_ignore_ascii_case(name))?;
        value.as_str().map(str::to_ascii_lowercase)
    };
    if value("type").is_none_or(|types| types.trim() == "available") {
        let own: Vec<_> = Category::CREATABLE.iter().map(Category::as_str).collect();
        to.note(format!(
            "difference: the vendor's driver tries cloud_ssd, cloud_efficiency; this one {}. To keep that order, set \
             type: cloud_ssd,cloud_efficiency",
            own.join(", ")
        ));
    }
    for (key, difference) in [
        (
            "readOnly",
            "readOnly is enforced: all mounts are read-only, and a blank disk is never formatted",
        ),
        (
            "mkfsOptions",
            "mkfsOptions are added to the default options instead of replacing them",
        ),
        (
            "performanceLevel",
            "a volume below the minimum of every level gets the smallest size of a level, instead of an error",
        ),
        (
            "zoneId",
            "all zones that class and topology allow are tried instead of one",
        ),
    ] {
        let is_set = value(key).is_some_and(|value| key != "readOnly" || value.trim() == "true");
        if is_set {
            to.note(format!("difference: {difference}"));
        }
    }
}

/// What to do about topologies of the vendor's driver.
pub(super) fn topology_advice(class: &StorageClass, problem: &Problem) -> Option<String> {
    let terms = class.allowed_topologies.iter().flatten();
    let mut expressions = terms.flat_map(|term| &term.match_label_expressions);
    let is_vendors = expressions.any(|expression| expression.key == ZONE_KEY);
    let advice = || format!("replace {ZONE_KEY} with {}", topology::ZONE_KEY);
    (is_vendors && problem.field == "allowedTopologies").then(advice)
}

pub(super) fn attributes_class(settings: &Settings, to: &mut Explained) {
    to.note(format!(
        "a class of the vendor's driver, explained as if its driverName were {}",
        settings.driver
    ));
    advise(to);
}

pub(super) fn snapshot_class(settings: &Settings, to: &mut Explained) {
    to.note(format!(
        "a class of the vendor's driver, explained as if its driver were {}",
        settings.driver
    ));
    advise(to);
}

/// Annotations that have no effect without the vendor's sidecars.
pub(super) fn claim(claim: &Claim, to: &mut Explained) {
    for (key, instead) in ANNOTATIONS {
        if claim.metadata.annotation(key).is_some() {
            to.note(format!(
                "annotation {key} has no effect: only the vendor's sidecars pass it on; {instead}"
            ));
        }
    }
}

/// Adds what to do about each rejected parameter. The vendor's driver ignores unknown ones.
fn advise(to: &mut Explained) {
    for problem in &mut to.problems {
        let Some(key) = problem.field.strip_prefix("parameters.") else {
            continue;
        };
        let key = key.to_ascii_lowercase();
        let known = REJECTED.iter().find(|(of, _)| *of == key);
        let advice = match known {
            Some((_, advice)) => advice,
            None if key.starts_with("-disktags/") => {
                "remove it: a class does not remove tags; remove the tag in the console"
            }
            None if problem.message.starts_with("unknown ") => {
                "remove it: the vendor's driver ignores it"
            }
            None => continue,
        };
        problem.advice = Some(advice.to_owned());
    }
}

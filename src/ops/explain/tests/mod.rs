//! Tests of the explanation of single objects.

use super::manifest::read;
use super::object::explain;
use super::report::{Explained, Explanation, Outcome};
use super::settings::ExplainSettings;
use super::text::render;
use crate::disk::candidates::RegionStock;
use crate::model::{Bytes, Category, DriverName, Stock, ZoneId, ZoneStock};

mod admission;
mod zones;

fn settings() -> ExplainSettings {
    ExplainSettings {
        driver: DriverName::default(),
        size: Bytes(40 << 30),
        region: None,
        zone: None,
        stock: RegionStock::default(),
    }
}

fn explained(text: &str) -> Vec<Explained> {
    explain(&read("file", text).unwrap(), &settings()).objects
}

/// A class with these lines of parameters, and further fields.
fn class(parameters: &str, fields: &str) -> String {
    format!(
        "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: c}}\n\
         provisioner: diskplugin.csi.example\n{fields}\nparameters: {{{parameters}}}\n"
    )
}

fn claim(spec: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: p}}\n\
         spec: {{storageClassName: c, {spec}}}\n"
    )
}

fn fields(object: &Explained) -> Vec<&str> {
    object.problems.iter().map(|of| of.field.as_str()).collect()
}

/// The zones of the candidates.
fn zones(object: &Explained) -> Vec<&str> {
    object
        .candidates
        .iter()
        .filter_map(|of| of.zone.as_ref().map(ZoneId::as_str))
        .collect()
}

#[test]
fn a_rejected_parameter_hides_no_other_one() {
    let found = explained(&class("type: cloud, Type: cloud, readOnly: maybe, label: -F", ""));
    let mut keys = fields(&found[0]);
    keys.sort_unstable();
    assert_eq!(keys, ["parameters.label", "parameters.readOnly", "parameters.type"]);
    // One of the two is left.
    assert_eq!(found[0].candidates.len(), 1);
}

#[test]
fn the_filesystem_for_csi_provisioner_is_accepted() {
    let found = explained(&class("csi.storage.k8s.io/fstype: xfs", ""));
    assert_eq!(found[0].result, Outcome::Accepted);
}

#[test]
fn too_many_tags_are_one_problem() {
    let tags: Vec<_> = (0..16).map(|n| format!("diskTags/k{n}: v")).collect();
    let found = explained(&class(&tags.join(", "), ""));
    assert_eq!(found[0].problems.len(), 1, "{:?}", found[0].problems);
    // Three tags name the claim and the volume, two are those of the driver.
    assert!(found[0].problems[0].message.contains("have 21, but the limit is 20"));
    let fits = explained(&class(&tags[..15].join(", "), ""));
    assert_eq!(fits[0].result, Outcome::Accepted);
}

#[test]
fn an_own_region_is_compared_only_with_a_known_one() {
    let text = class("regionId: cn-beijing", "");
    assert_eq!(explained(&text)[0].result, Outcome::Accepted);
    let elsewhere = ExplainSettings {
        region: Some("cn-hangzhou".parse().unwrap()),
        ..settings()
    };
    let found = explain(&read("file", &text).unwrap(), &elsewhere).objects;
    assert_eq!(fields(&found[0]), ["parameters.regionId"]);
}

#[test]
fn topologies_are_the_zones_that_the_class_also_names() {
    let topologies =
        "allowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [b, a]}]}]";
    let of = |parameters: &str| {
        zones(&explained(&class(&format!("type: cloud_essd, {parameters}"), topologies))[0]).join(" ")
    };
    assert_eq!(of(""), "b a");
    assert_eq!(of("zoneId: a"), "a");
    let found = explained(&class("zoneId: c", topologies));
    assert_eq!(fields(&found[0]), ["allowedTopologies"]);
}

#[test]
fn a_claim_is_checked_field_by_field() {
    let of = |spec: &str| explained(&(class("", "") + &claim(spec))).remove(1);
    let found = of("accessModes: [ReadWriteOnce, ReadOnlyMany, ReadWriteMany]");
    assert_eq!(fields(&found), ["spec.accessModes[1]", "spec.accessModes[2]"]);
    let size = |requests: &str, limits: &str| {
        of(&format!(
            "accessModes: [ReadWriteOnce], resources: {{requests: {{storage: {requests}}}, limits: {{storage: {limits}}}}}"
        ))
    };
    assert_eq!(fields(&size("2Gi", "1Gi")), ["spec.resources"]);
    assert_eq!(fields(&size("much", "1Gi")), ["spec.resources.requests.storage"]);
    // Only categories with such small disks.
    let small = size("1500Mi", "2Gi");
    let tried: Vec<_> = small.candidates.iter().map(|of| of.category.as_str()).collect();
    assert_eq!((tried, small.candidates[0].size.0), (vec!["cloud_auto"], 2));
    assert_eq!(small.excluded.len(), 5, "{:?}", small.excluded);
}

#[test]
fn several_nodes_need_a_raw_block_volume_of_a_shared_disk() {
    let spec = "accessModes: [ReadWriteMany], volumeMode: Block, resources: {requests: {storage: 40Gi}}";
    let of = |parameters: &str| explained(&(class(parameters, "") + &claim(spec))).remove(1);
    assert_eq!(fields(&of("")), ["spec.accessModes[0]"]);
    let shared = of("multiAttach: \"true\"");
    assert_eq!(shared.result, Outcome::Accepted);
}

#[test]
fn a_claim_needs_its_class_and_a_dynamic_volume() {
    let resources = "resources: {requests: {storage: 40Gi}}";
    for (spec, why) in [
        ("storageClassName: other", "not in the files"),
        ("storageClassName: \"\"", "nothing is created"),
        ("volumeName: pv-1", "volumeName"),
        ("volumeMode: Block", "no class in the files is the default"),
    ] {
        let claim = format!(
            "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: p}}\nspec: {{{spec}, {resources}}}\n"
        );
        let found = explained(&(class("", "") + &claim)).remove(1);
        assert_eq!(found.result, Outcome::Skipped, "{spec}");
        assert!(found.skipped.unwrap().contains(why), "{spec}");
    }
}

#[test]
fn a_copy_is_not_created_in_a_category_without_snapshots() {
    let source = "dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: s}";
    let spec = format!("{source}, accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 64Gi}}}}");
    let text = class("type: elastic_ephemeral_disk_standard", "") + &claim(&spec);
    let found = explained(&text).remove(1);
    assert_eq!(fields(&found), ["size"]);
    assert!(found.problems[0].message.contains("not created from snapshots"));
}

#[test]
fn an_attributes_class_is_shown_for_each_category_that_can_change() {
    let of = |parameters: &str| {
        explained(&format!(
            "apiVersion: storage.k8s.io/v1\nkind: VolumeAttributesClass\nmetadata: {{name: v}}\n\
             driverName: diskplugin.csi.example\nparameters: {{{parameters}}}\n"
        ))
        .remove(0)
    };
    let found = of("provisionedIops: \"1000\"");
    let becomes: Vec<_> = found.changes.iter().map(|of| of.becomes.is_some()).collect();
    let categories: Vec<_> = found.changes.iter().map(|of| of.category.as_str()).collect();
    assert_eq!(
        categories,
        ["cloud_essd", "cloud_auto", "cloud_ssd", "cloud_efficiency"]
    );
    assert_eq!(becomes, [false, true, false, false]);
    let tags = of("diskTags/team: blue");
    assert_eq!((tags.result, tags.changes.len()), (Outcome::Accepted, 0));
    assert!(of("").notes[0].contains("changes nothing"));
}

#[test]
fn the_order_follows_the_stock_of_all_zones() {
    let zone = |name: &str, category, available| ZoneStock {
        zone: Some(name.parse().unwrap()),
        categories: vec![Stock { category, available }],
    };
    let stock = vec![
        zone("b", Category::CloudEssd, true),
        zone("a", Category::CloudEssd, false),
    ];
    let live = ExplainSettings {
        stock: RegionStock {
            zonal: Some(stock),
            regional: None,
        },
        ..settings()
    };
    let text = class("type: cloud_essd", "");
    let found = explain(&read("file", &text).unwrap(), &live).objects.remove(0);
    let order: Vec<_> = found
        .candidates
        .iter()
        .map(|of| (of.zone.as_ref().map(ZoneId::as_str), of.in_stock))
        .collect();
    assert_eq!(order, [(Some("b"), Some(true)), (Some("a"), Some(false))]);
    let text = render(&Explanation {
        driver: String::new(),
        objects: vec![found],
    });
    assert!(text.contains("out of stock"), "{text}");
    let elsewhere = ExplainSettings {
        zone: Some("cn-x".parse().unwrap()),
        ..live
    };
    let text = class("type: cloud_essd", "");
    let found = explain(&read("file", &text).unwrap(), &elsewhere).objects.remove(0);
    let notes = found.notes.join("\n");
    assert!(
        notes.contains("not a zone of the region: cn-x; the zones are a, b"),
        "{notes}"
    );
}

#[test]
fn lists_are_expanded_and_other_objects_are_skipped() {
    let text = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: p}}\n\
                - {apiVersion: other/v1, kind: StorageClass, metadata: {name: s}}\n";
    let found = explained(text);
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|of| of.result == Outcome::Skipped));
    let wrong = explained(&class("", "mountOptions: noatime"));
    assert!(wrong[0].problems[0].message.contains("Kubernetes rejects the object"));
}

#[test]
fn larger_disks_and_omitted_levels_are_noted() {
    let found = explained(&class("type: cloud_essd, performanceLevel: PL3", ""));
    let notes = found[0].notes.join("\n");
    assert!(
        notes.contains("a disk of cloud_essd PL3 has 1261 GiB although 40 GiB are requested"),
        "{notes}"
    );
    let found = explained(&class("type: cloud_essd, performanceLevel: 'PL2,PL1'", ""));
    let notes = found[0].notes.join("\n");
    assert!(notes.contains("PL2 is not tried: its sizes are 461 GiB to"), "{notes}");
}

#[test]
fn a_snapshot_before_the_deletion_is_noted() {
    let found = explained(&class("type: cloud_essd, volumeDeleteSnapshotRetentionDays: '7'", ""));
    let notes = found[0].notes.join("\n");
    assert!(
        notes.contains("a snapshot is taken before a disk is deleted, and kept for 7 days"),
        "{notes}"
    );
}

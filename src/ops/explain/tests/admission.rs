//! What the sidecars do with an object before the driver has it.

use super::*;

#[test]
fn parameters_for_the_sidecars_must_be_known_in_exact_case() {
    for (key, expected) in [
        ("csi.storage.k8s.io/fstype", true),
        ("csi.storage.k8s.io/node-stage-secret-name", true),
        ("csi.storage.k8s.io/secret-namespace", true),
        ("csi.storage.k8s.io/snapshotter-secret-name", false),
        ("csi.storage.k8s.io/node-stage-secret", false),
        ("csi.storage.k8s.io/fsType", false),
        ("csi.storage.k8s.io/foo", false),
    ] {
        let found = explained(&class(&format!("{key}: xfs"), "")).remove(0);
        let problems = fields(&found);
        assert_eq!(problems.is_empty(), expected, "{key}: {problems:?}");
        if !expected {
            assert_eq!(problems, [format!("parameters.{key}")]);
        }
    }
    let snapshots = |kind: &str, group: &str, key: &str| {
        let text = format!(
            "apiVersion: {group}/v1\nkind: {kind}\nmetadata: {{name: s}}\ndriver: diskplugin.csi.example\n\
             deletionPolicy: Delete\nparameters: {{csi.storage.k8s.io/{key}: x}}\n"
        );
        fields(&explained(&text)[0]).len()
    };
    let of_group = ("VolumeGroupSnapshotClass", "groupsnapshot.storage.k8s.io");
    let of_one = ("VolumeSnapshotClass", "snapshot.storage.k8s.io");
    assert_eq!(snapshots(of_one.0, of_one.1, "snapshotter-secret-name"), 0);
    assert_eq!(snapshots(of_one.0, of_one.1, "fstype"), 1);
    assert_eq!(snapshots(of_group.0, of_group.1, "group-snapshotter-secret-name"), 0);
    assert_eq!(snapshots(of_group.0, of_group.1, "snapshotter-secret-name"), 1);
}

#[test]
fn a_claim_with_a_selector_is_rejected() {
    let spec = "accessModes: [ReadWriteOnce], resources: {requests: {storage: 40Gi}}, selector: {matchLabels: {a: b}}";
    let found = explained(&(class("type: cloud_essd", "") + &claim(spec))).remove(1);
    assert_eq!(fields(&found), ["spec.selector"]);
}

#[test]
fn a_source_of_another_group_is_filled_by_its_populator() {
    // No disk of the category has a snapshot.
    let parameters = "type: elastic_ephemeral_disk_standard";
    for (source, expected) in [
        ("apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot", 0),
        ("apiGroup: x.io, kind: VolumeSnapshot", 1),
        ("apiGroup: x.io, kind: Image", 1),
    ] {
        let spec = format!(
            "accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 64Gi}}}}, dataSourceRef: {{{source}, name: s}}"
        );
        let found = explained(&(class(parameters, "") + &claim(&spec))).remove(1);
        assert_eq!(found.candidates.len(), expected, "{source}: {:?}", found.problems);
    }
}

#[test]
fn an_attributes_class_must_be_of_the_same_driver_as_the_storage_class() {
    let attributes = |driver: &str| {
        format!(
            "---\napiVersion: storage.k8s.io/v1\nkind: VolumeAttributesClass\nmetadata: {{name: fast}}\n\
             driverName: {driver}\nparameters: {{performanceLevel: PL1}}\n"
        )
    };
    let spec = "accessModes: [ReadWriteOnce], resources: {requests: {storage: 40Gi}}, \
                volumeAttributesClassName: fast";
    for (driver, expected) in [
        ("diskplugin.csi.example", ""),
        ("diskplugin.csi.alibabacloud.com", "spec.volumeAttributesClassName"),
        ("other.example", "spec.volumeAttributesClassName"),
    ] {
        let text = class("type: cloud_essd", "") + &claim(spec) + &attributes(driver);
        assert_eq!(fields(&explained(&text)[1]).join(" "), expected, "{driver}");
    }
}

#[test]
fn files_of_other_tools_need_no_name() {
    let text = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\n---\n"
        .to_owned()
        + &class("type: cloud_essd", "");
    let found = explained(&text);
    assert_eq!(found[0].result, Outcome::Skipped);
    assert_eq!(found[1].result, Outcome::Accepted);
    let nameless = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nprovisioner: x\n";
    assert!(read("file", nameless).is_err());
}

//! What the sidecars do with an object before the driver has it.

use super::*;

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

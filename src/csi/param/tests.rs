//! Tests of the StorageClass parameters.

use std::collections::HashMap;

use super::*;
use crate::model::{Category, Filesystem, PerformanceLevel};

fn read(parameters: &[(&str, &str)]) -> Result<Class, String> {
    let map = parameters
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    Class::read(&map).map_err(|error| error.to_string())
}

#[test]
fn a_storage_class_of_the_vendors_driver_is_accepted() {
    let class = read(&[
        ("type", "available"),
        ("zoneId", "cn-beijing-c"),
        ("regionId", "cn-beijing"),
        ("fsType", "ext4"),
        ("readOnly", "false"),
    ])
    .unwrap();
    let names: Vec<_> = class.disk.categories.iter().map(Category::as_str).collect();
    assert_eq!(names[..3], ["cloud_efficiency", "cloud_ssd", "cloud"]);
    assert_eq!(class.zones, ["cn-beijing-c".parse().unwrap()]);
    assert_eq!(class.region, Some("cn-beijing".parse().unwrap()));
    assert_eq!((class.fs_type, class.read_only), (Some(Filesystem::Ext4), false));
}

#[test]
fn names_are_case_insensitive_and_lists_keep_their_order() {
    let class = read(&[
        ("TYPE", "cloud_essd, cloud_ssd"),
        ("zoneid", "cn-hangzhou-b,cn-hangzhou-a"),
    ]);
    let class = class.unwrap();
    assert_eq!(class.disk.categories, [Category::CloudEssd, Category::CloudSsd]);
    assert_eq!(class.zones[0].as_str(), "cn-hangzhou-b");
}

#[test]
fn an_unknown_key_is_rejected_with_the_allowed_keys() {
    assert_eq!(
        read(&[("fsTyp", "ext4")]).unwrap_err(),
        "unknown parameter \"fsTyp\" with value \"ext4\"; allowed: type, zoneId, regionId, \
         performanceLevel, provisionedIops, burstingEnabled, multiAttach, resourceGroupId, diskTags, \
         diskTags/<key>, volumeDeleteSnapshotRetentionDays, fsType, readOnly, encrypted, kmsKeyId, fsck, discard, projectQuota, \
         blockSize, inodeSize, bytesPerInode, label, mkfsOptions, sysConfig, partition and csi.storage.k8s.io/*"
    );
    assert!(read(&[("csi.storage.k8s.io/pvc/name", "data")]).is_ok());
}

#[test]
fn an_invalid_value_is_rejected_with_the_allowed_values() {
    for (key, value, allowed) in [
        (
            "type",
            "cloud_sdd",
            "available, or a comma-separated list of cloud_efficiency",
        ),
        ("type", "", "available, or"),
        ("readOnly", "maybe", "\"true\" or \"false\""),
        ("fsType", "ntfs", "ext4, ext3, xfs, btrfs"),
        ("zoneId", "a,,b", "a comma-separated list of zone IDs"),
        ("regionId", "x y", "a region ID"),
    ] {
        let refused = read(&[(key, value)]).unwrap_err();
        assert!(refused.contains(&format!("{key:?} has value {value:?}")), "{refused}");
        assert!(refused.contains(allowed), "{refused}");
    }
}

#[test]
fn a_key_set_twice_in_different_case_is_rejected() {
    assert!(
        read(&[("type", "cloud"), ("Type", "cloud_ssd")])
            .unwrap_err()
            .contains("the same")
    );
}

#[test]
fn a_kms_key_requires_encryption() {
    assert!(
        read(&[("kmsKeyId", "k-1")])
            .unwrap_err()
            .contains("requires \"encrypted\"")
    );
    assert!(
        read(&[("kmsKeyId", "k-1"), ("encrypted", "TRUE")])
            .unwrap()
            .disk
            .encrypted
    );
}

#[test]
fn performance_parameters_require_a_category_that_supports_them() {
    let class = read(&[
        ("type", "cloud_essd,cloud_auto"),
        ("performanceLevel", "PL2, pl1"),
        ("provisionedIops", "1000"),
        ("burstingEnabled", "1"),
        ("resourceGroupId", "rg-1"),
    ])
    .unwrap();
    assert_eq!(class.disk.levels, [PerformanceLevel::Pl2, PerformanceLevel::Pl1]);
    assert_eq!((class.disk.provisioned_iops, class.disk.bursting), (1000, true));
    assert_eq!(class.disk.resource_group.as_deref(), Some("rg-1"));
    for (key, value) in [
        ("performanceLevel", "PL1"),
        ("provisionedIops", "5"),
        ("burstingEnabled", "true"),
        ("multiAttach", "true"),
    ] {
        let refused = read(&[("type", "cloud_ssd"), (key, value)]).unwrap_err();
        assert!(refused.contains(key) && refused.contains("cloud_ssd"), "{refused}");
        assert!(read(&[(key, value)]).is_ok(), "{key} with any type");
    }
}

#[test]
fn invalid_levels_numbers_and_ids_are_rejected_by_key_and_value() {
    for (key, value) in [
        ("performanceLevel", "PL4"),
        ("performanceLevel", ""),
        ("provisionedIops", "50001"),
        ("provisionedIops", "many"),
        ("burstingEnabled", "2"),
        ("multiAttach", "some"),
        ("resourceGroupId", "two words"),
        ("diskTags", "novalue"),
    ] {
        let refused = read(&[(key, value)]).unwrap_err();
        assert!(refused.contains(&format!("{key:?} has value {value:?}")), "{refused}");
    }
}

#[test]
fn a_category_that_is_not_for_volumes_is_rejected_with_the_reason() {
    for (category, reason) in [
        ("local_ssd_pro", "is local to its instance"),
        ("ephemeral_ssd", "is local to its instance"),
    ] {
        let refused = read(&[("type", category)]).unwrap_err();
        assert!(refused.contains(reason), "{refused}");
    }
    assert!(read(&[("type", "cloud_regional_disk_auto")]).is_ok());
    let zone = read(&[("type", "cloud_regional_disk_auto"), ("zoneId", "cn-a")]);
    assert!(zone.unwrap_err().contains("not bound to a zone"));
}

#[test]
fn a_shared_disk_requires_a_category_with_multi_attach_and_cannot_burst() {
    let class = read(&[("multiAttach", "true")]).unwrap();
    assert_eq!(class.disk.categories, [Category::CloudEssd, Category::CloudAuto]);
    let mixed = read(&[("multiAttach", "true"), ("type", "cloud_essd,cloud_ssd")]);
    assert!(mixed.unwrap_err().contains("contains cloud_ssd"));
    let burst = read(&[("multiAttach", "true"), ("burstingEnabled", "true")]);
    assert!(burst.unwrap_err().contains("mutually exclusive"));
}

#[test]
fn single_tags_take_precedence_over_the_tag_list() {
    let class = read(&[
        ("diskTags", "team:blue, url:a:b ,"),
        ("diskTags/Team", "green"),
        ("csi.storage.k8s.io/pvc/name", "data"),
        ("csi.storage.k8s.io/pvc/namespace", "prod"),
        ("csi.storage.k8s.io/fstype", "ext4"),
    ])
    .unwrap();
    let tags: Vec<_> = class.disk.tags.iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(tags, ["Team=green", "url=a:b"]);
    assert_eq!(class.disk.created_for["kubernetes.io/created-for/pvc/name"], "data");
    assert_eq!(class.disk.created_for.len(), 2);
    for key in [
        "diskplugin.csi.example/cluster-id",
        "kubernetes.io/created-for/pv/name",
        "acs:x",
    ] {
        let refused = read(&[(&format!("diskTags/{key}"), "x")]).unwrap_err();
        assert!(refused.contains(key), "{refused}");
    }
}

#[test]
fn the_limit_of_tags_includes_those_of_the_driver() {
    let own: Vec<_> = (0..19).map(|n| (format!("diskTags/k{n}"), "v")).collect();
    let own: Vec<_> = own.iter().map(|(key, value)| (key.as_str(), *value)).collect();
    assert_eq!(read(&own[..18]).unwrap().disk.tags.len(), 18);
    // A clone has an additional tag with its source.
    let full = read(&own[..18]).unwrap();
    assert!(full.count_tags(0).is_ok());
    let refused = full.count_tags(1).unwrap_err();
    assert!(refused.to_string().contains("have 21"), "{refused}");
    let refused = read(&own).unwrap_err();
    assert!(
        refused.contains("19 tags") && refused.contains("have 21, but the limit is 20"),
        "{refused}"
    );
    let mut with_claim = own[..18].to_vec();
    with_claim.push(("csi.storage.k8s.io/pvc/name", "data"));
    assert!(read(&with_claim).is_err());
}

fn overridden(class: &[(&str, &str)], change: &[(&str, &str)]) -> Result<Class, String> {
    let own = |pairs: &[(&str, &str)]| -> HashMap<String, String> {
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        pairs.iter().map(own).collect()
    };
    let change = mutable::read(&own(change)).unwrap();
    Class::read_with(&own(class), &change).map_err(|error| error.to_string())
}

#[test]
fn mutable_parameters_override_the_class_and_reset_unsupported_ones() {
    let class = overridden(
        &[
            ("type", "cloud_auto"),
            ("provisionedIops", "500"),
            ("diskTags", "a:1,b:2"),
        ],
        &[("type", "cloud_essd"), ("performanceLevel", "PL2"), ("diskTags/B", "3")],
    )
    .unwrap();
    assert_eq!(class.disk.categories, [Category::CloudEssd]);
    assert_eq!((class.disk.levels.len(), class.disk.provisioned_iops), (1, 0));
    assert_eq!(class.disk.tags.values().collect::<Vec<_>>(), ["3", "1"]);
    let unfit = overridden(&[("type", "cloud_ssd")], &[("performanceLevel", "PL2")]);
    assert!(unfit.unwrap_err().contains("requires cloud_essd"));
}

#[test]
fn a_tag_has_only_the_fields_of_claim_and_volume_and_only_in_its_value() {
    for value in [
        "{{ .PVCName }}",
        "{{.PVCNamespace}}/{{.PVCName}}",
        "of {{   .PVName}} }}",
        "{ .PVCName }",
    ] {
        assert!(read(&[("diskTags/owner", value)]).is_ok(), "{value}");
        assert!(read(&[("diskTags", &format!("owner:{value}"))]).is_ok(), "{value}");
    }
    for value in [
        "{{ .PVCUID }}",
        "{{ .pvcname }}",
        "{{ PVCName }}",
        "{{ .PVCName | toUpper }}",
        "{{- .PVCName }}",
        "{{ .PVCName",
        "{{}}",
        "{{ {{ .PVCName }} }}",
    ] {
        let parts = [
            &format!("{value:?}"),
            "{{ .PVCName }}, {{ .PVCNamespace }} and {{ .PVName }}",
        ];
        for (key, value) in [
            ("diskTags/owner", value.to_owned()),
            ("diskTags", format!("owner:{value}")),
        ] {
            let refused = read(&[(key, &value)]).unwrap_err();
            assert!(
                refused.starts_with(&format!("parameter {key:?} has value ")),
                "{refused}"
            );
            assert!(parts.iter().all(|part| refused.contains(*part)), "{refused}");
        }
        let change = HashMap::from([("diskTags/owner".to_owned(), value.to_owned())]);
        let refused = mutable::read(&change).unwrap_err().to_string();
        assert!(refused.starts_with("mutable parameter \"diskTags/owner\""), "{refused}");
    }
    for (key, value) in [("diskTags/{{ .PVCName }}", "x"), ("diskTags", "{{ .PVName }}:x")] {
        let refused = read(&[(key, value)]).unwrap_err();
        assert!(refused.contains("only values may contain {{ and }}"), "{refused}");
    }
}

#[test]
fn fields_of_tags_become_names_of_at_most_128_characters() {
    let expanded = |value: &str, claim: &str| {
        let pairs = [
            ("csi.storage.k8s.io/pvc/name", claim),
            ("csi.storage.k8s.io/pvc/namespace", "prod"),
            ("csi.storage.k8s.io/pv/name", ""),
        ];
        let metadata = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let mut class = read(&[("diskTags/owner", value)]).unwrap();
        let expanded = class.expand_tags(&metadata).map_err(|error| error.to_string());
        expanded.map(|()| class.disk.tags["owner"].clone())
    };
    assert_eq!(
        expanded("{{ .PVCNamespace }}/{{ .PVCName }}!", "data").unwrap(),
        "prod/data!"
    );
    // Fields in names are not replaced again.
    assert_eq!(expanded("{{ .PVCName }}", "{{ .PVCName }}").unwrap(), "{{ .PVCName }}");
    let long = expanded("{{ .PVCNamespace }}/{{ .PVCName }}", &"n".repeat(253)).unwrap();
    assert_eq!(long, format!("prod/{}", "n".repeat(123)));
    let refused = expanded("{{ .PVName }}", "data").unwrap_err();
    for part in [
        "\"diskTags/owner\"",
        "{{ .PVName }}",
        "csi.storage.k8s.io/pv/name",
        "--extra-create-metadata",
    ] {
        assert!(refused.contains(part), "{refused}");
    }
    let refused = expanded("http:{{ .PVCName }}", "//").unwrap_err();
    assert!(refused.contains("neither http:// nor https://"), "{refused}");
}

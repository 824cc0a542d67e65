//! Tests of the StorageClass parameters.

use super::*;

fn read(parameters: &[(&str, &str)]) -> Result<Class, String> {
    let map = parameters
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    Class::read(&map).map_err(|status| status.message().to_owned())
}

#[test]
fn a_storage_class_in_use_today_works_as_written() {
    let class = read(&[
        ("type", "available"),
        ("zoneId", "cn-beijing-c"),
        ("regionId", "cn-beijing"),
        ("fsType", "ext4"),
        ("readOnly", "false"),
    ])
    .unwrap();
    let names: Vec<_> = class.categories.iter().map(Category::as_str).collect();
    assert_eq!(names[..3], ["cloud_efficiency", "cloud_ssd", "cloud"]);
    assert_eq!(class.zones, ["cn-beijing-c".parse().unwrap()]);
    assert_eq!(class.region, Some("cn-beijing".parse().unwrap()));
    assert_eq!(
        (class.fs_type, class.read_only),
        (Some(Filesystem::Ext4), false)
    );
}

#[test]
fn names_compare_without_case_and_lists_keep_their_order() {
    let class = read(&[
        ("TYPE", "cloud_essd, cloud_ssd"),
        ("zoneid", "cn-hangzhou-b,cn-hangzhou-a"),
    ]);
    let class = class.unwrap();
    assert_eq!(class.categories, [Category::CloudEssd, Category::CloudSsd]);
    assert_eq!(class.zones[0].as_str(), "cn-hangzhou-b");
}

#[test]
fn an_unknown_key_is_refused_by_name_with_what_is_allowed() {
    assert_eq!(
        read(&[("fsTyp", "ext4")]).unwrap_err(),
        "unknown parameter \"fsTyp\" with value \"ext4\"; allowed are type, zoneId, regionId, \
         fsType, readOnly, encrypted, kmsKeyId and csi.storage.k8s.io/*"
    );
    assert!(read(&[("csi.storage.k8s.io/pvc/name", "data")]).is_ok());
}

#[test]
fn a_bad_value_is_refused_by_key_and_value_with_what_is_allowed() {
    for (key, value, allowed) in [
        (
            "type",
            "cloud_sdd",
            "available, or one or more, by commas, of cloud_efficiency",
        ),
        ("type", "", "available, or"),
        ("readOnly", "maybe", "\"true\" or \"false\""),
        ("fsType", "ntfs", "ext4, ext3, xfs, btrfs"),
        ("zoneId", "a,,b", "zone ids, separated by commas"),
        ("regionId", "x y", "a region id"),
    ] {
        let refused = read(&[(key, value)]).unwrap_err();
        assert!(
            refused.contains(&format!("{key:?} has value {value:?}")),
            "{refused}"
        );
        assert!(refused.contains(allowed), "{refused}");
    }
}

#[test]
fn a_key_given_twice_in_other_case_is_refused() {
    assert!(
        read(&[("type", "cloud"), ("Type", "cloud_ssd")])
            .unwrap_err()
            .contains("the same")
    );
}

#[test]
fn a_key_needs_encryption() {
    assert!(
        read(&[("kmsKeyId", "k-1")])
            .unwrap_err()
            .contains("needs \"encrypted\"")
    );
    assert!(
        read(&[("kmsKeyId", "k-1"), ("encrypted", "TRUE")])
            .unwrap()
            .encrypted
    );
}

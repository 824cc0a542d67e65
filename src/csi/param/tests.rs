//! Tests of the StorageClass parameters.

use super::*;

fn read(parameters: &[(&str, &str)]) -> Result<Class, String> {
    let map = parameters
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    Class::read(&map).map_err(|error| error.to_string())
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
         performanceLevel, provisionedIops, burstingEnabled, multiAttach, resourceGroupId, diskTags, \
         diskTags/<key>, fsType, readOnly, encrypted, kmsKeyId, fsck, discard, projectQuota, \
         blockSize, inodeSize, bytesPerInode, label, mkfsOptions and csi.storage.k8s.io/*"
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

#[test]
fn performance_parameters_are_read_and_need_a_category_that_has_them() {
    let class = read(&[
        ("type", "cloud_essd,cloud_auto"),
        ("performanceLevel", "PL2, pl1"),
        ("provisionedIops", "1000"),
        ("burstingEnabled", "1"),
        ("resourceGroupId", "rg-1"),
    ])
    .unwrap();
    assert_eq!(class.levels, [PerformanceLevel::Pl2, PerformanceLevel::Pl1]);
    assert_eq!((class.provisioned_iops, class.bursting), (1000, true));
    assert_eq!(class.resource_group.as_deref(), Some("rg-1"));
    for (key, value) in [
        ("performanceLevel", "PL1"),
        ("provisionedIops", "5"),
        ("burstingEnabled", "true"),
        ("multiAttach", "true"),
    ] {
        let refused = read(&[("type", "cloud_ssd"), (key, value)]).unwrap_err();
        assert!(
            refused.contains(key) && refused.contains("cloud_ssd"),
            "{refused}"
        );
        assert!(read(&[(key, value)]).is_ok(), "{key} with any type");
    }
}

#[test]
fn a_bad_level_number_or_word_is_refused_by_key_and_value() {
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
        assert!(
            refused.contains(&format!("{key:?} has value {value:?}")),
            "{refused}"
        );
    }
}

#[test]
fn a_category_that_no_volume_can_have_is_refused_with_the_reason() {
    for (category, reason) in [
        ("local_ssd_pro", "is part of one machine"),
        ("ephemeral_ssd", "is part of one machine"),
    ] {
        let refused = read(&[("type", category)]).unwrap_err();
        assert!(refused.contains(reason), "{refused}");
    }
    assert!(read(&[("type", "cloud_regional_disk_auto")]).is_ok());
    let zone = read(&[("type", "cloud_regional_disk_auto"), ("zoneId", "cn-a")]);
    assert!(zone.unwrap_err().contains("bound to no zone"));
}

#[test]
fn a_shared_disk_is_of_a_category_that_can_be_shared_and_does_not_burst() {
    let class = read(&[("multiAttach", "true")]).unwrap();
    assert_eq!(class.categories, [Category::CloudEssd, Category::CloudAuto]);
    let mixed = read(&[("multiAttach", "true"), ("type", "cloud_essd,cloud_ssd")]);
    assert!(mixed.unwrap_err().contains("has cloud_ssd"));
    let burst = read(&[("multiAttach", "true"), ("burstingEnabled", "true")]);
    assert!(burst.unwrap_err().contains("exclude each other"));
}

#[test]
fn tags_come_from_a_list_and_from_single_keys_which_count_before_it() {
    let class = read(&[
        ("diskTags", "team:blue, url:a:b ,"),
        ("diskTags/Team", "green"),
        ("csi.storage.k8s.io/pvc/name", "data"),
        ("csi.storage.k8s.io/pvc/namespace", "prod"),
        ("csi.storage.k8s.io/fstype", "ext4"),
    ])
    .unwrap();
    let tags: Vec<_> = class.tags.iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(tags, ["Team=green", "url=a:b"]);
    assert_eq!(class.origin["kubernetes.io/created-for/pvc/name"], "data");
    assert_eq!(class.origin.len(), 2);
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
fn a_disk_takes_twenty_tags_the_drivers_own_included() {
    let own: Vec<_> = (0..19).map(|n| (format!("diskTags/k{n}"), "v")).collect();
    let own: Vec<_> = own
        .iter()
        .map(|(key, value)| (key.as_str(), *value))
        .collect();
    assert_eq!(read(&own[..18]).unwrap().tags.len(), 18);
    // A clone is tagged with its source, too.
    let full = read(&own[..18]).unwrap();
    assert!(full.count_tags(0).is_ok());
    let refused = full.count_tags(1).unwrap_err();
    assert!(refused.to_string().contains("have 21"), "{refused}");
    let refused = read(&own).unwrap_err();
    assert!(
        refused.contains("19 tags") && refused.contains("have 21, and it takes 20"),
        "{refused}"
    );
    let mut told = own[..18].to_vec();
    told.push(("csi.storage.k8s.io/pvc/name", "data"));
    assert!(read(&told).is_err());
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
fn mutable_parameters_override_the_class_and_what_it_says_of_another_category_goes() {
    let class = overridden(
        &[
            ("type", "cloud_auto"),
            ("provisionedIops", "500"),
            ("diskTags", "a:1,b:2"),
        ],
        &[
            ("type", "cloud_essd"),
            ("performanceLevel", "PL2"),
            ("diskTags/B", "3"),
        ],
    )
    .unwrap();
    assert_eq!(class.categories, [Category::CloudEssd]);
    assert_eq!((class.levels.len(), class.provisioned_iops), (1, 0));
    assert_eq!(class.tags.values().collect::<Vec<_>>(), ["3", "1"]);
    let unfit = overridden(&[("type", "cloud_ssd")], &[("performanceLevel", "PL2")]);
    assert!(unfit.unwrap_err().contains("cloud_essd only"));
}

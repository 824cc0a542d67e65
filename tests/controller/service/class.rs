//! Parameters of StorageClass and VolumeAttributesClass, and topology, in CreateVolume.

use tonic::{Code, Request};

use diskplugin::csi::proto::controller_server::Controller;
use diskplugin::csi::proto::volume_capability::AccessType;
use diskplugin::csi::proto::{ControllerModifyVolumeRequest, CreateVolumeRequest, TopologyRequirement};

use crate::service::kit::{Stage, new_volume, parameters, range, topology};

/// A StorageClass as used in production clusters.
const IN_USE: [(&str, &str); 5] = [
    ("type", "available"),
    ("zoneId", "cn-beijing-c"),
    ("regionId", "cn-beijing"),
    ("fsType", "ext4"),
    ("readOnly", "false"),
];

fn request(class: &[(&str, &str)], requirement: Option<TopologyRequirement>) -> CreateVolumeRequest {
    CreateVolumeRequest {
        parameters: parameters(class),
        accessibility_requirements: requirement,
        ..new_volume("pvc-1")
    }
}

#[tokio::test(start_paused = true)]
async fn a_production_class_works_with_and_without_topology() {
    // Immediate binding without and with topology; WaitForFirstConsumer with the node's zone first.
    let requirements = [
        None,
        Some(topology("abc", "abc")),
        Some(topology("cab", "cab")),
        Some(topology("c", "c")),
    ];
    for requirement in requirements {
        let stage = Stage::new(&[]);
        let volume = stage.create(request(&IN_USE, requirement.clone())).await.unwrap();
        assert_eq!(
            stage.zone_and_category(),
            ("cn-beijing-c".to_owned(), "cloud_efficiency".to_owned())
        );
        assert_eq!(volume.accessible_topology, topology("c", "").requisite);
        assert_eq!(volume.volume_context, parameters(&[("fsType", "ext4")]));
        assert_eq!(volume.capacity_bytes, 20 << 30);
    }
}

#[tokio::test(start_paused = true)]
async fn filesystem_parameters_are_validated_and_passed_to_the_node() {
    let stage = Stage::new(&[]);
    let tuned = [
        ("fsType", "ext4"),
        ("FSCK", "journal"),
        ("discard", "both"),
        ("projectQuota", "yes"),
        ("blockSize", "4k"),
        ("inodeSize", "512"),
        ("bytesPerInode", "65536"),
        ("label", "data"),
        ("mkfsOptions", "-O ^metadata_csum -E stride=16"),
    ];
    let volume = stage.create(request(&tuned, None)).await.unwrap();
    let context = [
        ("fsType", "ext4"),
        ("fsck", "journal"),
        ("discard", "both"),
        ("projectQuota", "true"),
        ("blockSize", "4096"),
        ("inodeSize", "512"),
        ("bytesPerInode", "65536"),
        ("label", "data"),
        ("mkfsOptions", "-O ^metadata_csum -E stride=16"),
    ];
    assert_eq!(volume.volume_context, parameters(&context));
    for (class, parts) in [
        (
            &[("fsck", "always")][..],
            &["fsck", "always", "journal, preen, none"][..],
        ),
        (&[("mkfsOptions", "-F")], &["mkfsOptions", "-F", "is denied"]),
        (
            &[("fsType", "xfs"), ("bytesPerInode", "16k")],
            &["bytesPerInode", "16384", "with xfs"],
        ),
        (
            &[("fsType", "btrfs"), ("projectQuota", "true")],
            &["projectQuota", "ext4 and xfs"],
        ),
    ] {
        let refused = stage.create(request(class, None)).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        for part in parts {
            assert!(refused.message().contains(part), "{refused}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn mount_options_that_the_node_would_reject_are_rejected_by_create_volume() {
    let stage = Stage::new(&[]);
    for (fs_type, flag, part) in [
        ("ext4", "nobarrier", "without write barriers"),
        ("xfs", "logdev=/dev/vda", "another device"),
        ("btrfs", "ro,rw", "contradict"),
    ] {
        let mut asked = request(&[("fsType", fs_type)], None);
        let access = asked.volume_capabilities[0].access_type.as_mut().unwrap();
        let AccessType::Mount(mount) = access else {
            panic!("not a mount");
        };
        mount.fs_type.clear();
        mount.mount_flags = vec!["noatime".to_owned(), flag.to_owned()];
        let refused = stage.create(asked).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().contains(part), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_outside_the_zones_of_the_class_is_resource_exhausted() {
    let stage = Stage::new(&[]);
    let refused = stage
        .create(request(&IN_USE, Some(topology("ab", "a"))))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    for part in ["cn-beijing-c", "cn-beijing-a, cn-beijing-b"] {
        assert!(refused.message().contains(part), "{refused}");
    }
    assert!(stage.disks().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_zone_comes_from_topology_then_class_then_driver() {
    let list = [("zoneId", "cn-beijing-b,cn-beijing-c")];
    let none: &[(&str, &str)] = &[];
    let cases = [
        (none, None, "a"),
        (&list[..], None, "b"),
        (none, Some(topology("abc", "cab")), "c"),
        (none, Some(topology("bc", "")), "b"),
        (&list[..], Some(topology("abc", "acb")), "c"),
        (none, Some(TopologyRequirement::default()), "a"),
    ];
    for (class, requirement, zone) in cases {
        let stage = Stage::new(&[]);
        stage.create(request(class, requirement.clone())).await.unwrap();
        let zone_and_category = stage.zone_and_category().0;
        assert_eq!(
            zone_and_category,
            format!("cn-beijing-{zone}"),
            "{class:?} {requirement:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_zone_is_used_if_the_preferred_one_is_out_of_stock() {
    let stage = Stage::new(&["--out-of-stock=cn-beijing-c/*"]);
    let volume = stage.create(request(&[], Some(topology("abc", "cba")))).await.unwrap();
    assert_eq!(stage.zone_and_category().0, "cn-beijing-b");
    assert_eq!(volume.accessible_topology, topology("b", "").requisite);
}

#[tokio::test(start_paused = true)]
async fn a_list_of_types_is_ordered_by_preference_and_case_insensitive() {
    let stage = Stage::new(&["--out-of-stock=*/cloud_essd"]);
    let class = [("TYPE", "cloud_essd,cloud_auto"), ("zoneid", "cn-beijing-b")];
    stage.create(request(&class, None)).await.unwrap();
    assert_eq!(
        stage.zone_and_category(),
        ("cn-beijing-b".to_owned(), "cloud_auto".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn parameters_of_the_sidecars_are_accepted_and_encryption_is_passed_on() {
    let stage = Stage::new(&[]);
    let class = [
        ("csi.storage.k8s.io/pvc/name", "data"),
        ("csi.storage.k8s.io/pvc/namespace", "default"),
        ("csi.storage.k8s.io/pv/name", "pvc-1"),
        ("csi.storage.k8s.io/fstype", "xfs"),
        ("encrypted", "true"),
        ("kmsKeyId", "key-1"),
        ("readOnly", "true"),
    ];
    let volume = stage.create(request(&class, None)).await.unwrap();
    let disk = &stage.cloud.state()["disks"][0];
    assert_eq!(
        (disk["encrypted"].as_bool(), disk["kms_key"].as_str()),
        (Some(true), Some("key-1"))
    );
    assert_eq!(volume.volume_context, parameters(&[("readOnly", "true")]));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_key_or_invalid_value_is_rejected_with_the_allowed_values() {
    let cases = [
        ("fsTyp", "ext4", "allowed: type, zoneId"),
        ("type", "cloud_sdd", "cloud_efficiency, cloud_ssd"),
        ("type", "available,cloud_ssd", "available, or a comma-separated list"),
        ("zoneId", "", "zone IDs"),
        ("regionId", "cn-hangzhou", "cn-beijing"),
        ("fsType", "ntfs", "ext4, ext3, xfs, btrfs"),
        ("readOnly", "maybe", "\"true\" or \"false\""),
        ("encrypted", "", "\"true\" or \"false\""),
    ];
    let stage = Stage::new(&[]);
    for (key, value, allowed) in cases {
        let refused = stage.create(request(&[(key, value)], None)).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        for part in [&format!("{key:?}"), &format!("{value:?}"), allowed] {
            let part: &str = part;
            assert!(refused.message().contains(part), "{part}: {}", refused.message());
        }
    }
    assert_eq!(stage.calls("CreateDisk"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_topology_without_zone_key_and_an_unknown_zone_are_rejected() {
    let stage = Stage::new(&[]);
    let mut odd = topology("a", "");
    odd.requisite[0].segments = parameters(&[("example.com/rack", "7")]);
    let refused = stage.create(request(&[], Some(odd))).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("topology.kubernetes.io/zone"), "{refused}");
    let refused = stage
        .create(request(&[("zoneId", "cn-beijing-z")], None))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("InvalidZoneId.NotFound"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn without_a_size_the_minimum_of_the_category_is_created() {
    let stage = Stage::new(&[]);
    let mut small = new_volume("pvc-1");
    small.capacity_range = None;
    assert_eq!(stage.create(small).await.unwrap().capacity_bytes, 20 << 30);
    let mut odd = new_volume("pvc-2");
    odd.capacity_range = Some(range(0, 0));
    assert_eq!(stage.create(odd).await.unwrap().capacity_bytes, 20 << 30);
}

#[tokio::test(start_paused = true)]
async fn booleans_have_the_same_values_in_both_classes_and_ignore_spaces() {
    let words = [
        ("true", true),
        (" TRUE ", true),
        ("yes", true),
        ("1", true),
        ("enabled", true),
        ("false", false),
        ("No", false),
        ("0\n", false),
        (" disabled", false),
    ];
    for (word, yes) in words {
        let stage = Stage::new(&[]);
        let class = CreateVolumeRequest {
            parameters: parameters(&[("type", " cloud_auto "), ("burstingEnabled", word)]),
            ..new_volume("pvc-1")
        };
        stage
            .create(class)
            .await
            .unwrap_or_else(|status| panic!("{word:?}: {status}"));
        let later = CreateVolumeRequest {
            parameters: parameters(&[("type", "cloud_auto")]),
            mutable_parameters: parameters(&[("burstingEnabled", word)]),
            ..new_volume("pvc-2")
        };
        stage
            .create(later)
            .await
            .unwrap_or_else(|status| panic!("{word:?}: {status}"));
        let state = stage.cloud.state();
        for row in state["disks"].as_array().unwrap() {
            assert_eq!(row["bursting"], yes, "{word:?}: {row:#}");
        }
        let volume = stage.disks()[0].clone();
        let modify = ControllerModifyVolumeRequest {
            volume_id: volume,
            mutable_parameters: parameters(&[("burstingEnabled", word)]),
            ..Default::default()
        };
        let modified = stage.service.controller_modify_volume(Request::new(modify)).await;
        modified.unwrap_or_else(|status| panic!("{word:?}: {status}"));
    }
    let stage = Stage::new(&[]);
    for word in ["maybe", "", "tru e"] {
        let pair = [("burstingEnabled", word)];
        let class = CreateVolumeRequest {
            parameters: parameters(&[("type", "cloud_auto"), pair[0]]),
            ..new_volume("pvc-1")
        };
        let later = CreateVolumeRequest {
            parameters: parameters(&[("type", "cloud_auto")]),
            mutable_parameters: parameters(&pair),
            ..new_volume("pvc-1")
        };
        for request in [class, later] {
            let refused = stage.create(request).await.unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument, "{word:?}");
            for part in ["burstingEnabled", "\"true\" or \"false\""] {
                assert!(refused.message().contains(part), "{refused}");
            }
        }
    }
    assert!(stage.cloud.counts().is_empty());
}

//! Parameters of StorageClass and VolumeAttributesClass, and topology, in CreateVolume.

use crate::service::kit::*;

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
    let topologies = [("abc", "abc"), ("cab", "cab"), ("c", "c")].map(|(all, first)| Some(topology(all, first)));
    for requirement in [None].into_iter().chain(topologies) {
        let stage = Stage::new(&[]);
        let volume = stage.create(request(&IN_USE, requirement.clone())).await.unwrap();
        let created = stage.zone_and_category();
        assert_eq!(created, ("c".to_owned(), "cloud_efficiency".to_owned()));
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
    let mut context = parameters(&tuned);
    let journal = context.remove("FSCK").unwrap();
    context.extend(parameters(&[
        ("fsck", &journal),
        ("projectQuota", "true"),
        ("blockSize", "4096"),
    ]));
    assert_eq!(volume.volume_context, context);
    for (class, parts) in [
        (&[("fsck", "always")][..], ["fsck", "always", "journal, preen, none"]),
        (&[("mkfsOptions", "-F")], ["mkfsOptions", "-F", "is denied"]),
        (
            &[("fsType", "xfs"), ("bytesPerInode", "16k")],
            ["bytesPerInode", "16384", "with xfs"],
        ),
        (
            &[("fsType", "btrfs"), ("projectQuota", "true")],
            ["projectQuota", "", "ext4 and xfs"],
        ),
    ] {
        assert_error(stage.create(request(class, None)).await, Code::InvalidArgument, &parts);
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
        assert_error(stage.create(asked).await, Code::InvalidArgument, &[part]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_outside_the_zones_of_the_class_is_resource_exhausted() {
    let stage = Stage::new(&[]);
    let outcome = stage.create(request(&IN_USE, Some(topology("ab", "a")))).await;
    let parts = ["cn-beijing-c", "cn-beijing-a, cn-beijing-b"];
    assert_error(outcome, Code::ResourceExhausted, &parts);
    assert!(stage.disks().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_first_zone_in_stock_is_taken_from_topology_class_or_driver() {
    let list = [("zoneId", "cn-beijing-b,cn-beijing-c")];
    let types = [("TYPE", "cloud_essd,cloud_auto"), ("zoneid", "cn-beijing-b")];
    let none: &[(&str, &str)] = &[];
    let any = "cloud_efficiency";
    for (sold_out, class, requirement, zone, category) in [
        ("", none, None, "a", any),
        ("", &list[..], None, "b", any),
        ("", none, Some(topology("abc", "cab")), "c", any),
        ("", none, Some(topology("bc", "")), "b", any),
        ("", &list, Some(topology("abc", "acb")), "c", any),
        ("", none, Some(TopologyRequirement::default()), "a", any),
        ("cn-beijing-c/*", none, Some(topology("abc", "cba")), "b", any),
        ("*/cloud_essd", &types, None, "b", "cloud_auto"),
    ] {
        let flag = format!("--out-of-stock={sold_out}");
        let flags = [flag.as_str()];
        let stage = Stage::new(if sold_out.is_empty() { &[] } else { &flags });
        let volume = stage.create(request(class, requirement.clone())).await.unwrap();
        let created = stage.zone_and_category();
        assert_eq!(
            created,
            (zone.to_owned(), category.to_owned()),
            "{class:?} {requirement:?}"
        );
        assert_eq!(volume.accessible_topology, topology(zone, "").requisite);
    }
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
    assert_eq!([&disk["encrypted"], &disk["kms_key"]], [&json!(true), &json!("key-1")]);
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
        let outcome = stage.create(request(&[(key, value)], None)).await;
        let (key, value) = (format!("{key:?}"), format!("{value:?}"));
        assert_error(outcome, Code::InvalidArgument, &[&key, &value, allowed]);
    }
    assert_eq!(stage.calls("CreateDisk"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_topology_without_zone_key_and_an_unknown_zone_are_rejected() {
    let stage = Stage::new(&[]);
    let mut odd = topology("a", "");
    odd.requisite[0].segments = parameters(&[("example.com/rack", "7")]);
    let outcome = stage.create(request(&[], Some(odd))).await;
    assert_error(outcome, Code::InvalidArgument, &["topology.kubernetes.io/zone"]);
    let outcome = stage.create(request(&[("zoneId", "cn-beijing-z")], None)).await;
    assert_error(outcome, Code::InvalidArgument, &["InvalidZoneId.NotFound"]);
}

#[tokio::test(start_paused = true)]
async fn without_a_size_the_minimum_of_the_category_is_created() {
    let stage = Stage::new(&[]);
    for (name, capacity_range) in [("pvc-1", None), ("pvc-2", Some(range(0, 0)))] {
        let request = CreateVolumeRequest {
            capacity_range,
            ..new_volume(name)
        };
        assert_eq!(stage.create(request).await.unwrap().capacity_bytes, 20 << 30);
    }
}

#[tokio::test(start_paused = true)]
async fn booleans_have_the_same_values_in_both_classes_and_ignore_spaces() {
    // In the StorageClass and in the VolumeAttributesClass.
    let requests = |word: &str| {
        let class = of_class("pvc-1", &[("type", " cloud_auto "), ("burstingEnabled", word)]);
        let later = CreateVolumeRequest {
            mutable_parameters: parameters(&[("burstingEnabled", word)]),
            ..of_class("pvc-2", &[("type", "cloud_auto")])
        };
        [class, later]
    };
    let yes = ["true", " TRUE ", "yes", "1", "enabled"].map(|word| (word, true));
    let no = ["false", "No", "0\n", " disabled"].map(|word| (word, false));
    for (word, is_enabled) in yes.into_iter().chain(no) {
        let stage = Stage::new(&[]);
        for request in requests(word) {
            let created = stage.create(request).await;
            created.unwrap_or_else(|status| panic!("{word:?}: {status}"));
        }
        for row in stage.cloud.state()["disks"].as_array().unwrap() {
            assert_eq!(row["bursting"], is_enabled, "{word:?}: {row:#}");
        }
        let modified = stage.modify(&stage.disks()[0], &[("burstingEnabled", word)]).await;
        modified.unwrap_or_else(|status| panic!("{word:?}: {status}"));
    }
    let stage = Stage::new(&[]);
    for word in ["maybe", "", "tru e"] {
        for request in requests(word) {
            let parts = ["burstingEnabled", "\"true\" or \"false\""];
            assert_error(stage.create(request).await, Code::InvalidArgument, &parts);
        }
    }
    assert!(stage.cloud.counts().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_class_that_requests_a_snapshot_before_deletion_keeps_its_retention_with_the_disk() {
    let stage = Stage::new(&["--never-attached"]);
    let class = |days: &'static str| [("type", "cloud_essd"), ("volumedeletesnapshotRetentionDays", days)];
    let volume = stage.create(of_class("pvc-1", &class(" 30 "))).await.unwrap().volume_id;
    let tag = &stage.cloud.state()["disks"][0]["tags"]["diskplugin.csi.example/delete-snapshot-retention-days"];
    assert_eq!(tag, "30");
    let restarted = stage.restarted();
    let again = restarted.create(of_class("pvc-1", &class("30"))).await.unwrap();
    assert_eq!(again.volume_id, volume);
    let other = restarted.create(of_class("pvc-1", &class("31"))).await;
    assert_error(other, Code::AlreadyExists, &["\"30\", wanted \"31\""]);
    stage.publish(&volume, NODE).await.unwrap();
    stage.unpublish(&volume, NODE).await.unwrap();
    stage.fault("CreateSnapshot", &error_code(403, "Forbidden.RAM"));
    let parts = ["ACCESS_DENIED: ", &*volume, "CreateSnapshot failed with Forbidden.RAM"];
    assert_error(stage.delete(&volume).await, Code::PermissionDenied, &parts);
    stage.delete(&volume).await.unwrap();
    assert!(stage.disks().is_empty());
    assert_eq!(stage.cloud.state()["snapshots"][0]["retention_days"], 30);
    for days in ["0", "65537", "", "-1", "a week"] {
        let parts = [&*format!("{days:?}"), "a whole number of days from 1 to 65536"];
        let refused = stage.create(of_class("pvc-2", &class(days))).await;
        assert_error(refused, Code::InvalidArgument, &parts);
    }
    let scratch = [("type", "cloud_essd,elastic_ephemeral_disk_standard"), class("7")[1]];
    let parts = [
        "volumeDeleteSnapshotRetentionDays",
        "elastic_ephemeral_disk_standard, which has no snapshots",
    ];
    assert_error(
        stage.create(of_class("pvc-2", &scratch)).await,
        Code::InvalidArgument,
        &parts,
    );
}

//! Placement by the categories that nodes support, the resulting topology, and GetCapacity.

use crate::service::kit::*;

const ESSD: &str = "disk.diskplugin.csi.example/cloud_essd";
const AUTO: &str = "disk.diskplugin.csi.example/cloud_auto";
const SSD: &str = "disk.diskplugin.csi.example/cloud_ssd";
const REGIONAL: &str = "disk.diskplugin.csi.example/cloud_regional_disk_auto";
const ZONE: &str = "topology.kubernetes.io/zone";

/// A topology term of a zone whose nodes support these categories.
fn term(letter: &str, takes: &[&str]) -> Topology {
    let zone = format!("cn-beijing-{letter}");
    let mut pairs = vec![(ZONE, zone.as_str())];
    pairs.extend(takes.iter().map(|key| (*key, "available")));
    Topology {
        segments: parameters(&pairs),
    }
}

fn request(class: &[(&str, &str)], requisite: Vec<Topology>, preferred: Vec<Topology>) -> CreateVolumeRequest {
    CreateVolumeRequest {
        parameters: parameters(class),
        accessibility_requirements: Some(TopologyRequirement { requisite, preferred }),
        ..new_volume("pvc-1")
    }
}

#[tokio::test(start_paused = true)]
async fn only_categories_of_the_selected_node_are_created_and_topology_has_zone_and_category() {
    let stage = Stage::new(&[]);
    let requirement = request(
        &[("type", "cloud_ssd,cloud_essd")],
        vec![term("a", &[SSD]), term("a", &[ESSD])],
        vec![term("a", &[ESSD])],
    );
    let volume = stage.create(requirement).await.unwrap();
    assert_eq!(stage.zone_and_category().1, "cloud_essd");
    assert_eq!(volume.accessible_topology, [term("a", &[ESSD])]);
}

#[tokio::test(start_paused = true)]
async fn a_category_that_no_node_supports_is_resource_exhausted() {
    let stage = Stage::new(&[]);
    let ssd = request(&[("type", "cloud_ssd")], vec![term("a", &[ESSD])], Vec::new());
    let reason = "cloud_ssd: not supported by the nodes of cn-beijing-a";
    assert_error(stage.create(ssd).await, Code::ResourceExhausted, &[reason]);
    assert_eq!(stage.calls("CreateDisk"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_category_that_a_selectable_node_does_not_support_is_not_changed_to() {
    let stage = Stage::new(&[]);
    let place = vec![term("a", &[ESSD, AUTO]), term("a", &[ESSD])];
    let essd_only = request(&[("type", "cloud_essd")], place, Vec::new());
    let volume = stage.create(essd_only).await.unwrap().volume_id;
    let modify = async |to: &str| stage.modify(&volume, &[("type", to), ("diskTags/team", "blue")]).await;
    let parts = ["MODIFY_REJECTED: ", "some nodes support cloud_essd and not cloud_auto"];
    assert_error(modify("cloud_auto").await, Code::InvalidArgument, &parts);
    assert_eq!(stage.calls("ModifyDiskSpec") + stage.calls("TagResources"), 0);
    modify("cloud_essd").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_category_is_changed_if_all_nodes_of_the_old_one_support_it() {
    let stage = Stage::new(&[]);
    let place = vec![term("a", &[ESSD, AUTO]), term("a", &[AUTO]), term("b", &[])];
    let wanted = request(&[("type", "cloud_essd")], place, Vec::new());
    let volume = stage.create(wanted).await.unwrap().volume_id;
    stage.modify(&volume, &[("type", "cloud_auto")]).await.unwrap();
    assert_eq!(stage.zone_and_category().1, "cloud_auto");
}

#[tokio::test(start_paused = true)]
async fn without_category_topology_on_nodes_volumes_have_none() {
    let stage = Stage::new(&[]);
    let request = request(&[], vec![term("b", &[])], Vec::new());
    let volume = stage.create(request).await.unwrap();
    assert_eq!(volume.accessible_topology, [term("b", &[])]);
}

/// Available capacity, maximum and minimum volume size in GiB.
type Capacity = (i64, Option<i64>, Option<i64>);

async fn capacity(stage: &Stage, class: &[(&str, &str)], place: Option<Topology>) -> RpcResult<Capacity> {
    let request = proto::GetCapacityRequest {
        parameters: parameters(class),
        accessible_topology: place,
        ..Default::default()
    };
    let response = stage.service.get_capacity(Request::new(request)).await?.into_inner();
    let gib = |size: Option<i64>| size.map(|bytes| bytes >> 30);
    let (maximum, minimum) = (response.maximum_volume_size, response.minimum_volume_size);
    Ok((response.available_capacity >> 30, gib(maximum), gib(minimum)))
}

#[tokio::test(start_paused = true)]
async fn capacity_is_that_of_the_class_in_the_topology() {
    let stage = Stage::new(&["--out-of-stock=cn-beijing-b/cloud_ssd"]);
    let ssd = [("type", "cloud_ssd")];
    let full = (32768, Some(32768), Some(20));
    let nothing = (0, None, None);
    let elsewhere = [("type", "cloud_ssd"), ("zoneId", "cn-beijing-c")];
    for (class, place, expected) in [
        (&ssd[..], Some(term("a", &[])), full),
        (&ssd, Some(term("b", &[])), nothing),
        (&ssd, Some(term("a", &[ESSD])), nothing),
        (&ssd, Some(term("a", &[SSD])), full),
        (&ssd, None, full),
        (&elsewhere, Some(term("a", &[])), nothing),
        (
            &[("type", "cloud_ssd,cloud")],
            Some(term("b", &[])),
            (2000, Some(2000), Some(5)),
        ),
        (&[("type", "cloud_ssd,cloud_auto")], None, (65536, Some(65536), Some(1))),
    ] {
        assert_eq!(
            capacity(&stage, class, place.clone()).await.unwrap(),
            expected,
            "{place:?}"
        );
    }
    assert_eq!(stage.calls("DescribeAvailableResource"), 1);
    sleep(61).await;
    stage.configure(&json!({"out_of_stock": []}));
    assert_eq!(capacity(&stage, &ssd, Some(term("b", &[]))).await.unwrap(), full);
}

#[tokio::test(start_paused = true)]
async fn capacity_rejects_an_invalid_class_and_a_failed_query_is_an_error() {
    let stage = Stage::new(&[]);
    let wrong = capacity(&stage, &[("type", "cloud_gold")], None).await;
    assert_eq!(code(wrong), Code::InvalidArgument);
    stage.configure(&json!({"faults": [
        {"action": "DescribeAvailableResource", "times": 1000, "kind": "internal-error"},
    ]}));
    assert_eq!(code(capacity(&stage, &[], None).await), Code::Unavailable);
    // Permanent failures must not hide the capacity from the scheduler: CreateVolume reports them on the claim.
    for refusal in [
        "Forbidden.RAM",
        "InvalidAccessKeyId.Inactive",
        "InvalidRegionId.NotFound",
    ] {
        let refusal = error_code(403, refusal);
        stage.configure(&json!({"faults": [
            {"action": "DescribeAvailableResource", "times": 1000, "kind": refusal},
        ]}));
        let essd = capacity(&stage, &[("type", "cloud_essd")], Some(term("a", &[])));
        assert_eq!(essd.await.unwrap(), (65536, Some(65536), Some(20)), "{refusal}");
        // After a minute the stock is queried again.
        tokio::time::advance(Duration::from_secs(61)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejected_stock_query_is_cached_and_stockouts_of_create_volume_count() {
    let stage = Stage::new(&["--out-of-stock=cn-beijing-b/cloud_essd"]);
    let refusal = error_code(403, "Forbidden.RAM");
    stage.configure(&json!({"faults": [
        {"action": "DescribeAvailableResource", "times": 1000, "kind": refusal},
    ]}));
    let essd = [("type", "cloud_essd")];
    let full = (65536, Some(65536), Some(20));
    let of = async |zone| capacity(&stage, &essd, Some(term(zone, &[]))).await.unwrap();
    assert_eq!([of("a").await, of("b").await], [full, full]);
    assert_eq!(stage.calls("DescribeAvailableResource"), 1);
    let new = request(&essd, topology("b", "").requisite, Vec::new());
    assert_eq!(code(stage.create(new).await), Code::ResourceExhausted);
    assert_eq!([of("a").await, of("b").await], [full, (0, None, None)]);
}

#[tokio::test(start_paused = true)]
async fn a_regional_disk_has_no_zone_and_has_category_topology_if_nodes_do() {
    let class = [("type", "cloud_regional_disk_auto")];
    let regional = Topology {
        segments: parameters(&[(REGIONAL, "available")]),
    };
    for (place, says) in [
        (term("a", &[]), Vec::new()),
        (term("a", &[REGIONAL, ESSD]), vec![regional]),
    ] {
        let stage = Stage::new(&[]);
        let new = request(&class, vec![place.clone()], vec![place]);
        let volume = stage.create(new).await.unwrap();
        assert_eq!(volume.accessible_topology, says);
        let calls = stage.cloud.calls();
        let create = calls.iter().find(|call| call.action == "CreateDisk");
        assert!(!create.unwrap().params.contains_key("ZoneId"));
        let again = request(&class, topology("b", "").requisite, Vec::new());
        assert_eq!(stage.create(again).await.unwrap().volume_id, volume.volume_id);
    }
}

#[tokio::test(start_paused = true)]
async fn mutable_parameters_override_the_class_and_are_compared_for_idempotency() {
    let stage = Stage::new(&[]);
    let with = |level: &str, tag: &str| CreateVolumeRequest {
        parameters: parameters(&[("type", "cloud_essd"), ("performanceLevel", "PL1")]),
        mutable_parameters: parameters(&[("performanceLevel", level), ("diskTags/team", tag)]),
        ..new_volume("pvc-1")
    };
    let made = stage.create(with("PL0", "blue")).await.unwrap();
    assert_eq!(made.capacity_bytes, 20 << 30);
    let again = stage.create(with("PL0", "blue")).await.unwrap();
    assert_eq!(again.volume_id, made.volume_id);
    for (other, says) in [
        (with("PL1", "blue"), "performance level is PL0, wanted PL1"),
        (with("PL0", "red"), "tag team is \"blue\", wanted \"red\""),
    ] {
        assert_error(stage.create(other).await, Code::AlreadyExists, &[says]);
    }
    let unknown = CreateVolumeRequest {
        mutable_parameters: parameters(&[("zoneId", "cn-beijing-b")]),
        ..new_volume("pvc-2")
    };
    assert_eq!(code(stage.create(unknown).await), Code::InvalidArgument);
}

#[tokio::test(start_paused = true)]
async fn metadata_of_the_provisioner_becomes_tags_and_does_not_affect_idempotency() {
    let stage = Stage::new(&[]);
    let mut new = of_class("pvc-1", &[("type", "cloud_essd"), ("diskTags", "team:blue")]);
    for (name, value) in [("pvc/name", "data"), ("pvc/namespace", "prod"), ("pv/name", "pvc-1")] {
        let key = format!("csi.storage.k8s.io/{name}");
        new.parameters.insert(key, value.to_owned());
    }
    let volume = stage.create(new.clone()).await.unwrap();
    let state = stage.cloud.state();
    let tags = &state["disks"][0]["tags"].to_string();
    for part in ["kubernetes.io/created-for/pvc/name", "prod", "team", "blue"] {
        assert!(tags.contains(part), "{tags}");
    }
    // Then the provisioner runs without --extra-create-metadata.
    new.parameters.retain(|key, _| !key.starts_with("csi.storage"));
    let again = stage.restarted().create(new).await.unwrap();
    assert_eq!(again.volume_id, volume.volume_id);
}

#[tokio::test(start_paused = true)]
async fn tags_have_the_names_of_claim_and_volume_if_the_sidecars_pass_them() {
    let stage = Stage::new(&[]);
    let with_metadata = |pairs: &[(&'static str, &'static str)]| {
        let metadata = [("pvc/name", "data"), ("pvc/namespace", "prod"), ("pv/name", "pvc-1")];
        let metadata = metadata.map(|(name, value)| (format!("csi.storage.k8s.io/{name}"), value.to_owned()));
        let mut all = parameters(pairs);
        all.extend(metadata);
        all
    };
    let class = [
        ("type", "cloud_essd"),
        ("diskTags", "owner:{{ .PVCNamespace }}/{{ .PVCName }}"),
    ];
    let attributes = parameters(&[("diskTags/volume", "{{ .PVName }}")]);
    let new = CreateVolumeRequest {
        parameters: with_metadata(&class),
        mutable_parameters: attributes.clone(),
        ..new_volume("pvc-1")
    };
    let volume = stage.create(new.clone()).await.unwrap().volume_id;
    assert_eq!(stage.restarted().create(new.clone()).await.unwrap().volume_id, volume);
    let tag = |key: &str| stage.cloud.state()["disks"][0]["tags"][key].clone();
    assert_eq!([tag("owner"), tag("volume")], ["prod/data", "pvc-1"]);
    let calls = stage.cloud.calls().len();
    let without = CreateVolumeRequest {
        parameters: parameters(&class),
        ..new_volume("pvc-2")
    };
    let parts = [
        "\"diskTags/owner\"",
        "csi.storage.k8s.io/pvc/namespace",
        "--extra-create-metadata",
    ];
    assert_error(stage.create(without).await, Code::InvalidArgument, &parts);
    // The provisioner passes no claim here: the capacity of a class does not depend on its tags.
    let capacity = proto::GetCapacityRequest {
        parameters: parameters(&class),
        ..Default::default()
    };
    let found = stage.service.get_capacity(Request::new(capacity)).await.unwrap();
    assert!(found.into_inner().available_capacity > 0);
    let modify = async |mutable_parameters: HashMap<String, String>| {
        let request = ControllerModifyVolumeRequest {
            volume_id: volume.clone(),
            mutable_parameters,
            ..Default::default()
        };
        stage.service.controller_modify_volume(Request::new(request)).await
    };
    let parts = [
        "mutable parameter \"diskTags/volume\"",
        "pv/name",
        "--extra-modify-metadata",
    ];
    assert_error(modify(attributes).await, Code::InvalidArgument, &parts);
    assert!(
        stage.cloud.calls()[calls..]
            .iter()
            .all(|call| call.action.starts_with("Describe"))
    );
    modify(with_metadata(&[("diskTags/volume", "of {{ .PVCName }}")]))
        .await
        .unwrap();
    assert_eq!(tag("volume"), "of data");
}

#[tokio::test(start_paused = true)]
async fn defaults_of_the_cloud_do_not_conflict_in_a_repeated_call() {
    for (class, patch) in [
        (vec![("type", "cloud_essd")], json!({})),
        (vec![("type", "cloud_essd"), ("encrypted", "true")], json!({})),
        (
            vec![("type", "cloud_essd")],
            json!({"keys": {"default_encryption": "upgrade"}}),
        ),
    ] {
        let stage = Stage::new(&[]);
        stage.configure(&patch);
        let request = of_class("pvc-1", &class);
        let made = stage.create(request.clone()).await.unwrap();
        let state = stage.cloud.state();
        assert_eq!(state["disks"][0]["resource_group"], "rg-default");
        let again = stage.restarted().create(request).await.unwrap();
        assert_eq!(again.volume_id, made.volume_id);
    }
}

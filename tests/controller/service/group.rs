//! The GroupController service, and groups in the Controller service.

use diskplugin::csi::proto::group_controller_server::GroupController;

use crate::service::kit::*;

fn wanted(name: &str, volumes: &[&str]) -> proto::CreateVolumeGroupSnapshotRequest {
    proto::CreateVolumeGroupSnapshotRequest {
        name: name.to_owned(),
        source_volume_ids: volumes.iter().map(|id| (*id).to_owned()).collect(),
        ..Default::default()
    }
}

async fn create(
    stage: &Stage,
    request: proto::CreateVolumeGroupSnapshotRequest,
) -> RpcResult<proto::VolumeGroupSnapshot> {
    let response = stage.service.create_volume_group_snapshot(Request::new(request));
    response
        .await
        .map(|response| response.into_inner().group_snapshot.unwrap())
}

async fn get(stage: &Stage, id: &str, members: &[&str]) -> RpcResult<proto::VolumeGroupSnapshot> {
    let request = proto::GetVolumeGroupSnapshotRequest {
        group_snapshot_id: id.to_owned(),
        snapshot_ids: members.iter().map(|id| (*id).to_owned()).collect(),
        ..Default::default()
    };
    let response = stage.service.get_volume_group_snapshot(Request::new(request));
    response
        .await
        .map(|response| response.into_inner().group_snapshot.unwrap())
}

async fn delete(stage: &Stage, id: &str, members: &[&str]) -> RpcResult<()> {
    let request = proto::DeleteVolumeGroupSnapshotRequest {
        group_snapshot_id: id.to_owned(),
        snapshot_ids: members.iter().map(|id| (*id).to_owned()).collect(),
        ..Default::default()
    };
    let response = stage.service.delete_volume_group_snapshot(Request::new(request));
    response.await.map(|_| ())
}

#[tokio::test(start_paused = true)]
async fn every_response_about_a_member_snapshot_names_its_group() {
    let stage = Stage::new(&["--cut-delay=1s", "--snapshot-delay=1m"]);
    let (one, two) = (stage.volume("pvc-1").await, stage.volume("pvc-2").await);
    let made = create(&stage, wanted("group", &[&one, &two])).await.unwrap();
    assert!(made.ready_to_use && made.creation_time.is_some());
    assert_eq!(made.snapshots.len(), 2);
    for snapshot in &made.snapshots {
        assert_eq!(snapshot.group_snapshot_id, made.group_snapshot_id);
        assert!(snapshot.creation_time.is_some());
        let request = proto::GetSnapshotRequest {
            snapshot_id: snapshot.snapshot_id.clone(),
            ..Default::default()
        };
        let alone = stage.service.get_snapshot(Request::new(request)).await;
        assert_eq!(alone.unwrap().into_inner().snapshot.as_ref(), Some(snapshot));
        let refused = stage.delete_snapshot(&snapshot.snapshot_id).await;
        assert_eq!(code(refused), Code::InvalidArgument);
    }
    let listed = stage.list_snapshots(ListSnapshotsRequest::default()).await.unwrap();
    for entry in &listed.entries {
        let group = &entry.snapshot.as_ref().unwrap().group_snapshot_id;
        assert_eq!(*group, made.group_snapshot_id);
    }
    assert_eq!(listed.entries.len(), 2);
    let ids: Vec<_> = made.snapshots.iter().map(|s| s.snapshot_id.as_str()).collect();
    let id = made.group_snapshot_id.as_str();
    assert_eq!(get(&stage, id, &ids).await.unwrap(), made);
    assert_eq!(code(get(&stage, id, &ids[..1]).await), Code::InvalidArgument);
    assert_eq!(code(delete(&stage, id, &ids[..1]).await), Code::InvalidArgument);
    delete(&stage, id, &ids).await.unwrap();
    delete(&stage, id, &ids).await.unwrap();
    assert_eq!(code(get(&stage, id, &ids).await), Code::NotFound);
}

#[tokio::test(start_paused = true)]
async fn an_invalid_group_request_is_rejected_without_a_cloud_call() {
    let stage = Stage::new(&[]);
    let one = stage.volume("pvc-1").await;
    stage.cloud.clear_calls();
    let with_parameter = proto::CreateVolumeGroupSnapshotRequest {
        parameters: parameters(&[("retentionDays", "7")]),
        ..wanted("group", &[&one])
    };
    for (request, field) in [
        (wanted("group", &[&one, &one]), "source_volume_ids"),
        (wanted("group", &[&one, ""]), "source_volume_ids"),
        (with_parameter, "retentionDays"),
    ] {
        assert_error(create(&stage, request).await, Code::InvalidArgument, &[field]);
    }
    assert!(stage.cloud.counts().is_empty(), "{:?}", stage.cloud.counts());
}

#[tokio::test(start_paused = true)]
async fn a_concurrent_call_for_the_same_group_is_aborted() {
    let stage = Stage::new(&["--cut-delay=5s"]);
    let (one, two) = (stage.volume("pvc-1").await, stage.volume("pvc-2").await);
    let both = tokio::join!(
        create(&stage, wanted("group", &[&one, &two])),
        create(&stage, wanted("group", &[&one, &two])),
    );
    let (Ok(_), Err(second)) = both else { panic!("{both:?}") };
    assert_eq!(second.code(), Code::Aborted);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_is_usable_in_every_zone_of_its_region_only() {
    let stage = Stage::new(&[]);
    let volume = stage.volume("pvc-1").await;
    let in_zones = |zones: &[&str]| TopologyRequirement {
        requisite: zones.iter().map(|zone| of_zone(zone)).collect(),
        preferred: Vec::new(),
    };
    let take = async |name: &str, requirement: TopologyRequirement| {
        let request = CreateSnapshotRequest {
            accessibility_requirements: Some(requirement),
            ..new_snapshot(name, &volume)
        };
        stage.snapshot_as(request).await
    };
    let far = in_zones(&["cn-beijing-c", "us-east-1a"]);
    let made = take("far", far).await.unwrap();
    assert!(made.accessible_topology.is_empty());
    let outcome = take("elsewhere", in_zones(&["us-east-1a"])).await;
    assert_error(outcome, Code::ResourceExhausted, &["us-east-1a"]);
    let odd = TopologyRequirement {
        requisite: vec![Topology::default()],
        preferred: Vec::new(),
    };
    assert_eq!(code(take("odd", odd).await), Code::InvalidArgument);
    // It can be restored in another zone.
    let request = CreateVolumeRequest {
        accessibility_requirements: Some(in_zones(&["cn-beijing-c"])),
        ..restored("restored", &made.snapshot_id)
    };
    stage.create(request).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn every_response_about_a_clone_names_its_source_volume() {
    let stage = Stage::new(&[]);
    let source = stage.volume("source").await;
    let cloned = |name: &str, volume: &str| CreateVolumeRequest {
        volume_content_source: Some(from_volume(volume)),
        ..new_volume(name)
    };
    for _ in 0..2 {
        let made = stage.create(cloned("copy", &source)).await.unwrap();
        assert_eq!(made.content_source, Some(from_volume(&source)));
    }
    let listed = stage.list_volumes(ListVolumesRequest::default()).await.unwrap();
    let sources = listed.entries.into_iter();
    let sources: Vec<_> = sources.filter_map(|entry| entry.volume?.content_source).collect();
    assert_eq!(sources, [from_volume(&source)]);
    assert_eq!(stage.cloud.state()["snapshots"].as_array().unwrap().len(), 0);
    let missing = proven(async || stage.create(cloned("other", "d-none")).await).await;
    assert_eq!(code(missing), Code::NotFound);
    assert_eq!(code(stage.create(cloned("other", "no-disk")).await), Code::NotFound);
    let empty = stage.create(cloned("copy", "")).await;
    assert_eq!(code(empty), Code::InvalidArgument);
}

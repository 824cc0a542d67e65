//! ControllerModifyVolume, ControllerGetVolume and the health RPCs.

use diskplugin::csi::proto::VolumeHealthErrorType;

use crate::service::kit::*;

#[tokio::test(start_paused = true)]
async fn modify_applies_the_class_and_distinguishes_infeasible_from_retryable() {
    let stage = Stage::new(&[]);
    let volume = stage.volume("pvc-1").await;
    let wanted = [("type", "cloud_auto"), ("diskTags/team", "blue")];
    for _ in 0..2 {
        stage.modify(&volume, &wanted).await.unwrap();
    }
    let row = &stage.cloud.state()["disks"][0];
    assert_eq!([&row["category"], &row["tags"]["team"]], ["cloud_auto", "blue"]);
    for (volume, parameters, expected) in [
        (&*volume, &[("unknown", "x")][..], Code::InvalidArgument),
        (
            &volume,
            &[("performanceLevel", "PL3"), ("type", "cloud_essd")],
            Code::InvalidArgument,
        ),
        (&volume, &[("provisionedIops", "50000")], Code::InvalidArgument),
        ("d-none", &wanted, Code::NotFound),
    ] {
        let modified = proven(async || stage.modify(volume, parameters).await).await;
        assert_eq!(code(modified), expected, "{volume} {parameters:?}");
    }
    stage.configure(&json!({"rules": {"cooling_period": "10m"}}));
    let back = [("type", "cloud_essd")];
    assert_eq!(code(stage.modify(&volume, &back).await), Code::FailedPrecondition);
    stage.configure(&json!({"rules": {"cooling_period": "0s"}, "out_of_stock": ["*/cloud_essd"]}));
    assert_eq!(code(stage.modify(&volume, &back).await), Code::ResourceExhausted);
}

#[tokio::test(start_paused = true)]
async fn get_volume_returns_published_nodes_and_health() {
    let stage = Stage::new(&[]);
    let healthy = stage.volume("pvc-1").await;
    let unhealthy = stage.volume("pvc-2").await;
    stage.configure(&json!({"disk_health": {&unhealthy: {"event": "Stalled", "lock": "security"}}}));
    for (volume, is_unhealthy) in [(&healthy, false), (&unhealthy, true)] {
        let request = ControllerGetVolumeRequest {
            volume_id: volume.clone(),
        };
        let response = stage.service.controller_get_volume(Request::new(request));
        let response = response.await.unwrap().into_inner();
        assert_eq!(response.volume.unwrap().volume_id, *volume);
        assert!(response.status.unwrap().published_node_ids.is_empty());
        let request = ControllerGetVolumeHealthRequest {
            volume_id: volume.clone(),
            secrets: HashMap::new(),
        };
        let response = stage.service.controller_get_volume_health(Request::new(request));
        let health = response.await.unwrap().into_inner().volume_health.unwrap();
        let mut messages = health.health_statuses.iter().map(|entry| &entry.message);
        assert!(messages.all(|message| message.contains(volume.as_str())), "{health:?}");
        let entries = health.health_statuses.iter();
        let entries: Vec<_> = entries.map(|entry| (entry.status(), entry.reason.as_str())).collect();
        let wanted = [
            (VolumeHealthErrorType::Degraded, "LockedSecurity"),
            (VolumeHealthErrorType::Inaccessible, "Stalled"),
        ];
        let wanted = if is_unhealthy { &wanted[..] } else { &[] };
        assert_eq!(entries, wanted);
    }
    let request = ControllerListVolumeHealthRequest::default();
    let listed = stage.service.controller_list_volume_health(Request::new(request));
    let listed = listed.await.unwrap().into_inner();
    let ids: Vec<_> = listed.entries.iter().map(|e| e.volume_id.as_str()).collect();
    assert_eq!((ids, listed.next_token.as_str()), (vec![unhealthy.as_str()], ""));
    let volume_id = "d-none".to_owned();
    let get = async || {
        let volume_id = volume_id.clone();
        let request = Request::new(ControllerGetVolumeRequest { volume_id });
        stage.service.controller_get_volume(request).await
    };
    assert_eq!(code(proven(get).await), Code::NotFound);
    let request = ControllerGetVolumeHealthRequest {
        volume_id: volume_id.clone(),
        ..Default::default()
    };
    let health = stage.service.controller_get_volume_health(Request::new(request));
    assert_eq!(code(health.await), Code::NotFound);
}

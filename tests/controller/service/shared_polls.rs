//! Describe calls that a hundred concurrent calls share.

use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tonic::Request;

use diskplugin::csi::proto::controller_server::Controller;
use diskplugin::csi::proto::{ControllerExpandVolumeRequest, ValidateVolumeCapabilitiesRequest};

use crate::service::kit::{Stage, create, mount, new_volume, range};

#[tokio::test(start_paused = true)]
async fn a_throttled_poll_fails_none_of_a_hundred_waiting_calls() {
    let stage = Stage::new(&["--create-delay=20s"]);
    stage.configure(&json!({"rules": {"disk_quantity": 1000}}));
    let service = std::sync::Arc::new(stage.restarted());
    let mut calls = JoinSet::new();
    for number in 0..100 {
        let service = std::sync::Arc::clone(&service);
        let request = new_volume(&format!("pvc-{number}"));
        calls.spawn(async move { create(&service, request).await });
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    let looks = stage.calls("DescribeDisks");
    let throttled = json!({"code": {"status": 400, "code": "Throttling.Api"}});
    stage.configure(&json!({"faults": [
        {"action": "DescribeDisks", "from": 1, "times": 1, "kind": throttled}
    ]}));
    let made = calls.join_all().await;
    let failed: Vec<_> = made.iter().filter_map(|made| made.as_ref().err()).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert!(stage.calls("DescribeDisks") > looks);
    let refused = stage.cloud.calls().into_iter();
    let refused = refused.filter(|call| call.code.as_deref() == Some("Throttling.Api"));
    assert_eq!(refused.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_concurrent_calls_share_describe_calls() {
    let stage = Stage::new(&[]);
    stage.configure(&json!({"rules": {"disk_quantity": 1000}}));
    let mut volumes = Vec::new();
    for number in 0..100 {
        volumes.push(stage.volume(&format!("pvc-{number}")).await);
    }
    let service = std::sync::Arc::new(stage.restarted());
    stage.cloud.clear_calls();
    let mut calls = JoinSet::new();
    for volume in &volumes {
        let service = std::sync::Arc::clone(&service);
        let request = ValidateVolumeCapabilitiesRequest {
            volume_id: volume.clone(),
            volume_capabilities: vec![mount()],
            ..Default::default()
        };
        calls.spawn(async move {
            let answer = service.validate_volume_capabilities(Request::new(request)).await;
            answer.unwrap().into_inner().confirmed.is_some()
        });
    }
    assert!(calls.join_all().await.into_iter().all(|confirmed| confirmed));
    assert!(stage.calls("DescribeDisks") <= 2, "{}", stage.calls("DescribeDisks"));
    stage.cloud.clear_calls();
    let mut calls = JoinSet::new();
    for volume in volumes {
        let service = std::sync::Arc::clone(&service);
        let request = ControllerExpandVolumeRequest {
            volume_id: volume,
            capacity_range: Some(range(20, 0)),
            ..Default::default()
        };
        calls.spawn(async move {
            let answer = service.controller_expand_volume(Request::new(request)).await;
            answer.unwrap().into_inner().capacity_bytes >> 30
        });
    }
    assert!(calls.join_all().await.into_iter().all(|gib| gib == 20));
    assert!(stage.calls("DescribeDisks") <= 2, "{}", stage.calls("DescribeDisks"));
}

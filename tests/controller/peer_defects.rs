//! Regression tests for defects that other drivers for this cloud have.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tonic::{Code, Request};

use diskplugin::csi::proto::controller_server::Controller;
use diskplugin::csi::proto::{
    ControllerExpandVolumeRequest, ControllerModifyVolumeRequest, ControllerUnpublishVolumeRequest,
    CreateSnapshotRequest, CreateVolumeRequest, DeleteVolumeRequest, ListSnapshotsRequest,
    ListVolumesRequest, ValidateVolumeCapabilitiesRequest,
};

use crate::kit::{
    NODE, OTHER, Stage, code, create, mount, new_volume, parameters, publication, range, within,
};

/// The nodes to which the volume is attached in the cloud.
fn holders(stage: &Stage, volume: &str) -> Vec<String> {
    let state = stage.cloud.state();
    let rows = state["disks"].as_array().unwrap();
    let row = rows.iter().find(|row| row["id"] == volume).unwrap();
    let held = row["attachments"].as_array().unwrap().iter();
    held.map(|held| held["instance"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_queued_call_uses_the_state_after_its_wait() {
    let stage = Stage::new(&["--attach-delay=20s"]);
    let (first, second) = (stage.volume("pvc-1").await, stage.volume("pvc-2").await);
    let other = stage.restarted();
    let (one, two, meanwhile) = tokio::join!(
        stage.publish(&first, NODE),
        async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            stage.publish(&second, NODE).await
        },
        async {
            // While it is queued, another process attaches the disk to another node.
            tokio::time::sleep(Duration::from_secs(5)).await;
            let request = Request::new(publication(&second, OTHER));
            other.controller_publish_volume(request).await
        },
    );
    one.unwrap();
    meanwhile.unwrap();
    let refused = two.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    assert!(refused.message().contains(OTHER), "{refused}");
    assert_eq!(holders(&stage, &second), [OTHER]);
    assert_eq!(stage.calls("DetachDisk"), 0);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_page_token_is_aborted_and_an_old_one_remains_valid() {
    let stage = Stage::new(&[]);
    let mut volumes = Vec::new();
    for number in 0..4 {
        let volume = stage.volume(&format!("pvc-{number}")).await;
        let snapshot = stage.snapshot(&format!("snap-{number}"), &volume).await;
        volumes.push((volume, snapshot.unwrap().snapshot_id));
    }
    let lists = async |token: &str, most: i32| {
        let request = ListVolumesRequest {
            max_entries: most,
            starting_token: token.to_owned(),
        };
        let volumes = stage.service.list_volumes(Request::new(request)).await;
        let request = ListSnapshotsRequest {
            max_entries: most,
            starting_token: token.to_owned(),
            ..Default::default()
        };
        let snapshots = stage.service.list_snapshots(Request::new(request)).await;
        (
            volumes.map(|answer| answer.into_inner()),
            snapshots.map(|answer| answer.into_inner()),
        )
    };
    let long = "9".repeat(100);
    for token in [
        "-1@",
        "99@",
        "@",
        "-1",
        "99",
        "/",
        "x/y",
        "2027-01-01",
        "\u{0}",
        &long,
    ] {
        let (volumes, snapshots) = lists(token, 2).await;
        assert_eq!(code(volumes), Code::Aborted, "{token:?}");
        assert_eq!(code(snapshots), Code::Aborted, "{token:?}");
    }
    // A token outlives the item that it refers to, and all items before it.
    let (page, snapshots) = lists("", 2).await;
    let (after, after_snapshots) = (page.unwrap().next_token, snapshots.unwrap().next_token);
    for (volume, snapshot) in &volumes[..3] {
        stage.delete_snapshot(snapshot).await.unwrap();
        stage.delete(volume).await.unwrap();
    }
    let (rest, _) = lists(&after, 2).await;
    let (_, rest_snapshots) = lists(&after_snapshots, 2).await;
    let (rest, rest_snapshots) = (rest.unwrap(), rest_snapshots.unwrap());
    assert_eq!((rest.entries.len(), rest_snapshots.entries.len()), (1, 1));
    assert!(rest.next_token.is_empty() && rest_snapshots.next_token.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_new_process_completes_the_operations_of_the_previous_one() {
    let stage = Stage::new(&[
        "--attach-delay=20s",
        "--detach-delay=20s",
        "--cut-delay=20s",
        "--create-delay=20s",
    ]);
    let soon = Duration::from_secs(3);
    let late = stage
        .service
        .create_volume(within(soon, new_volume("pvc-1")))
        .await;
    assert!(late.is_err());
    let volume = create(&stage.restarted(), new_volume("pvc-1"))
        .await
        .unwrap()
        .volume_id;
    assert_eq!(stage.disks(), std::slice::from_ref(&volume));

    let publish = || publication(&volume, NODE);
    let late = stage
        .service
        .controller_publish_volume(within(soon, publish()))
        .await;
    assert!(late.is_err());
    let request = Request::new(publish());
    stage
        .restarted()
        .controller_publish_volume(request)
        .await
        .unwrap();

    let snapshot = || CreateSnapshotRequest {
        name: "snap".to_owned(),
        source_volume_id: volume.clone(),
        ..Default::default()
    };
    let late = stage
        .service
        .create_snapshot(within(soon, snapshot()))
        .await;
    assert!(late.is_err());
    let made = stage
        .restarted()
        .create_snapshot(Request::new(snapshot()))
        .await;
    let made = made.unwrap().into_inner().snapshot.unwrap();
    let rows = stage.cloud.state()["snapshots"].clone();
    assert_eq!(
        (rows.as_array().unwrap().len(), &rows[0]["id"]),
        (1, &json!(made.snapshot_id))
    );

    let unpublish = || ControllerUnpublishVolumeRequest {
        volume_id: volume.clone(),
        node_id: NODE.to_owned(),
        ..Default::default()
    };
    let late = stage
        .service
        .controller_unpublish_volume(within(soon, unpublish()))
        .await;
    assert!(late.is_err());
    let request = Request::new(unpublish());
    stage
        .restarted()
        .controller_unpublish_volume(request)
        .await
        .unwrap();
    assert!(holders(&stage, &volume).is_empty());
    assert_eq!(
        (stage.calls("CreateDisk"), stage.calls("CreateSnapshot")),
        (1, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn temporary_failures_are_retryable_and_the_retry_succeeds() {
    let kinds = [
        json!({"code": {"status": 500, "code": "InternalError"}}),
        json!({"code": {"status": 503, "code": "ServiceUnavailable"}}),
        json!({"code": {"status": 400, "code": "Throttling"}}),
        json!("reset-before"),
        json!("html"),
    ];
    let actions = [
        "DescribeDisks",
        "DescribeSnapshots",
        "CreateDisk",
        "CreateSnapshot",
        "AttachDisk",
        "DetachDisk",
        "ResizeDisk",
        "DeleteSnapshot",
        "DeleteDisk",
    ];
    for kind in kinds {
        let stage = Stage::new(&[]);
        let fails: Vec<Value> = actions
            .iter()
            .map(|action| json!({"action": action, "from": 1, "times": 100_000, "kind": kind}))
            .collect();
        let soon = Duration::from_secs(4);
        let assert_error = |step: &str, failure: Option<tonic::Status>| {
            let status = failure.unwrap_or_else(|| panic!("{step} succeeded under {kind}"));
            let passing = [
                Code::Unavailable,
                Code::Aborted,
                Code::DeadlineExceeded,
                Code::Internal,
                Code::Unknown,
            ];
            assert!(
                passing.contains(&status.code()),
                "{step} under {kind}: {status}"
            );
        };
        let broken = json!({"faults": fails});
        let mend = || {
            stage.configure(&json!({"faults": []}));
            tokio::time::sleep(Duration::from_secs(120))
        };
        stage.configure(&broken);
        let failed = stage
            .service
            .create_volume(within(soon, new_volume("pvc-1")))
            .await;
        assert_error("create", failed.err());
        mend().await;
        let volume = stage.volume("pvc-1").await;

        stage.configure(&broken);
        let request = within(soon, publication(&volume, NODE));
        assert_error(
            "publish",
            stage.service.controller_publish_volume(request).await.err(),
        );
        mend().await;
        stage.publish(&volume, NODE).await.unwrap();

        stage.configure(&broken);
        let snapshot = CreateSnapshotRequest {
            name: "snap".to_owned(),
            source_volume_id: volume.clone(),
            ..Default::default()
        };
        assert_error(
            "snapshot",
            stage
                .service
                .create_snapshot(within(soon, snapshot))
                .await
                .err(),
        );
        let validate = ValidateVolumeCapabilitiesRequest {
            volume_id: volume.clone(),
            volume_capabilities: vec![mount()],
            ..Default::default()
        };
        let validated = stage
            .service
            .validate_volume_capabilities(within(soon, validate))
            .await;
        assert_error("validate", validated.err());
        let expand = ControllerExpandVolumeRequest {
            volume_id: volume.clone(),
            capacity_range: Some(range(30, 0)),
            ..Default::default()
        };
        assert_error(
            "expand",
            stage
                .service
                .controller_expand_volume(within(soon, expand))
                .await
                .err(),
        );
        mend().await;
        stage.snapshot("snap", &volume).await.unwrap();
        stage.expand(&volume, 30).await.unwrap();
        stage.unpublish(&volume, NODE).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn returned_sizes_are_actual_and_limits_are_enforced() {
    let stage = Stage::new(&[]);
    let ask = |name: &str, required: i64, limit: i64| CreateVolumeRequest {
        capacity_range: Some(range(required, limit)),
        ..new_volume(name)
    };
    let made = stage.create(ask("pvc-1", 30, 40)).await.unwrap();
    assert_eq!(made.capacity_bytes, 30 << 30);
    // What is there fits, and is what is assert_error.
    let again = stage.create(ask("pvc-1", 25, 40)).await.unwrap();
    assert_eq!(
        (again.volume_id, again.capacity_bytes),
        (made.volume_id.clone(), 30 << 30)
    );
    assert_eq!(
        code(stage.create(ask("pvc-1", 10, 25)).await),
        Code::AlreadyExists
    );
    // The category has no size within the limit.
    assert_eq!(
        code(stage.create(ask("pvc-2", 5, 10)).await),
        Code::OutOfRange
    );
    assert_eq!(stage.expand(&made.volume_id, 20).await.unwrap().0, 30);
    let expand = async |required: i64, limit: i64| {
        let request = ControllerExpandVolumeRequest {
            volume_id: made.volume_id.clone(),
            capacity_range: Some(range(required, limit)),
            ..Default::default()
        };
        let answer = stage
            .service
            .controller_expand_volume(Request::new(request))
            .await;
        answer.map(|answer| answer.into_inner().capacity_bytes >> 30)
    };
    assert_eq!(code(expand(20, 25).await), Code::OutOfRange);
    assert_eq!(expand(35, 35).await.unwrap(), 35);
    let grown = stage.cloud.calls().into_iter();
    let grown = grown.filter(|call| call.action == "ResizeDisk" && call.status == Some(200));
    assert_eq!((stage.disks().len(), grown.count()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_volume_is_never_detached_from_another_node() {
    let stage = Stage::new(&["--detach-delay=2s", "--stale=2s"]);
    let volume = stage.volume("pvc-1").await;
    for node in [NODE, OTHER] {
        stage.publish(&volume, node).await.unwrap();
        stage.unpublish(&volume, "").await.unwrap();
        assert!(holders(&stage, &volume).is_empty());
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    stage.unpublish(&volume, "").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn every_error_code_of_attach_limit_and_instance_type_is_mapped() {
    let stage = Stage::new(&[]);
    let volume = stage.volume("pvc-1").await;
    for (status, name, expected) in [
        (403, "InstanceDiskLimitExceeded", Code::ResourceExhausted),
        (400, "InstanceDiskLimitExceeded", Code::ResourceExhausted),
        (
            403,
            "InvalidInstanceType.NotSupportDiskCategory",
            Code::FailedPrecondition,
        ),
        (
            400,
            "InvalidInstanceType.NotSupportDiskCategory",
            Code::FailedPrecondition,
        ),
    ] {
        stage.fault(
            "AttachDisk",
            &json!({"code": {"status": status, "code": name}}),
        );
        let refused = stage.publish(&volume, NODE).await.unwrap_err();
        assert_eq!(refused.code(), expected, "{name}: {refused}");
        for part in [name, NODE, &volume] {
            assert!(refused.message().contains(part), "{part}: {refused}");
        }
    }
    stage.publish(&volume, NODE).await.unwrap();
}

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
        let modified = stage
            .service
            .controller_modify_volume(Request::new(modify))
            .await;
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
            let answer = service
                .validate_volume_capabilities(Request::new(request))
                .await;
            answer.unwrap().into_inner().confirmed.is_some()
        });
    }
    assert!(
        calls
            .join_all()
            .await
            .into_iter()
            .all(|confirmed| confirmed)
    );
    assert!(
        stage.calls("DescribeDisks") <= 2,
        "{}",
        stage.calls("DescribeDisks")
    );
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
            let answer = service
                .controller_expand_volume(Request::new(request))
                .await;
            answer.unwrap().into_inner().capacity_bytes >> 30
        });
    }
    assert!(calls.join_all().await.into_iter().all(|gib| gib == 20));
    assert!(
        stage.calls("DescribeDisks") <= 2,
        "{}",
        stage.calls("DescribeDisks")
    );
}

#[tokio::test(start_paused = true)]
async fn every_throttling_code_and_lost_responses_are_retried() {
    let mut kinds = vec![
        json!("reset-before"),
        json!("service-unavailable"),
        json!("internal-error"),
    ];
    for name in [
        "Throttling",
        "Throttling.User",
        "Throttling.Api",
        "Throttling.ConcurrentLimitExceeded",
        "Rejected.Throttling",
        "Throttling.OfAKindThatIsNew",
    ] {
        for status in [400, 403, 429, 503] {
            kinds.push(json!({"code": {"status": status, "code": name}}));
        }
    }
    for kind in kinds {
        for action in ["CreateDisk", "DescribeDisks", "DeleteDisk"] {
            let stage = Stage::new(&[]);
            let fault = json!({"action": action, "kind": kind});
            stage.configure(&json!({"faults": [fault]}));
            let patient = Duration::from_secs(300);
            let request = within(patient, new_volume("pvc-1"));
            let made = stage.service.create_volume(request).await;
            let made = made.unwrap_or_else(|status| panic!("{action} {kind}: {status}"));
            let delete = DeleteVolumeRequest {
                volume_id: made.into_inner().volume.unwrap().volume_id,
                ..Default::default()
            };
            let gone = stage.service.delete_volume(within(patient, delete)).await;
            gone.unwrap_or_else(|status| panic!("{action} {kind}: {status}"));
            assert!(stage.disks().is_empty());
            let failed = stage.cloud.calls().into_iter();
            let failed = failed.filter(|call| call.action == action && call.status != Some(200));
            assert!(failed.count() >= 1, "{action} {kind}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn sizes_and_iops_out_of_range_are_rejected_before_any_cloud_call() {
    let stage = Stage::new(&[]);
    for (class, gib, expected, part) in [
        (
            &[("type", "cloud_essd")][..],
            70_000,
            Code::OutOfRange,
            "65536",
        ),
        (&[("type", "cloud_ssd")], 40_000, Code::OutOfRange, "32768"),
        (
            &[("type", "cloud_auto"), ("provisionedIops", "60000")],
            1000,
            Code::InvalidArgument,
            "provisionedIops",
        ),
        (
            &[("type", "cloud_auto"), ("provisionedIops", "40000")],
            40,
            Code::OutOfRange,
            "40000",
        ),
        (
            &[("type", "cloud_essd"), ("performanceLevel", "PL3")],
            70_000,
            Code::OutOfRange,
            "65536",
        ),
    ] {
        let request = CreateVolumeRequest {
            parameters: parameters(class),
            capacity_range: Some(range(gib, gib)),
            ..new_volume("pvc-1")
        };
        let refused = stage.create(request).await.unwrap_err();
        assert_eq!(refused.code(), expected, "{class:?}: {refused}");
        assert!(refused.message().contains(part), "{class:?}: {refused}");
    }
    assert_eq!((stage.calls("CreateDisk"), stage.disks().len()), (0, 0));
}

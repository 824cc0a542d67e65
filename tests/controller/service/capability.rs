//! Access types, access modes and capabilities.

use diskplugin::csi::proto::controller_service_capability::Type;
use diskplugin::csi::proto::controller_service_capability::rpc::Type as Rpc;

use crate::service::kit::*;

fn modes() -> [(Mode, bool); 8] {
    [
        (Mode::Unknown, false),
        (Mode::SingleNodeWriter, true),
        (Mode::SingleNodeReaderOnly, true),
        (Mode::MultiNodeReaderOnly, false),
        (Mode::MultiNodeSingleWriter, false),
        (Mode::MultiNodeMultiWriter, false),
        (Mode::SingleNodeSingleWriter, true),
        (Mode::SingleNodeMultiWriter, true),
    ]
}

fn accesses() -> [Option<AccessType>; 3] {
    [None, mount().access_type, block().access_type]
}

#[tokio::test(start_paused = true)]
async fn every_call_accepts_only_single_node_modes_for_mount_and_block() {
    let stage = Stage::new(&[]);
    let volume = stage.volume("pvc-1").await;
    for access in accesses() {
        for (mode, fine) in modes() {
            let fine = fine && access.is_some();
            let one = capability(mode, access.clone());
            let new = CreateVolumeRequest {
                volume_capabilities: vec![mount(), one.clone()],
                ..new_volume("pvc-1")
            };
            let created = stage.create(new).await.map(|_| ());
            let publish = ControllerPublishVolumeRequest {
                volume_capability: Some(one.clone()),
                ..publication(&volume, NODE)
            };
            let published = stage.publish_as(publish).await;
            let validated = stage.validate(&volume, vec![one]).await.unwrap();
            for outcome in [created, published.map(|_| ())] {
                match outcome {
                    Ok(()) => assert!(fine, "{access:?} {mode:?}"),
                    Err(status) => {
                        assert!(!fine, "{access:?} {mode:?}: {status}");
                        assert_eq!(status.code(), Code::InvalidArgument);
                    }
                }
            }
            assert_eq!(validated.confirmed.is_some(), fine, "{access:?} {mode:?}");
            assert_eq!(validated.message.is_empty(), fine, "{validated:?}");
            stage.unpublish(&volume, NODE).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn multi_node_modes_are_rejected_for_filesystems_and_single_node_disks() {
    let stage = Stage::new(&[]);
    let volume = stage.volume("pvc-1").await;
    let is_multi = |(mode, _): &(Mode, bool)| mode.as_str_name().starts_with("MULTI");
    for (mode, _) in modes().into_iter().filter(is_multi) {
        let is_for_readers = mode == Mode::MultiNodeReaderOnly;
        let mounted = if is_for_readers {
            "multiAttach"
        } else {
            "volumeMode Block"
        };
        for (access, reason) in [(mount().access_type, mounted), (block().access_type, "multiAttach")] {
            let new = CreateVolumeRequest {
                volume_capabilities: vec![capability(mode, access.clone())],
                ..new_volume("pvc-2")
            };
            let outcome = stage.create(new).await;
            assert_error(outcome, Code::InvalidArgument, &[mode.as_str_name(), reason]);
            stage.cloud.clear_calls();
            let mut publish = publication(&volume, NODE);
            publish.volume_capability = Some(capability(mode, access));
            assert_error(stage.publish_as(publish).await, Code::InvalidArgument, &[reason]);
            assert_eq!(stage.calls("AttachDisk"), 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_filesystem_for_readers_on_several_nodes_has_content() {
    let stage = Stage::new(&[]);
    let volume = stage.volume("pvc-1").await;
    stage.publish(&volume, NODE).await.unwrap();
    let snapshot = stage.snapshot("snapshot-1", &volume).await.unwrap().snapshot_id;
    let mut request = CreateVolumeRequest {
        volume_capabilities: vec![capability(Mode::MultiNodeReaderOnly, mount().access_type)],
        ..of_class("pvc-2", &[("type", "cloud_essd"), ("multiAttach", "true")])
    };
    let blank = stage.create(request.clone()).await;
    assert_error(blank, Code::InvalidArgument, &["volume_content_source", "snapshot"]);
    request.volume_content_source = Some(from_snapshot(&snapshot));
    stage.create(request).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_read_only_publish_is_passed_to_the_node_and_conflicts_with_a_writable_one() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let stage = Stage::new(&[stale]);
        for (first, name) in [(false, "pvc-1"), (true, "pvc-2")] {
            let volume = stage.volume(name).await;
            let publish = async |process: &Stage, readonly| {
                let request = ControllerPublishVolumeRequest {
                    readonly,
                    ..publication(&volume, NODE)
                };
                process.publish_as(request).await
            };
            for process in [&stage, &stage, &stage.restarted()] {
                let context = publish(process, first).await.unwrap();
                let key = diskplugin::model::context::ATTACHED_READ_ONLY;
                assert_eq!(context.contains_key(key), first, "{context:?}");
                let outcome = publish(process, !first).await;
                let parts = ["ATTACH_MODE_CONFLICT: ", &volume, NODE, "read-only"];
                assert_error(outcome, Code::AlreadyExists, &parts);
                // Longer than reads lag.
                sleep(5).await;
            }
            assert_eq!(holders(&stage, &volume), [NODE]);
            stage.unpublish(&volume, NODE).await.unwrap();
            assert!(publish(&stage, !first).await.is_ok(), "{stale}");
            stage.unpublish(&volume, NODE).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn validation_confirms_capabilities_or_returns_the_reason() {
    let stage = Stage::new(&[]);
    let volume = stage.volume("pvc-1").await;
    let mut request = ValidateVolumeCapabilitiesRequest {
        volume_id: volume.clone(),
        volume_capabilities: vec![mount(), block()],
        volume_context: parameters(&[("fsType", "xfs")]),
        parameters: parameters(&[("type", "cloud_essd")]),
        ..Default::default()
    };
    let validate = async |request| {
        let response = stage.service.validate_volume_capabilities(Request::new(request)).await;
        response.unwrap().into_inner()
    };
    let confirmed = validate(request.clone()).await.confirmed.unwrap();
    assert_eq!(confirmed.volume_capabilities, request.volume_capabilities);
    assert_eq!(confirmed.volume_context, request.volume_context);
    request.parameters = parameters(&[("type", "gold")]);
    let refused = validate(request).await;
    assert!(
        refused.confirmed.is_none() && refused.message.contains("gold"),
        "{refused:?}"
    );
    let missing = proven(async || stage.validate("d-none", vec![mount()]).await).await;
    assert_eq!(code(missing), Code::NotFound);
    assert_eq!(code(stage.validate(&volume, vec![]).await), Code::InvalidArgument);
    assert_eq!(code(stage.validate("", vec![mount()]).await), Code::InvalidArgument);
}

#[tokio::test(start_paused = true)]
async fn published_nodes_are_listed_only_if_enabled() {
    let service = Stage::new(&[]).service.with_published_nodes(true);
    let mut expected = CAPABILITIES.to_vec();
    expected.push("LIST_VOLUMES_PUBLISHED_NODES");
    expected.sort_unstable();
    assert_eq!(capabilities(&service).await, expected);
}

#[tokio::test(start_paused = true)]
async fn the_advertised_capabilities_are_exactly_the_implemented_rpcs() {
    assert_eq!(capabilities(&Stage::new(&[]).service).await, CAPABILITIES);
}

const CAPABILITIES: [&str; 15] = [
    "CLONE_VOLUME",
    "CREATE_DELETE_SNAPSHOT",
    "CREATE_DELETE_VOLUME",
    "EXPAND_VOLUME",
    "GET_CAPACITY",
    "GET_SNAPSHOT",
    "GET_VOLUME",
    "GET_VOLUME_HEALTH",
    "LIST_SNAPSHOTS",
    "LIST_VOLUMES",
    "LIST_VOLUME_HEALTH",
    "MODIFY_VOLUME",
    "PUBLISH_READONLY",
    "PUBLISH_UNPUBLISH_VOLUME",
    "SINGLE_NODE_MULTI_WRITER",
];

async fn capabilities(service: &Service) -> Vec<&'static str> {
    let request = Request::new(ControllerGetCapabilitiesRequest {});
    let response = service.controller_get_capabilities(request).await.unwrap();
    let capabilities = response.into_inner().capabilities.into_iter();
    let types = capabilities.map(|capability| match capability.r#type {
        Some(Type::Rpc(rpc)) => rpc.r#type(),
        None => Rpc::Unknown,
    });
    let mut types: Vec<_> = types.map(|rpc| rpc.as_str_name()).collect();
    types.sort_unstable();
    types
}

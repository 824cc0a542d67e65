//! Which calls for one volume run in parallel, and which are aborted.

use diskplugin::model::tag;

use crate::common::memory_cloud;
use crate::service::kit::*;

const SHARERS: [&str; 4] = ["i-0", "i-1", "i-2", "i-3"];

/// A cloud with four nodes that support shared disks, and a shared volume.
async fn shared(flags: &[&str]) -> (Stage, String) {
    let nodes = SHARERS.map(|node| format!("{node}=cn-beijing-a=ecs.g8i.large"));
    let nodes = format!("--nodes={}", nodes.join(","));
    let flags = [nodes.as_str()].into_iter().chain(flags.iter().copied());
    let cloud = memory_cloud::start(flags);
    let stage = Stage::over(cloud, Stage::new(&[]).service).restarted();
    let new = CreateVolumeRequest {
        parameters: parameters(&[("type", "cloud_essd"), ("multiAttach", "true")]),
        volume_capabilities: vec![capability(Mode::MultiNodeMultiWriter, block().access_type)],
        ..new_volume("pvc-1")
    };
    let volume = stage.create(new).await.unwrap().volume_id;
    (stage, volume)
}

fn share(volume: &str, node: &str, mode: Mode, readonly: bool) -> ControllerPublishVolumeRequest {
    ControllerPublishVolumeRequest {
        volume_capability: Some(capability(mode, block().access_type)),
        volume_context: parameters(&[("multiAttach", "true")]),
        readonly,
        ..publication(volume, node)
    }
}

/// Publishes to all four nodes in parallel.
async fn publish_to_all(
    stage: &Stage,
    request: impl Fn(&str) -> ControllerPublishVolumeRequest,
) -> [RpcResult<HashMap<String, String>>; 4] {
    tokio::join!(
        stage.publish_as(request(SHARERS[0])),
        stage.publish_as(request(SHARERS[1])),
        stage.publish_as(request(SHARERS[2])),
        stage.publish_as(request(SHARERS[3])),
    )
    .into()
}

/// The nodes to which the only disk is attached, and those with read-only access according to its tags.
fn holders(stage: &Stage) -> (Vec<String>, Vec<String>) {
    let state = stage.cloud.state();
    let row = &state["disks"][0];
    let attachments = row["attachments"].as_array().unwrap().iter();
    let node = |attachment: &serde_json::Value| attachment["instance"].as_str().unwrap().to_owned();
    let tags = row["tags"].as_object().unwrap().keys();
    let readers = tags.filter_map(|key| key.strip_prefix(tag::READ_ONLY_ON));
    let (mut holders, mut readers): (Vec<_>, Vec<_>) =
        (attachments.map(node).collect(), readers.map(str::to_owned).collect());
    holders.sort_unstable();
    readers.sort_unstable();
    (holders, readers)
}

#[tokio::test(start_paused = true)]
async fn a_shared_volume_is_published_to_and_unpublished_from_four_nodes_in_parallel() {
    for flags in [
        &["--attach-delay=3s", "--detach-delay=3s"][..],
        &["--attach-delay=3s", "--detach-delay=3s", "--stale=2s"],
        &["--attach-delay=3s", "--answer-delay=500ms"],
    ] {
        let (stage, volume) = shared(flags).await;
        let begun = tokio::time::Instant::now();
        let request = |node: &str| share(&volume, node, Mode::MultiNodeMultiWriter, false);
        for published in publish_to_all(&stage, request).await {
            published.unwrap();
        }
        assert!(begun.elapsed() < Duration::from_secs(10));
        assert_eq!(stage.calls("AttachDisk"), 4);
        assert_eq!(holders(&stage).0, SHARERS);
        let (one, two, again) = tokio::join!(
            stage.unpublish(&volume, SHARERS[0]),
            stage.unpublish(&volume, SHARERS[1]),
            stage.unpublish(&volume, SHARERS[1]),
        );
        assert!(one.is_ok() && two.is_ok());
        assert_eq!(code(again), Code::Aborted);
        assert_eq!(holders(&stage).0, SHARERS[2..]);
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_read_only_publishes_are_all_tagged_and_a_writable_one_is_not() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let (stage, volume) = shared(&["--attach-delay=2s", stale]).await;
        let request = |node: &str| {
            let readonly = node != SHARERS[2];
            share(&volume, node, Mode::MultiNodeSingleWriter, readonly)
        };
        for published in publish_to_all(&stage, request).await {
            published.unwrap();
        }
        let readers = ["i-0", "i-1", "i-3"].map(str::to_owned).to_vec();
        assert_eq!(
            holders(&stage),
            (SHARERS.map(str::to_owned).to_vec(), readers),
            "{stale}"
        );
        // Unpublishing one reader removes only its own tag.
        stage.unpublish(&volume, SHARERS[0]).await.unwrap();
        assert_eq!(holders(&stage).1, ["i-1", "i-3"]);
    }
}

#[tokio::test(start_paused = true)]
async fn only_one_of_concurrent_writers_is_published_in_single_writer_mode() {
    for stale in ["--stale=0s", "--stale=2s", "--stale=8s"] {
        let (stage, volume) = shared(&["--attach-delay=2s", stale]).await;
        let request = |node: &str| share(&volume, node, Mode::MultiNodeSingleWriter, false);
        let published = publish_to_all(&stage, request).await;
        let failed: Vec<_> = published.iter().filter_map(|one| one.as_ref().err()).collect();
        assert_eq!(failed.len(), 3, "{stale}: {failed:?}");
        assert!(failed.iter().all(|status| status.code() == Code::Aborted));
        let writer = holders(&stage).0;
        assert_eq!(writer.len(), 1);
        for node in SHARERS.iter().filter(|node| !writer.contains(&(**node).to_owned())) {
            assert_error(stage.publish_as(request(node)).await, Code::FailedPrecondition, &[]);
        }
        // Until the writer is unpublished, no other node is published.
        let (left, early) = tokio::join!(
            stage.unpublish(&volume, &writer[0]),
            stage.publish_as(request(if writer[0] == "i-0" { "i-1" } else { "i-0" })),
        );
        assert!(left.is_ok());
        assert_eq!(code(early), Code::Aborted);
        assert!(holders(&stage).0.is_empty());
        stage.publish_as(request("i-3")).await.unwrap();
        assert_eq!(holders(&stage).0, ["i-3"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_single_node_volume_published_to_two_nodes_concurrently_is_attached_to_one() {
    // With and without multi-attach in the volume context.
    for context in [&[("multiAttach", "true")][..], &[]] {
        let (stage, volume) = shared(&["--attach-delay=2s", "--stale=2s"]).await;
        let request = |node: &str| ControllerPublishVolumeRequest {
            volume_context: parameters(context),
            ..share(&volume, node, Mode::SingleNodeWriter, false)
        };
        let published = publish_to_all(&stage, request).await;
        let count = published.iter().filter(|one| one.is_ok()).count();
        assert_eq!((count, holders(&stage).0.len()), (1, 1), "{published:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_volume_is_attached_and_detached_while_it_is_modified_and_expanded() {
    let stage = Stage::new(&["--attach-delay=2s", "--detach-delay=2s"]);
    let volume = stage.volume("pvc-1").await;
    stage.publish(&volume, NODE).await.unwrap();
    stage.configure(&json!({"delays": {"modify": "60s"}}));
    let moved = async {
        sleep(5).await;
        let begun = tokio::time::Instant::now();
        assert_eq!(
            code(stage.modify(&volume, &[("type", "cloud_auto")]).await),
            Code::Aborted
        );
        stage.unpublish(&volume, NODE).await.unwrap();
        stage.publish(&volume, OTHER).await.unwrap();
        begun.elapsed()
    };
    let (modified, took) = tokio::join!(stage.modify(&volume, &[("type", "cloud_auto")]), moved);
    // A task that lasts longer than 25 s is resumed by the next calls.
    assert_eq!(code(modified), Code::DeadlineExceeded);
    while let Err(status) = stage.modify(&volume, &[("type", "cloud_auto")]).await {
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
        sleep(5).await;
    }
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert_eq!(stage.zone_and_category().1, "cloud_auto");

    stage.configure(&json!({"delays": {"resize": "60s"}}));
    let moved = async {
        sleep(5).await;
        let begun = tokio::time::Instant::now();
        assert_eq!(code(stage.expand(&volume, 40).await), Code::Aborted);
        stage.unpublish(&volume, OTHER).await.unwrap();
        begun.elapsed()
    };
    let (grown, took) = tokio::join!(stage.expand(&volume, 30), moved);
    let mut grown = grown;
    while let Err(status) = &grown {
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
        sleep(5).await;
        grown = stage.expand(&volume, 30).await;
    }
    assert_eq!(grown.unwrap().0, 30);
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn deletion_and_detach_from_all_nodes_exclude_attach() {
    let stage = Stage::new(&["--attach-delay=2s", "--detach-delay=2s"]);
    let volume = stage.volume("pvc-1").await;
    let (published, deleted, everywhere) = tokio::join!(
        stage.publish(&volume, NODE),
        stage.delete(&volume),
        stage.unpublish(&volume, ""),
    );
    assert!(published.is_ok());
    assert_eq!((code(deleted), code(everywhere)), (Code::Aborted, Code::Aborted));
    let (everywhere, again, published, unpublished) = tokio::join!(
        stage.unpublish(&volume, ""),
        stage.unpublish(&volume, ""),
        stage.publish(&volume, OTHER),
        stage.unpublish(&volume, NODE),
    );
    assert!(everywhere.is_ok());
    assert_eq!(code(again), Code::Aborted);
    assert_eq!((code(published), code(unpublished)), (Code::Aborted, Code::Aborted));
    stage.configure(&json!({"latency": {"all": "2s"}}));
    let (deleted, published) = tokio::join!(stage.delete(&volume), stage.publish(&volume, NODE));
    assert!(deleted.is_ok() && stage.disks().is_empty());
    assert_eq!(code(published), Code::Aborted);
}

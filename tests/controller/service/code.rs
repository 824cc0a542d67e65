//! gRPC codes and messages of every outcome.

use crate::service::kit::*;

#[tokio::test(start_paused = true)]
async fn every_call_of_a_volume_life_cycle_is_idempotent() {
    let delays = ["--create-delay=1s", "--attach-delay=1s", "--detach-delay=1s"];
    let stage = Stage::new(&[&delays[..], &["--stale=2s", "--missing-is-error"]].concat());
    let volume = stage.volume("pvc-1").await;
    assert_eq!(stage.volume("pvc-1").await, volume);
    let serial = volume.trim_start_matches("d-");
    for _ in 0..2 {
        let context = stage.publish(&volume, NODE).await.unwrap();
        assert_eq!(context, parameters(&[("diskplugin.csi.example/serial", serial)]));
    }
    for _ in 0..2 {
        assert_eq!(stage.expand(&volume, 30).await.unwrap(), (30, true));
    }
    let snapshot = stage.snapshot("snap-1", &volume).await.unwrap();
    let again = stage.snapshot("snap-1", &volume).await.unwrap();
    assert_eq!(again.snapshot_id, snapshot.snapshot_id);
    assert_eq!((snapshot.size_bytes, &snapshot.source_volume_id), (30 << 30, &volume));
    assert!(snapshot.ready_to_use && snapshot.creation_time.is_some());
    let restore = restored("pvc-2", &snapshot.snapshot_id);
    for _ in 0..2 {
        let restored = stage.create(restore.clone()).await.unwrap();
        assert_eq!(restored.capacity_bytes, 30 << 30);
        assert_eq!(restored.content_source, restore.volume_content_source);
    }
    assert_eq!(stage.disks().len(), 2);
    for _ in 0..2 {
        stage.unpublish(&volume, NODE).await.unwrap();
    }
    for _ in 0..2 {
        stage.delete_snapshot(&snapshot.snapshot_id).await.unwrap();
        stage.delete(&volume).await.unwrap();
    }
    assert_eq!(stage.disks().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_name_in_use_is_already_exists_and_lists_the_differences() {
    let stage = Stage::new(&[]);
    let volume = stage.volume("pvc-1").await;
    for (other, difference) in [
        (sized("pvc-1", 40, 0), "size is 20 GiB"),
        (of_class("pvc-1", &[("type", "cloud_ssd")]), "wanted cloud_ssd"),
        (of_class("pvc-1", &[("zoneId", "cn-beijing-b")]), "wanted cn-beijing-b"),
    ] {
        assert_error(stage.create(other).await, Code::AlreadyExists, &[&volume, difference]);
    }
    stage.snapshot("snap", &volume).await.unwrap();
    let other = stage.volume("pvc-2").await;
    let outcome = stage.snapshot("snap", &other).await;
    assert_error(outcome, Code::AlreadyExists, &[&volume, &other]);
}

#[tokio::test(start_paused = true)]
async fn missing_resources_are_not_found_or_deleted() {
    let stage = Stage::new(&[]);
    let volume = stage.volume("pvc-1").await;
    stage.snapshot("canary", &volume).await.unwrap();
    for odd in ["d-none", "no id at all", "../d-1"] {
        let publish = proven(async || stage.publish(odd, NODE).await).await;
        assert_error(publish, Code::NotFound, &[odd]);
        let node = odd.replace("d-", "i-");
        let outcome = stage.publish(&volume, &node).await;
        let name = if odd == "d-none" { "NO_SUCH_NODE: " } else { "" };
        assert_error(outcome, Code::NotFound, &[name, &node]);
        let expand = proven(async || stage.expand(odd, 30).await).await;
        assert_error(expand, Code::NotFound, &[odd]);
        let snapshot = proven(async || stage.snapshot("snap", odd).await).await;
        assert_error(snapshot, Code::NotFound, &[odd]);
        let restore = restored("pvc-2", odd);
        let restored = proven(async || stage.create(restore.clone()).await).await;
        assert_error(restored, Code::NotFound, &[odd]);
        proven(async || stage.delete(odd).await).await.unwrap();
        proven(async || stage.delete_snapshot(odd).await).await.unwrap();
        proven(async || stage.unpublish(odd, NODE).await).await.unwrap();
        stage.unpublish(&volume, odd).await.unwrap();
    }
    assert_eq!((stage.disks(), stage.calls("CreateDisk")), (vec![volume], 1));
}

#[tokio::test(start_paused = true)]
async fn a_key_without_any_right_is_denied() {
    let stage = Stage::new(&[]);
    let volume = stage.volume("pvc-1").await;
    stage.configure(&json!({"denied": ["*"]}));
    let parts = ["ACCESS_DENIED: ", "Forbidden.RAM", "RAM policy"];
    assert_error(stage.publish(&volume, NODE).await, Code::PermissionDenied, &parts);
    // A disk of the name may exist: the nodes are known, but not even their system disks are visible.
    let created = stage.create(new_volume("pvc-2")).await;
    assert_error(
        created,
        Code::Unavailable,
        &[&["CREATION_UNRESOLVED: "], &parts[..]].concat(),
    );
    let listed = stage.list_volumes(ListVolumesRequest::default()).await;
    assert_error(
        listed,
        Code::Unavailable,
        &["EMPTY_RESPONSE: ", "disks of this cluster exist"],
    );
    let listed = stage.list_snapshots(ListSnapshotsRequest::default()).await;
    assert!(listed.unwrap().entries.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_block_volume_does_not_require_node_expansion() {
    let stage = Stage::new(&[]);
    let volume = stage.volume("pvc-1").await;
    let expanded = stage.expand_as(&volume, range(30, 0), block()).await;
    assert_eq!(expanded.unwrap(), (30, false));
}

#[tokio::test(start_paused = true)]
async fn listed_volumes_and_snapshots_have_their_published_nodes() {
    let stage = Stage::new(&[]);
    let (first, second) = (stage.volume("pvc-1").await, stage.volume("pvc-2").await);
    stage.publish(&second, NODE).await.unwrap();
    let request = |token: &str| ListVolumesRequest {
        max_entries: 1,
        starting_token: token.to_owned(),
    };
    let (mut seen, _) = all_pages(async |token: String| {
        let page = stage.list_volumes(request(&token)).await.unwrap();
        let entries = page.entries.into_iter().map(|entry| {
            let nodes = entry.status.unwrap().published_node_ids;
            (entry.volume.unwrap().volume_id, nodes)
        });
        (entries.collect(), page.next_token)
    })
    .await;
    let mut wanted = vec![(first.clone(), vec![]), (second, vec![NODE.to_owned()])];
    seen.sort();
    wanted.sort();
    assert_eq!(seen, wanted);
    let unknown = stage.list_volumes(request("not-ours")).await;
    assert_error(unknown, Code::Aborted, &["not-ours"]);
    stage.snapshot("snap", &first).await.unwrap();
    for (source, count) in [(first.as_str(), 1), ("d-none", 0), ("no id", 0), ("", 1)] {
        let request = ListSnapshotsRequest {
            source_volume_id: source.to_owned(),
            ..Default::default()
        };
        let page = stage.list_snapshots(request).await.unwrap();
        assert_eq!(
            (page.entries.len(), page.next_token.as_str()),
            (count, ""),
            "{source:?}"
        );
    }
}

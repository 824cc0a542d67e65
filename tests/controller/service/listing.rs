//! Pages of ListVolumes, ListSnapshots and ControllerListVolumeHealth.

use prost::Message;

use diskplugin::csi::proto::ListVolumesResponse;

use crate::common::ecs::create_disks;
use crate::service::kit::*;

/// Creates disks of this cluster, `apart` from each other.
async fn disks(stage: &Stage, count: usize, apart: Duration) -> Vec<String> {
    stage.configure(&json!({"rules": {"disk_quantity": 100_000}}));
    let ids = create_disks(&client(&stage.cloud), count, apart).await;
    sleep(10).await;
    ids
}

async fn delete(stage: &Stage, id: &str) {
    let id: DiskId = id.parse().unwrap();
    client(&stage.cloud).delete_disk(soon(), &id).await.unwrap();
}

async fn page(stage: &Stage, token: &str, max_entries: i32) -> ListVolumesResponse {
    let starting_token = token.to_owned();
    let request = ListVolumesRequest {
        max_entries,
        starting_token,
    };
    stage.list_volumes(request).await.unwrap()
}

fn ids(page: &ListVolumesResponse) -> Vec<String> {
    let volumes = page.entries.iter().map(|entry| entry.volume.as_ref());
    volumes.map(|volume| volume.unwrap().volume_id.clone()).collect()
}

/// The IDs on all pages, and the number of pages.
async fn all(stage: &Stage, max_entries: i32) -> (Vec<String>, usize) {
    all_pages(async |token: String| {
        let listed = page(stage, &token, max_entries).await;
        assert!(listed.encoded_len() <= 3 << 20, "{} bytes", listed.encoded_len());
        (ids(&listed), listed.next_token)
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn sixty_thousand_volumes_are_listed_in_messages_of_three_mib_and_read_once() {
    let stage = Stage::new(&[]);
    let made = disks(&stage, 60_000, Duration::ZERO).await;
    let service = stage.restarted();
    stage.cloud.clear_calls();
    let (seen, pages) = all(&service, 0).await;
    assert!((2..=4).contains(&pages), "{pages} pages");
    assert_eq!(seen.len(), made.len());
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), made.into_iter().collect());
    // After two calls the driver has detected that the listing by tags is truncated.
    assert_eq!(stage.calls("DescribeDisks"), 2 + 120);
    stage.cloud.clear_calls();
    let (seen, pages) = all(&service, 1000).await;
    assert_eq!((seen.len(), pages), (60_000, 60));
    assert_eq!(stage.calls("DescribeDisks"), 120);
}

#[tokio::test(start_paused = true)]
async fn pages_list_each_disk_once_even_if_created_in_the_same_second() {
    for apart in [Duration::ZERO, Duration::from_secs(1)] {
        let stage = Stage::new(&[]);
        let made = disks(&stage, 35, apart).await;
        stage.cloud.clear_calls();
        let (seen, pages) = all(&stage, 10).await;
        let distinct: BTreeSet<_> = seen.iter().cloned().collect();
        assert_eq!((pages, seen.len(), distinct), (4, 35, made.into_iter().collect()));
        assert_eq!(stage.calls("DescribeDisks"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn unchanged_volumes_are_listed_once_despite_concurrent_changes_and_restarts() {
    let stage = Stage::new(&[]);
    let made = disks(&stage, 30, Duration::from_secs(1)).await;
    let first = page(&stage, "", 10).await;
    assert_eq!(ids(&first), made[..10]);
    // The last item of the page, one before it and the first one after it.
    for n in [9, 3, 10] {
        delete(&stage, &made[n]).await;
    }
    let late = stage.volume("late").await;
    sleep(10).await;
    // The process that started the listing returns the list that it has read; another process returns the current
    // state.
    let second = page(&stage, &first.next_token, 10).await;
    assert_eq!(ids(&second), made[10..20]);
    let service = stage.restarted();
    let second = page(&service, &first.next_token, 10).await;
    assert_eq!(ids(&second), made[11..21]);
    let third = page(&service, &second.next_token, 100).await;
    assert_eq!(ids(&third)[..9], made[21..]);
    assert_eq!(ids(&third)[9..], [late]);
    assert_eq!(third.next_token, "");
    // A repeated page is identical, even after the end of the listing.
    let again = page(&service, &second.next_token, 100).await;
    assert_eq!(ids(&again), ids(&third));
}

#[tokio::test(start_paused = true)]
async fn two_clients_list_concurrently_and_an_expired_listing_is_read_again() {
    let stage = Stage::new(&[]);
    let made = disks(&stage, 40, Duration::from_secs(1)).await;
    let service = &stage;
    stage.cloud.clear_calls();
    let (one, two) = (page(service, "", 10).await, page(service, "", 15).await);
    let rest = page(service, &one.next_token, 100).await;
    assert_eq!(ids(&rest), made[10..]);
    let rest = page(service, &two.next_token, 100).await;
    assert_eq!(ids(&rest), made[15..]);
    assert_eq!(stage.calls("DescribeDisks"), 2);
    let one = page(service, "", 10).await;
    sleep(3600).await;
    let rest = page(service, &one.next_token, 100).await;
    assert_eq!(ids(&rest), made[10..]);
    assert_eq!(stage.calls("DescribeDisks"), 4);
}

#[tokio::test(start_paused = true)]
async fn snapshots_and_health_are_read_once_for_all_pages() {
    let stage = Stage::new(&[]);
    let volume = stage.volume("pvc-1").await;
    let mut made = Vec::new();
    for n in 0..25 {
        let name = format!("snap-{n}");
        made.push(stage.snapshot(&name, &volume).await.unwrap().snapshot_id);
    }
    sleep(10).await;
    for source in ["", &volume] {
        stage.cloud.clear_calls();
        let (seen, _) = all_pages(async |starting_token| {
            let request = ListSnapshotsRequest {
                max_entries: 10,
                starting_token,
                source_volume_id: source.to_owned(),
                ..Default::default()
            };
            let page = stage.list_snapshots(request).await.unwrap();
            let rows = page.entries.into_iter();
            let ids = rows.map(|entry| entry.snapshot.unwrap().snapshot_id);
            (ids.collect(), page.next_token)
        })
        .await;
        assert_eq!(seen.len(), made.len(), "{source:?}");
        let seen: BTreeSet<_> = seen.into_iter().collect();
        assert_eq!(seen, made.iter().cloned().collect(), "{source:?}");
        assert_eq!(stage.calls("DescribeSnapshots"), 1, "{source:?}");
    }
    let made = disks(&stage, 250, Duration::ZERO).await;
    let unhealthy: BTreeSet<_> = made.into_iter().take(5).collect();
    let health = unhealthy.iter().map(|id| (id.clone(), json!({"health": "Warning"})));
    let health: serde_json::Map<_, _> = health.collect();
    stage.configure(&json!({ "disk_health": health }));
    stage.cloud.clear_calls();
    let (seen, _) = all_pages(async |starting_token| {
        let request = ControllerListVolumeHealthRequest {
            max_entries: 2,
            starting_token,
            ..Default::default()
        };
        let response = stage.service.controller_list_volume_health(Request::new(request));
        let page = response.await.unwrap().into_inner();
        let ids = page.entries.into_iter().map(|entry| entry.volume_id);
        (ids.collect(), page.next_token)
    })
    .await;
    assert_eq!(seen.len(), 5);
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), unhealthy);
    assert_eq!(stage.calls("DescribeDisksFullStatus"), 3);
}

#[tokio::test(start_paused = true)]
async fn an_empty_listing_does_not_prove_that_volumes_are_deleted() {
    let stage = Stage::new(&[]);
    let volume = stage.volume("pvc-1").await;
    sleep(10).await;
    stage.configure(&json!({"denied": ["DescribeDisks"]}));
    let published = |stage: Stage| Stage::over(stage.cloud, stage.service.with_published_nodes(true));
    for process in [stage.clone(), published(stage.clone()), published(stage.restarted())] {
        let refused = process.list_volumes(ListVolumesRequest::default()).await;
        assert_error(refused, Code::Unavailable, &["EMPTY_RESPONSE: "]);
    }
    let health = ControllerListVolumeHealthRequest::default();
    let health = Request::new(health);
    let refused = stage.service.controller_list_volume_health(health).await;
    assert_eq!(refused.unwrap_err().code(), Code::Unavailable);
    stage.configure(&json!({"denied": []}));
    assert_eq!(all(&stage, 0).await.0, std::slice::from_ref(&volume));
    stage.delete(&volume).await.unwrap();
    assert!(all(&stage, 0).await.0.is_empty());
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
        let volumes = stage.list_volumes(request).await;
        let request = ListSnapshotsRequest {
            max_entries: most,
            starting_token: token.to_owned(),
            ..Default::default()
        };
        let snapshots = stage.list_snapshots(request).await;
        (volumes, snapshots)
    };
    let long = "9".repeat(100);
    for token in ["-1@", "99@", "@", "-1", "99", "/", "x/y", "2027-01-01", "\u{0}", &long] {
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

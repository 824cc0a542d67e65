//! Resizing disks.

use crate::contract::world::*;

over_every_connection!(
    an_available_disk_is_resized_offline,
    an_attached_disk_is_resized_online,
    a_repeated_resize_has_one_effect_and_its_token_with_another_size_is_a_mismatch,
    a_disk_neither_shrinks_nor_grows_beyond_its_category,
    resizing_a_missing_disk_is_not_found,
    the_resize_mode_must_match_the_state,
    a_resize_is_rejected_while_another_one_is_processed,
);

pub(crate) async fn an_available_disk_is_resized_offline(ecs: &Client, world: &World) {
    world.configure(json!({"delays": {"resize": "2s"}}));
    let disk = create_essd(ecs, "free").await;
    let request = resize_to(&disk, 30, ResizeMode::Offline);
    resize(ecs, &request).await.unwrap();
    assert_eq!(described(ecs, &disk).await.unwrap().size, Gib(20));
    world.pass(2);
    assert_eq!(described(ecs, &disk).await.unwrap().size, Gib(30));
}

pub(crate) async fn an_attached_disk_is_resized_online(ecs: &Client, _: &World) {
    let disk = create_essd(ecs, "held").await;
    attach(ecs, &disk, "i-one").await.unwrap();
    let request = resize_to(&disk, 30, ResizeMode::Online);
    resize(ecs, &request).await.unwrap();
    assert_eq!(described(ecs, &disk).await.unwrap().size, Gib(30));
}

pub(crate) async fn a_repeated_resize_has_one_effect_and_its_token_with_another_size_is_a_mismatch(
    ecs: &Client,
    _: &World,
) {
    let disk = create_essd(ecs, "once").await;
    let request = resize_to(&disk, 30, ResizeMode::Offline);
    resize(ecs, &request).await.unwrap();
    // Without the token, a resize from 30 to 30 is rejected.
    resize(ecs, &request).await.unwrap();
    assert_eq!(described(ecs, &disk).await.unwrap().size, Gib(30));
    let other = ResizeDisk {
        size: Gib(40),
        ..request
    };
    expect_error(resize(ecs, &other).await, Kind::TokenMismatch);
    assert_eq!(described(ecs, &disk).await.unwrap().size, Gib(30));
}

pub(crate) async fn a_disk_neither_shrinks_nor_grows_beyond_its_category(ecs: &Client, world: &World) {
    let disk = create_essd(ecs, "bounded").await;
    for alternatives in ["first", "last"] {
        world.configure(json!({"rules": {"alternatives": alternatives}}));
        for size in [19, 20, 65537] {
            let request = resize_to(&disk, size, ResizeMode::Offline);
            expect_error(resize(ecs, &request).await, Kind::OutOfRange);
        }
    }
    assert_eq!(described(ecs, &disk).await.unwrap().size, Gib(20));
}

pub(crate) async fn resizing_a_missing_disk_is_not_found(ecs: &Client, _: &World) {
    let request = resize_to(&"d-unknown".parse().unwrap(), 30, ResizeMode::Offline);
    assert_rejected(resize(ecs, &request).await, Kind::NotFound, "InvalidDiskId.NotFound");
}

pub(crate) async fn the_resize_mode_must_match_the_state(ecs: &Client, world: &World) {
    let disk = create_essd(ecs, "stopped").await;
    let request = resize_to(&disk, 30, ResizeMode::Online);
    expect_error(resize(ecs, &request).await, Kind::Conflict);
    world.configure(json!({"delays": {"attach": "2s"}}));
    attach(ecs, &disk, "i-one").await.unwrap();
    let request = resize_to(&disk, 30, ResizeMode::Offline);
    expect_error(resize(ecs, &request).await, Kind::Conflict);
}

pub(crate) async fn a_resize_is_rejected_while_another_one_is_processed(ecs: &Client, world: &World) {
    world.configure(json!({"delays": {"resize": "30s"}}));
    let disk = create_essd(ecs, "twice").await;
    let request = resize_to(&disk, 30, ResizeMode::Offline);
    resize(ecs, &request).await.unwrap();
    // Another order on the disk, not an earlier call with the token: no implementation repeats the call.
    let more = resize_to(&disk, 40, ResizeMode::Offline);
    assert_rejected(resize(ecs, &more).await, Kind::Conflict, "LastOrderProcessing");
    world.pass(30);
    resize(ecs, &more).await.unwrap();
    assert_eq!(described(ecs, &disk).await.unwrap().size, Gib(30));
    world.pass(30);
    assert_eq!(described(ecs, &disk).await.unwrap().size, Gib(40));
}

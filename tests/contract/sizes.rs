//! Disks grow.

use diskplugin::cloud::{Ecs, Kind, ResizeDisk, ResizeMode};
use diskplugin::model::{ClientToken, DiskId, Gib};
use serde_json::json;

use crate::world::{World, made, onto, refused, seen, soon};

on_every_face!(
    a_free_disk_grows_offline,
    a_held_disk_grows_online,
    a_repeated_resize_has_one_effect,
    a_resize_token_of_another_size_is_a_mismatch,
    a_disk_neither_shrinks_nor_grows_beyond_its_category,
    what_is_not_there_does_not_grow,
    the_mode_must_fit_the_state,
    an_order_is_processed_before_another_is_taken,
);

fn to(disk: &DiskId, size: u32, mode: ResizeMode) -> ResizeDisk {
    ResizeDisk {
        disk: disk.clone(),
        size: Gib(size),
        mode,
        token: ClientToken::derive("ResizeDisk", [disk.as_str(), &size.to_string()]),
    }
}

pub(crate) async fn a_free_disk_grows_offline(ecs: &dyn Ecs, world: &World) {
    world.configure(json!({"delays": {"resize": "2s"}}));
    let disk = made(ecs, "free").await;
    let request = to(&disk, 30, ResizeMode::Offline);
    ecs.resize_disk(soon(), &request).await.unwrap();
    assert_eq!(seen(ecs, &disk).await.unwrap().size, Gib(20));
    world.pass(2);
    assert_eq!(seen(ecs, &disk).await.unwrap().size, Gib(30));
}

pub(crate) async fn a_held_disk_grows_online(ecs: &dyn Ecs, _: &World) {
    let disk = made(ecs, "held").await;
    ecs.attach_disk(soon(), &onto(&disk, "i-one"))
        .await
        .unwrap();
    let request = to(&disk, 30, ResizeMode::Online);
    ecs.resize_disk(soon(), &request).await.unwrap();
    assert_eq!(seen(ecs, &disk).await.unwrap().size, Gib(30));
}

pub(crate) async fn a_repeated_resize_has_one_effect(ecs: &dyn Ecs, _: &World) {
    let disk = made(ecs, "once").await;
    let request = to(&disk, 30, ResizeMode::Offline);
    ecs.resize_disk(soon(), &request).await.unwrap();
    // Without the token, growing from 30 to 30 is refused.
    ecs.resize_disk(soon(), &request).await.unwrap();
    assert_eq!(seen(ecs, &disk).await.unwrap().size, Gib(30));
}

pub(crate) async fn a_resize_token_of_another_size_is_a_mismatch(ecs: &dyn Ecs, _: &World) {
    let disk = made(ecs, "other").await;
    let request = to(&disk, 30, ResizeMode::Offline);
    ecs.resize_disk(soon(), &request).await.unwrap();
    let other = ResizeDisk {
        size: Gib(40),
        ..request
    };
    refused(ecs.resize_disk(soon(), &other).await, Kind::TokenMismatch);
    assert_eq!(seen(ecs, &disk).await.unwrap().size, Gib(30));
}

pub(crate) async fn a_disk_neither_shrinks_nor_grows_beyond_its_category(
    ecs: &dyn Ecs,
    world: &World,
) {
    let disk = made(ecs, "bounded").await;
    for alternatives in ["first", "last"] {
        world.configure(json!({"rules": {"alternatives": alternatives}}));
        for size in [19, 20, 65537] {
            let request = to(&disk, size, ResizeMode::Offline);
            refused(ecs.resize_disk(soon(), &request).await, Kind::OutOfRange);
        }
    }
    assert_eq!(seen(ecs, &disk).await.unwrap().size, Gib(20));
}

pub(crate) async fn what_is_not_there_does_not_grow(ecs: &dyn Ecs, _: &World) {
    let request = to(&"d-unknown".parse().unwrap(), 30, ResizeMode::Offline);
    let error = refused(ecs.resize_disk(soon(), &request).await, Kind::NotFound);
    assert_eq!(error.code(), Some("InvalidDiskId.NotFound"));
}

pub(crate) async fn the_mode_must_fit_the_state(ecs: &dyn Ecs, world: &World) {
    let disk = made(ecs, "stopped").await;
    let request = to(&disk, 30, ResizeMode::Online);
    refused(ecs.resize_disk(soon(), &request).await, Kind::Conflict);
    world.configure(json!({"delays": {"attach": "2s"}}));
    ecs.attach_disk(soon(), &onto(&disk, "i-one"))
        .await
        .unwrap();
    let request = to(&disk, 30, ResizeMode::Offline);
    refused(ecs.resize_disk(soon(), &request).await, Kind::Conflict);
}

pub(crate) async fn an_order_is_processed_before_another_is_taken(ecs: &dyn Ecs, world: &World) {
    world.configure(json!({"delays": {"resize": "30s"}}));
    let disk = made(ecs, "twice").await;
    let request = to(&disk, 30, ResizeMode::Offline);
    ecs.resize_disk(soon(), &request).await.unwrap();
    // The client repeats it for as long as it may.
    let moment = diskplugin::base::Deadline::after(std::time::Duration::from_millis(100));
    let more = to(&disk, 40, ResizeMode::Offline);
    let error = refused(ecs.resize_disk(moment, &more).await, Kind::InFlight);
    assert_eq!(error.code(), Some("LastOrderProcessing"));
    world.pass(30);
    ecs.resize_disk(soon(), &more).await.unwrap();
    assert_eq!(seen(ecs, &disk).await.unwrap().size, Gib(30));
    world.pass(30);
    assert_eq!(seen(ecs, &disk).await.unwrap().size, Gib(40));
}

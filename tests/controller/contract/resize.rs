//! Resizing disks.

use crate::contract::world::*;

contract!(a_resize_is_repeated_and_another_size_is_a_mismatch, |ecs, _| {
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
});

contract!(a_disk_neither_shrinks_nor_grows_beyond_its_category, |ecs, world| {
    let disk = create_essd(ecs, "bounded").await;
    for alternatives in ["first", "last"] {
        world.configure(json!({"rules": {"alternatives": alternatives}}));
        for size in [19, 20, 65537] {
            let request = resize_to(&disk, size, ResizeMode::Offline);
            expect_error(resize(ecs, &request).await, Kind::OutOfRange);
        }
    }
    assert_eq!(described(ecs, &disk).await.unwrap().size, Gib(20));
});

contract!(the_resize_mode_must_match_the_state, |ecs, world| {
    let disk = create_essd(ecs, "stopped").await;
    let [online, offline] = [ResizeMode::Online, ResizeMode::Offline].map(|mode| resize_to(&disk, 30, mode));
    expect_error(resize(ecs, &online).await, Kind::Conflict);
    world.configure(json!({"delays": {"attach": "2s"}}));
    attach(ecs, &disk, "i-one").await.unwrap();
    expect_error(resize(ecs, &offline).await, Kind::Conflict);
    world.pass(2);
    resize(ecs, &online).await.unwrap();
    assert_eq!(described(ecs, &disk).await.unwrap().size, Gib(30));
});

contract!(a_resize_is_rejected_while_another_one_is_processed, |ecs, world| {
    world.configure(json!({"delays": {"resize": "30s"}}));
    let disk = create_essd(ecs, "twice").await;
    let request = resize_to(&disk, 30, ResizeMode::Offline);
    resize(ecs, &request).await.unwrap();
    // Another order on the disk, not an earlier call with the token: no implementation repeats the call.
    let more = resize_to(&disk, 40, ResizeMode::Offline);
    assert_rejected(resize(ecs, &more).await, Kind::Conflict, "LastOrderProcessing");
    assert_eq!(described(ecs, &disk).await.unwrap().size, Gib(20));
    world.pass(30);
    resize(ecs, &more).await.unwrap();
    assert_eq!(described(ecs, &disk).await.unwrap().size, Gib(30));
    world.pass(30);
    assert_eq!(described(ecs, &disk).await.unwrap().size, Gib(40));
});

//! Attaching and detaching disks.

use crate::contract::world::*;

contract!(an_attached_disk_has_its_instance_until_it_is_detached, |ecs, world| {
    world.configure(json!({"delays": {"attach": "2s", "detach": "2s"}}));
    let disk = create_essd(ecs, "held").await;
    attach(ecs, &disk, "i-one").await.unwrap();
    let row = described(ecs, &disk).await.unwrap();
    assert_eq!((row.status, row.attachments), (DiskStatus::Attaching, vec![]));
    world.pass(2);
    let row = described(ecs, &disk).await.unwrap();
    assert!(row.is_in_use_on(&node("i-one")), "{row}");
    assert_eq!(row.attachments.len(), 1);
    detach(ecs, &disk, "i-one").await.unwrap();
    let row = described(ecs, &disk).await.unwrap();
    assert_eq!(row.status, DiskStatus::Detaching);
    assert!(row.is_attached_to(&node("i-one")));
    world.pass(2);
    assert!(described(ecs, &disk).await.unwrap().is_free());
});

contract!(disks_are_listed_by_instance, |ecs, _| {
    let mine = create_essd(ecs, "mine").await;
    let other = create_essd(ecs, "other").await;
    create_essd(ecs, "free").await;
    attach(ecs, &mine, "i-one").await.unwrap();
    attach(ecs, &other, "i-two").await.unwrap();
    let query = DescribeDisks {
        instance: Some(node("i-one")),
        ..DescribeDisks::default()
    };
    assert_eq!(listed(ecs, &query).await, [mine]);
});

contract!(a_disk_in_use_elsewhere_is_a_conflict, |ecs, world| {
    let disk = create_essd(ecs, "theirs").await;
    attach(ecs, &disk, "i-one").await.unwrap();
    for alternatives in ["first", "last"] {
        world.configure(json!({"rules": {"alternatives": alternatives}}));
        expect_error(attach(ecs, &disk, "i-two").await, Kind::Conflict);
        expect_error(detach(ecs, &disk, "i-two").await, Kind::Conflict);
    }
    let row = described(ecs, &disk).await.unwrap();
    assert!(row.is_in_use_on(&node("i-one")), "{row}");
});

contract!(a_second_attach_of_a_disk_is_rejected, |ecs, world| {
    for alternatives in ["first", "last"] {
        world.configure(json!({
            "rules": {"alternatives": alternatives}, "delays": {"attach": "2s"}
        }));
        let disk = create_essd(ecs, alternatives).await;
        attach(ecs, &disk, "i-one").await.unwrap();
        for _ in 0..2 {
            expect_error(attach(ecs, &disk, "i-one").await, Kind::Conflict);
            world.pass(2);
        }
    }
});

contract!(one_instance_runs_one_attach_or_detach_at_a_time, |ecs, world| {
    for alternatives in ["first", "last"] {
        world.configure(json!({
            "rules": {"alternatives": alternatives}, "delays": {"attach": "2s", "detach": "2s"}
        }));
        let one = create_essd(ecs, &format!("one-{alternatives}")).await;
        let two = create_essd(ecs, &format!("two-{alternatives}")).await;
        attach(ecs, &one, "i-one").await.unwrap();
        expect_error(attach(ecs, &two, "i-one").await, Kind::Conflict);
        world.pass(2);
        attach(ecs, &two, "i-one").await.unwrap();
        world.pass(2);
        detach(ecs, &one, "i-one").await.unwrap();
        expect_error(detach(ecs, &two, "i-one").await, Kind::Conflict);
        world.pass(2);
        detach(ecs, &two, "i-one").await.unwrap();
        world.pass(2);
    }
});

contract!(a_permitted_instance_attaches_in_parallel, |ecs, world| {
    world.configure(json!({"rules": {"serial_attach_detach": false}, "delays": {"attach": "2s"}}));
    let (one, two) = (create_essd(ecs, "one").await, create_essd(ecs, "two").await);
    attach(ecs, &one, "i-one").await.unwrap();
    attach(ecs, &two, "i-one").await.unwrap();
    world.pass(2);
    for disk in [one, two] {
        assert!(described(ecs, &disk).await.unwrap().is_in_use_on(&node("i-one")));
    }
});

contract!(detaching_a_detached_disk_is_a_conflict_or_not_found, |ecs, world| {
    let disk = create_essd(ecs, "free").await;
    for seed in 0..8 {
        world.configure(json!({"rules": {"alternatives": "seeded"}}));
        let error = detach(ecs, &disk, "i-one").await;
        let kind = error.unwrap_err().kind();
        assert!(matches!(kind, Kind::Conflict | Kind::NotFound), "try {seed}: {kind:?}");
    }
});

contract!(a_disk_of_another_zone_is_rejected, |ecs, _| {
    let far = essd_with("far", |disk| disk.zone = Some(zone(FAR_ZONE)));
    let disk = create(ecs, &far).await.unwrap();
    let rejected = attach(ecs, &disk, "i-one").await;
    assert_rejected(rejected, Kind::Precondition, "ResourcesNotInSameZone");
    attach(ecs, &disk, "i-far").await.unwrap();
});

contract!(an_instance_at_its_attach_limit_is_a_quota_error, |ecs, world| {
    // The system disk counts too.
    world.configure(json!({"rules": {"disk_quantity": 2}}));
    let (one, two) = (create_essd(ecs, "one").await, create_essd(ecs, "two").await);
    attach(ecs, &one, "i-one").await.unwrap();
    assert_rejected(
        attach(ecs, &two, "i-one").await,
        Kind::Quota,
        "InstanceDiskLimitExceeded",
    );
    assert!(described(ecs, &two).await.unwrap().is_free());
});

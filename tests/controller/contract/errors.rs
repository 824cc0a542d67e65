//! Details of errors.

use diskplugin::base::error_chain;

use crate::contract::attempts::LOST;
use crate::contract::world::*;

contract!(an_error_has_action_code_status_message_and_request_id, |ecs, world| {
    let disk = "d-unknown".parse().unwrap();
    let error = expect_error(attach(ecs, &disk, "i-one").await, Kind::NotFound);
    assert_eq!(error.action(), "AttachDisk");
    assert_eq!(error.code(), Some("InvalidDiskId.NotFound"));
    assert_eq!(error.status(), Some(404));
    assert!(error.message().is_some_and(|message| !message.is_empty()));
    let calls = world.cloud.calls();
    assert_eq!(error.request_id(), Some(calls[0].request_id.as_str()));
    let text = error.to_string();
    assert!(!text.contains("attempts"), "{text}");
    for part in ["AttachDisk", "InvalidDiskId.NotFound", &calls[0].request_id] {
        assert!(text.contains(part), "{text}");
    }
});

contract!(an_error_without_a_message_keeps_its_kind, |ecs, world| {
    world.configure(json!({"faults": [{"action": "AttachDisk", "kind": "null-message"}]}));
    let disk = "d-unknown".parse().unwrap();
    let error = expect_error(attach(ecs, &disk, "i-one").await, Kind::NotFound);
    assert_eq!(error.message(), None);
    assert!(error.request_id().is_some());
});

contract!(without_permission_a_write_fails_and_a_list_is_empty, |ecs, world| {
    create_essd(ecs, "present").await;
    world.configure(json!({"denied": ["CreateDisk", "DescribeDisks"]}));
    assert_rejected(create(ecs, &essd("no")).await, Kind::Denied, "Forbidden.RAM");
    assert_eq!(listed(ecs, &DescribeDisks::default()).await, []);
});

contract!(a_throttling_error_has_the_time_to_wait, |ecs, world| {
    world.configure(json!({"throttle": {"actions": {"DescribeDisks": 0}}}));
    // A deadline before the end of the wait, so that the error is returned.
    let deadline = Deadline::after(Duration::from_secs(5));
    let all = DescribeDisks::default();
    let error = expect_error(ecs.describe_disks(deadline, &all).await, Kind::Throttled);
    assert_eq!(error.retry_after(), Some(Duration::from_millis(59_750)));
    assert_eq!(world.calls("DescribeDisks"), 1);
});

contract!(a_lost_attach_or_detach_is_not_repeated, |ecs, world| {
    let (options, disk) = (Options::default(), create_essd(ecs, "held").await);
    for fault in LOST.into_iter().chain(["reset-before"]) {
        world.cloud.clear_calls();
        world.configure(json!({"faults": [
            {"action": "AttachDisk", "kind": fault}, {"action": "DetachDisk", "kind": fault}
        ]}));
        let error = expect_error(attach(ecs, &disk, "i-one").await, Kind::Ambiguous);
        assert_eq!(
            (error.action(), world.calls("AttachDisk")),
            ("AttachDisk", 1),
            "{fault}"
        );
        let text = format!("{} {error:?}", error_chain(&error));
        for secret in [
            options.access_key_id.expose(),
            options.access_key_secret.expose(),
            "Signature=",
        ] {
            assert!(!text.contains(secret), "{text}");
        }
        let row = described(ecs, &disk).await.unwrap();
        let is_attached = row.is_in_use_on(&node("i-one"));
        assert_eq!(is_attached, fault != "reset-before", "{fault}: {row}");
        // The disk is attached now, so that the detach can take effect.
        let _ = attach(ecs, &disk, "i-one").await;
        expect_error(detach(ecs, &disk, "i-one").await, Kind::Ambiguous);
        assert_eq!(world.calls("DetachDisk"), 1, "{fault}");
        let _ = detach(ecs, &disk, "i-one").await;
        assert!(described(ecs, &disk).await.unwrap().is_free());
    }
    // The response to a rejected call.
    let disk = "d-unknown".parse().unwrap();
    for fault in ["truncated", "html"] {
        world.configure(json!({"faults": [{"action": "AttachDisk", "kind": fault}]}));
        expect_error(attach(ecs, &disk, "i-one").await, Kind::Ambiguous);
    }
});

contract!(calls_for_unknown_resources_are_not_found, |ecs, _| {
    let (disk, unknown) = (create_essd(ecs, "known").await, "d-unknown".parse().unwrap());
    let burst = ModifyDiskAttribute {
        disk: unknown,
        attribute: DiskAttribute::Bursting(true),
    };
    let unknown = &burst.disk;
    let (missing_disk, missing_instance) = ("InvalidDiskId.NotFound", "InvalidInstanceId.NotFound");
    for (outcome, code) in [
        (attach(ecs, unknown, "i-one").await, missing_disk),
        (detach(ecs, unknown, "i-one").await, missing_disk),
        (attach(ecs, &disk, "i-unknown").await, missing_instance),
        (detach(ecs, &disk, "i-unknown").await, missing_instance),
        (
            resize(ecs, &resize_to(unknown, 30, ResizeMode::Offline)).await,
            missing_disk,
        ),
        (ecs.modify_disk_attribute(deadline(), &burst).await, missing_disk),
        (
            snapshot(ecs, &snapshot_of(unknown, "one")).await.map(drop),
            missing_disk,
        ),
        (modify(ecs, &to_auto(unknown)).await.map(drop), missing_disk),
    ] {
        assert_rejected(outcome, Kind::NotFound, code);
    }
    let query = DescribeTasks::Disk(burst.disk);
    let page = ecs.describe_tasks(deadline(), &query).await.unwrap();
    assert!(page.rows.is_empty());
});

contract!(deleting_an_unknown_resource_is_success_or_not_found, |ecs, world| {
    let delete = async || {
        let group = ecs
            .delete_snapshot_group(deadline(), &"ssg-unknown".parse().unwrap())
            .await;
        [
            ecs.delete_disk(deadline(), &"d-unknown".parse().unwrap()).await,
            ecs.delete_snapshot(deadline(), &"s-unknown".parse().unwrap()).await,
            group.map(|kept| assert_eq!(kept, [])),
        ]
    };
    for outcome in delete().await {
        outcome.unwrap();
    }
    world.configure(json!({"rules": {"missing_is_error": true}}));
    for (outcome, resource) in delete().await.into_iter().zip(["Disk", "Snapshot", "SnapshotGroup"]) {
        assert_rejected(outcome, Kind::NotFound, &format!("Invalid{resource}Id.NotFound"));
    }
});

contract!(no_call_is_made_after_the_deadline, |ecs, world| {
    let over = Deadline::after(Duration::ZERO);
    let error = expect_error(ecs.create_disk(over, &essd("late")).await, Kind::Deadline);
    assert_eq!(error.action(), "CreateDisk");
    assert_eq!(world.calls("CreateDisk"), 0);
});

contract!(the_fault_no_rows_affects_only_reads_and_ends, |ecs, world| {
    let disk = create_essd(ecs, "present").await;
    world.configure(json!({"faults": [{"action": "*", "for": "45s", "kind": "no-rows"}]}));
    assert_eq!(described(ecs, &disk).await, None);
    let other = create_essd(ecs, "other").await;
    world.pass(44);
    assert_eq!(described(ecs, &other).await, None);
    world.pass(1);
    assert!(described(ecs, &disk).await.is_some());
    assert!(described(ecs, &other).await.is_some());
});

contract!(a_hung_call_takes_effect_and_lasts_until_its_deadline, |ecs, world| {
    world.configure(json!({"faults": [{"action": "CreateDisk", "times": 9, "kind": "hang"}]}));
    let time = Duration::from_secs(1);
    let start = tokio::time::Instant::now();
    let hung = ecs.create_disk(Deadline::after(time), &essd("hung")).await;
    expect_error(hung, Kind::Deadline);
    assert!(start.elapsed() >= time && start.elapsed() < time * 4);
    assert_eq!(world.disks(), 1);
});

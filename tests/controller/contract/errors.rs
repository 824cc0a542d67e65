//! Details of errors.

use crate::contract::world::*;

over_every_connection!(
    an_error_has_action_code_status_message_and_request_id,
    an_error_without_a_message_keeps_its_kind,
    a_write_without_permission_is_denied_and_a_list_is_empty,
    a_throttling_error_has_the_time_to_wait,
    a_lost_or_unreadable_response_to_an_attach_has_an_unknown_outcome,
    no_call_is_made_after_the_deadline,
    the_fault_no_rows_affects_only_reads_and_ends,
    a_call_that_hangs_takes_effect_and_lasts_until_its_deadline,
);

pub(crate) async fn an_error_has_action_code_status_message_and_request_id(ecs: &Client, world: &World) {
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
}

pub(crate) async fn an_error_without_a_message_keeps_its_kind(ecs: &Client, world: &World) {
    world.configure(json!({"faults": [{"action": "AttachDisk", "kind": "null-message"}]}));
    let disk = "d-unknown".parse().unwrap();
    let error = expect_error(attach(ecs, &disk, "i-one").await, Kind::NotFound);
    assert_eq!(error.message(), None);
    assert!(error.request_id().is_some());
}

pub(crate) async fn a_write_without_permission_is_denied_and_a_list_is_empty(ecs: &Client, world: &World) {
    create_essd(ecs, "present").await;
    world.configure(json!({"denied": ["CreateDisk", "DescribeDisks"]}));
    assert_rejected(create(ecs, &essd("no")).await, Kind::Denied, "Forbidden.RAM");
    assert_eq!(listed(ecs, &DescribeDisks::default()).await, []);
}

pub(crate) async fn a_throttling_error_has_the_time_to_wait(ecs: &Client, world: &World) {
    world.configure(json!({"throttle": {"actions": {"DescribeDisks": 0}}}));
    // A deadline before the end of the wait, so that the error is returned.
    let deadline = Deadline::after(Duration::from_secs(5));
    let all = DescribeDisks::default();
    let error = expect_error(ecs.describe_disks(deadline, &all).await, Kind::Throttled);
    assert_eq!(error.retry_after(), Some(Duration::from_millis(59_750)));
    assert_eq!(world.calls("DescribeDisks"), 1);
}

pub(crate) async fn a_lost_or_unreadable_response_to_an_attach_has_an_unknown_outcome(ecs: &Client, world: &World) {
    for fault in ["reset-after", "truncated", "empty", "html"] {
        let disk = create_essd(ecs, fault).await;
        world.configure(json!({"faults": [{"action": "AttachDisk", "kind": fault}]}));
        world.cloud.clear_calls();
        let error = expect_error(attach(ecs, &disk, "i-one").await, Kind::Ambiguous);
        assert_eq!(error.action(), "AttachDisk", "{fault}");
        assert_eq!(world.calls("AttachDisk"), 1, "{fault} is not repeated");
        let row = described(ecs, &disk).await.unwrap();
        assert!(row.is_in_use_on(&node("i-one")), "{fault}: {row}");
    }
    // The response to a rejected call.
    let disk = "d-unknown".parse().unwrap();
    for fault in ["truncated", "html"] {
        world.configure(json!({"faults": [{"action": "AttachDisk", "kind": fault}]}));
        expect_error(attach(ecs, &disk, "i-one").await, Kind::Ambiguous);
    }
}

pub(crate) async fn no_call_is_made_after_the_deadline(ecs: &Client, world: &World) {
    let over = Deadline::after(Duration::ZERO);
    let error = expect_error(ecs.create_disk(over, &essd("late")).await, Kind::Deadline);
    assert_eq!(error.action(), "CreateDisk");
    assert_eq!(world.calls("CreateDisk"), 0);
}

pub(crate) async fn the_fault_no_rows_affects_only_reads_and_ends(ecs: &Client, world: &World) {
    let disk = create_essd(ecs, "present").await;
    world.configure(json!({"faults": [{"action": "*", "for": "45s", "kind": "no-rows"}]}));
    assert_eq!(described(ecs, &disk).await, None);
    let other = create_essd(ecs, "other").await;
    world.pass(44);
    assert_eq!(described(ecs, &other).await, None);
    world.pass(1);
    assert!(described(ecs, &disk).await.is_some());
    assert!(described(ecs, &other).await.is_some());
}

pub(crate) async fn a_call_that_hangs_takes_effect_and_lasts_until_its_deadline(ecs: &Client, world: &World) {
    world.configure(json!({"faults": [{"action": "CreateDisk", "times": 9, "kind": "hang"}]}));
    let time = Duration::from_secs(1);
    let start = tokio::time::Instant::now();
    let hung = ecs.create_disk(Deadline::after(time), &essd("hung")).await;
    expect_error(hung, Kind::Deadline);
    assert!(start.elapsed() >= time);
    assert_eq!(world.disks(), 1);
}

//! Details of errors.

use crate::contract::world::*;

over_every_connection!(
    an_error_tells_action_code_status_words_and_request_id,
    an_error_without_message_is_still_an_error,
    a_write_without_permission_is_denied_and_a_list_is_empty,
    a_throttling_error_has_the_time_to_wait,
    a_lost_attach_response_has_an_unknown_outcome,
    an_unreadable_attach_response_has_an_unknown_outcome,
    an_unreadable_attach_error_has_an_unknown_outcome,
    no_call_is_made_after_the_deadline,
    a_read_may_return_no_rows_for_a_while_and_a_write_is_not_struck,
    a_call_that_hangs_takes_effect_and_lasts_until_its_deadline,
);

pub(crate) async fn an_error_tells_action_code_status_words_and_request_id(ecs: &Client, world: &World) {
    let disk = "d-unknown".parse().unwrap();
    let error = expect_error(attach(ecs, &disk, "i-one").await, Kind::NotFound);
    assert_eq!(error.action(), "AttachDisk");
    assert_eq!(error.code(), Some("InvalidDiskId.NotFound"));
    assert_eq!(error.status(), Some(404));
    assert!(error.message().is_some_and(|outcome_text| !outcome_text.is_empty()));
    let calls = world.cloud.calls();
    assert_eq!(error.request_id(), Some(calls[0].request_id.as_str()));
    assert!(!error.to_string().contains("attempts"), "{error}");
    let text = error.to_string();
    for part in ["AttachDisk", "InvalidDiskId.NotFound", &calls[0].request_id] {
        assert!(text.contains(part), "{text}");
    }
}

pub(crate) async fn an_error_without_message_is_still_an_error(ecs: &Client, world: &World) {
    world.configure(json!({"faults": [{"action": "AttachDisk", "kind": "null-message"}]}));
    let disk = "d-unknown".parse().unwrap();
    let error = expect_error(attach(ecs, &disk, "i-one").await, Kind::NotFound);
    assert_eq!(error.message(), None);
    assert!(error.request_id().is_some());
}

pub(crate) async fn a_write_without_permission_is_denied_and_a_list_is_empty(ecs: &Client, world: &World) {
    create_essd(ecs, "there").await;
    world.configure(json!({"denied": ["CreateDisk", "DescribeDisks"]}));
    let error = expect_error(create(ecs, &essd("no")).await, Kind::Denied);
    assert_eq!(error.code(), Some("Forbidden.RAM"));
    let all = DescribeDisks::default();
    let page = ecs.describe_disks(deadline(), &all).await.unwrap();
    assert_eq!((page.rows, page.next), (vec![], None));
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

async fn call_with_fault(ecs: &Client, world: &World, fault: &str) {
    let disk = create_essd(ecs, fault).await;
    world.configure(json!({"faults": [{"action": "AttachDisk", "kind": fault}]}));
    world.cloud.clear_calls();
    assert_eq!(
        expect_error(attach(ecs, &disk, "i-one").await, Kind::Ambiguous).action(),
        "AttachDisk"
    );
    assert_eq!(world.calls("AttachDisk"), 1, "{fault} is not repeated");
    let row = described(ecs, &disk).await.unwrap();
    assert!(row.is_in_use_on(&node("i-one")), "{row}");
}

pub(crate) async fn a_lost_attach_response_has_an_unknown_outcome(ecs: &Client, world: &World) {
    call_with_fault(ecs, world, "reset-after").await;
}

pub(crate) async fn an_unreadable_attach_response_has_an_unknown_outcome(ecs: &Client, world: &World) {
    for fault in ["truncated", "empty", "html"] {
        call_with_fault(ecs, world, fault).await;
    }
}

pub(crate) async fn an_unreadable_attach_error_has_an_unknown_outcome(ecs: &Client, world: &World) {
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

pub(crate) async fn a_read_may_return_no_rows_for_a_while_and_a_write_is_not_struck(ecs: &Client, world: &World) {
    let disk = create_essd(ecs, "there").await;
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
    expect_error(
        ecs.create_disk(Deadline::after(time), &essd("hung")).await,
        Kind::Deadline,
    );
    assert!(start.elapsed() >= time);
    assert_eq!(world.disks(), 1);
}

//! Creating with lost or empty responses: no final error while an unreported disk may exist, and never a second disk.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use diskplugin::disk::{Error, FailureKind, NewDisk};
use diskplugin::model::Category;

use crate::kit::{Setup, available, gib, minutes, new_disk, node_one, seconds, text, zone};

fn is_final(error: &Error) -> bool {
    !matches!(
        error.failure_kind(),
        FailureKind::Unavailable | FailureKind::Aborted | FailureKind::DeadlineExceeded
    )
}

/// Errors with which the cloud rejects a creation, independent of the outcome of an earlier call.
fn rejections() -> Vec<Value> {
    let code = |status: u16, code: &str| json!({"code": {"status": status, "code": code}});
    vec![
        code(403, "Forbidden.RAM"),
        code(403, "InvalidAccountStatus.NotEnoughBalance"),
        code(403, "OperationDenied.NoStock"),
        code(400, "QuotaExceed.DiskCapacity"),
        code(400, "InvalidDiskName.Malformed"),
        code(400, "InvalidDataDiskCategory.NotSupported"),
    ]
}

async fn sleep(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn empty_responses_create_no_second_disk() {
    for new in [new_disk("pvc-1"), available("pvc-1")] {
        for others in [0, 1] {
            let setup = Setup::new(&["--create-delay=1s"]);
            setup.other_disks(others).await;
            setup.hide_disks(100);
            for _ in 0..2 {
                let rejected = setup.disks.provisioner.create(seconds(45), &new).await;
                let rejected = rejected.unwrap_err();
                assert!(!is_final(&rejected), "{}", text(&rejected));
                assert!(
                    text(&rejected).contains("ecs:DescribeDisks"),
                    "{}",
                    text(&rejected)
                );
                assert_eq!(setup.rows().len(), others + 1);
            }
            sleep(60).await;
            let disk = setup.disks.provisioner.create(minutes(1), &new).await;
            let disk = disk.unwrap_or_else(|error| panic!("{}", text(&error)));
            assert_eq!(setup.rows().len(), others + 1);
            assert_eq!(setup.row(&disk.id)["status"], "Available");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejection_after_a_lost_response_is_not_final_and_the_disk_is_found() {
    for new in [new_disk("pvc-1"), available("pvc-1")] {
        for rejection in rejections() {
            // The tag index lags, so that the first lookups do not return the disk.
            let setup = Setup::new(&["--create-delay=1s", "--stale=2s"]);
            let lost = json!({"action": "CreateDisk", "kind": "reset-after"});
            let rejected =
                json!({"action": "CreateDisk", "from": 2, "times": 100, "kind": rejection});
            setup.configure(&json!({"faults": [lost, rejected]}));
            for attempt in 0..3 {
                match setup.disks.provisioner.create(seconds(20), &new).await {
                    Ok(disk) => assert_eq!(setup.only_disk(), disk.id),
                    Err(error) => {
                        assert!(!is_final(&error), "{rejection}: {}", text(&error));
                        assert!(attempt < 2, "{rejection}: {}", text(&error));
                    }
                }
                assert_eq!(setup.rows().len(), 1);
                sleep(3).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejected_client_retry_is_not_a_final_error() {
    for rejection in rejections() {
        let setup = Setup::with_retries(&["--create-delay=1s", "--stale=2s"]);
        let lost = json!({"action": "CreateDisk", "kind": "internal-error-after"});
        let rejected = json!({"action": "CreateDisk", "from": 2, "times": 100, "kind": rejection});
        setup.configure(&json!({"faults": [lost, rejected]}));
        let first = setup
            .disks
            .provisioner
            .create(seconds(1), &new_disk("pvc-1"))
            .await;
        if let Err(error) = first {
            assert!(!is_final(&error), "{rejection}: {}", text(&error));
        }
        sleep(5).await;
        let disk = setup
            .disks
            .provisioner
            .create(seconds(20), &new_disk("pvc-1"))
            .await;
        let disk = disk.unwrap_or_else(|error| panic!("{rejection}: {}", text(&error)));
        assert_eq!(setup.only_disk(), disk.id);
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejection_after_a_canceled_creation_is_not_final() {
    let setup = Setup::new(&["--create-delay=1s", "--stale=4s"]);
    setup.fault("CreateDisk", &json!({"delay-after": "5s"}));
    let new = new_disk("pvc-1");
    let call = setup.disks.provisioner.create(minutes(1), &new);
    let cut = tokio::time::timeout(Duration::from_secs(2), call).await;
    assert!(cut.is_err());
    let denied = json!({"code": {"status": 403, "code": "Forbidden.RAM"}});
    setup.faults("CreateDisk", 100, &denied);
    let rejected = setup
        .disks
        .provisioner
        .create(seconds(9), &new_disk("pvc-1"))
        .await;
    let rejected = rejected.unwrap_err();
    assert_eq!(
        rejected.failure_kind(),
        FailureKind::Unavailable,
        "{}",
        text(&rejected)
    );
    for part in ["CREATION_UNRESOLVED", "Forbidden.RAM", "RequestId"] {
        assert!(text(&rejected).contains(part), "{}", text(&rejected));
    }
    sleep(5).await;
    let disk = setup
        .disks
        .provisioner
        .create(seconds(20), &new_disk("pvc-1"))
        .await;
    assert_eq!(disk.unwrap().id, setup.only_disk());
}

#[tokio::test(start_paused = true)]
async fn a_rejection_is_final_once_a_listing_proves_that_no_disk_was_created() {
    let setup = Setup::new(&[]);
    setup.disk("other").await;
    let lost = json!({"action": "CreateDisk", "kind": "reset-before"});
    let denied = json!({"code": {"status": 403, "code": "Forbidden.RAM"}});
    let rejected = json!({"action": "CreateDisk", "from": 2, "times": 100, "kind": denied});
    setup.configure(&json!({"faults": [lost, rejected]}));
    let create = async || {
        let outcome = setup
            .disks
            .provisioner
            .create(seconds(20), &new_disk("pvc-1"))
            .await;
        outcome.unwrap_err().failure_kind()
    };
    for _ in 0..3 {
        assert_eq!(create().await, FailureKind::Unavailable);
        sleep(10).await;
    }
    // An empty listing does not prove that no disk was created.
    let hidden = json!({"action": "DescribeDisks", "for": "100s", "kind": "no-rows"});
    let rejected = json!({"action": "CreateDisk", "times": 100, "kind": denied});
    setup.configure(&json!({"faults": [rejected, hidden]}));
    for _ in 0..3 {
        sleep(25).await;
        assert_eq!(create().await, FailureKind::Unavailable);
    }
    sleep(60).await;
    assert_eq!(create().await, FailureKind::PermissionDenied);
    assert_eq!(setup.rows().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_disk_of_a_lost_response_is_found_although_its_zone_is_now_out_of_stock() {
    let setup = Setup::new(&["--stale=2s"]);
    let new = NewDisk {
        categories: vec![Category::CloudSsd, Category::CloudEssd],
        zones: vec![zone("a").into(), zone("b").into()],
        ..new_disk("pvc-1")
    };
    setup.fault("CreateDisk", &json!("reset-after"));
    let lost = setup.disks.provisioner.create(seconds(9), &new).await;
    assert_eq!(lost.unwrap_err().failure_kind(), FailureKind::Unavailable);
    let created = setup.only_disk();
    setup.configure(&json!({"faults": [
        {"action": "CreateDisk", "times": 100,
         "kind": {"code": {"status": 403, "code": "OperationDenied.NoStock"}}}
    ]}));
    for _ in 0..2 {
        match setup.disks.provisioner.create(seconds(9), &new).await {
            Ok(disk) => assert_eq!(disk.id, created),
            Err(error) => assert_eq!(
                error.failure_kind(),
                FailureKind::Unavailable,
                "{}",
                text(&error)
            ),
        }
        sleep(3).await;
    }
    let disk = setup
        .disks
        .provisioner
        .create(seconds(9), &new)
        .await
        .unwrap();
    assert_eq!((disk.id, setup.only_disk()), (created.clone(), created));
}

#[tokio::test(start_paused = true)]
async fn all_of_many_unresolved_names_are_remembered() {
    let setup = Setup::new(&["--stale=4s"]);
    setup.faults("CreateDisk", 1500, &json!("reset-after"));
    for number in 0..1500 {
        let new = new_disk(&format!("pvc-{number}"));
        let lost = setup.disks.provisioner.create(seconds(9), &new).await;
        assert_eq!(lost.unwrap_err().failure_kind(), FailureKind::Unavailable);
    }
    let denied = json!({"code": {"status": 403, "code": "Forbidden.RAM"}});
    setup.faults("CreateDisk", 2000, &denied);
    setup.configure(&json!({"stale": {"lag": "1000s"}}));
    for number in 0..1500 {
        let new = new_disk(&format!("pvc-{number}"));
        let rejected = setup.disks.provisioner.create(seconds(9), &new).await;
        assert_eq!(
            rejected.unwrap_err().failure_kind(),
            FailureKind::Unavailable,
            "{number}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn creations_in_a_new_process_share_one_listing() {
    let setup = Setup::new(&[]);
    for number in 0..3 {
        setup.disk(&format!("old-{number}")).await;
    }
    let restarted = setup.restarted();
    setup.cloud.clear_calls();
    let mut creations = tokio::task::JoinSet::new();
    for number in 0..60 {
        let (restarted, new) = (Arc::clone(&restarted), available(&format!("pvc-{number}")));
        creations.spawn(async move {
            restarted
                .provisioner
                .create(minutes(1), &new)
                .await
                .map(|_| ())
        });
    }
    assert!(creations.join_all().await.iter().all(Result::is_ok));
    let calls = setup.cloud.calls();
    let lists = calls
        .iter()
        .filter(|call| call.action == "DescribeDisks" && !call.params.contains_key("DiskIds"));
    assert_eq!(lists.count(), 1);
    assert_eq!(setup.calls("CreateDisk"), 60);
    // The listing contains disks created before.
    for number in 0..3 {
        let new = new_disk(&format!("old-{number}"));
        restarted
            .provisioner
            .create(minutes(1), &new)
            .await
            .unwrap();
    }
    assert_eq!((setup.calls("CreateDisk"), setup.rows().len()), (60, 63));
}

#[tokio::test(start_paused = true)]
async fn the_lifecycle_of_a_volume_costs_at_most_sixteen_calls() {
    let setup = Setup::new(&[
        "--create-delay=500ms",
        "--attach-delay=2s",
        "--detach-delay=2s",
    ]);
    let disk = setup.disk("pvc-1").await;
    setup.attach(&disk, &node_one()).await;
    setup.detach(&disk, &node_one()).await;
    setup.delete(&disk).await;
    let calls = setup.cloud.calls();
    let actions: Vec<_> = calls.iter().map(|call| call.action.as_str()).collect();
    assert!(actions.len() <= 16, "{actions:?}");
    // The detachment's last observation suffices for the deletion.
    assert_eq!(actions.last(), Some(&"DeleteDisk"));
    let deletion = actions
        .iter()
        .rposition(|action| *action == "DetachDisk")
        .unwrap();
    let polls = &actions[deletion + 1..actions.len() - 1];
    assert!(
        polls.iter().all(|action| *action == "DescribeDisks"),
        "{actions:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_token_used_by_another_process_is_not_replaced_while_responses_are_empty() {
    let setup = Setup::new(&["--create-delay=1s"]);
    let new = new_disk("pvc-1");
    let first = setup.disks.provisioner.create(minutes(1), &new).await;
    let first = first.unwrap();
    let larger = NewDisk {
        size: gib(40),
        ..new
    };
    let restarted = setup.restarted();
    setup.hide_disks(60);
    let rejected = restarted.provisioner.create(seconds(45), &larger).await;
    let rejected = rejected.unwrap_err();
    assert!(!is_final(&rejected), "{}", text(&rejected));
    assert_eq!(setup.only_disk(), first.id);
    sleep(60).await;
    let differs = restarted.provisioner.create(minutes(1), &larger).await;
    assert!(
        matches!(differs, Err(Error::AlreadyExists { .. })),
        "{differs:?}"
    );
    assert_eq!(setup.only_disk(), first.id);
}

#[tokio::test(start_paused = true)]
async fn a_rejection_after_a_restart_is_not_final_while_stale_reads_hide_the_disk_of_a_later_token()
{
    let setup = Setup::new(&["--stale=1s"]);
    setup.disk("other").await;
    setup.become_leader().await;
    setup.configure(
        &json!({"rules": {"token_burn_percent": 100}, "out_of_stock": ["*/cloud_essd"]}),
    );
    let new = new_disk("pvc-1");
    let create = async |disks: &Arc<diskplugin::disk::DiskServices>| {
        disks.provisioner.create(seconds(9), &new).await
    };
    create(&setup.disks).await.unwrap_err();
    setup.configure(&json!({"out_of_stock": []}));
    let created = create(&setup.disks).await.unwrap().id;
    setup.configure(&json!({"stale": {"lag": "8s"}}));
    let restarted = setup.restarted();
    let rejected = create(&restarted).await.unwrap_err();
    assert!(!is_final(&rejected), "{}", text(&rejected));
    sleep(60).await;
    assert_eq!(create(&restarted).await.unwrap().id, created);
    assert_eq!(setup.rows().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_restarted_process_uses_the_same_later_token_after_a_throttled_call() {
    let setup = Setup::new(&["--out-of-stock=*/*", "--stale=1s"]);
    setup.configure(&json!({"rules": {"token_burn_percent": 100}}));
    let new = NewDisk {
        categories: vec![Category::CloudSsd, Category::CloudEssd],
        ..new_disk("pvc-1")
    };
    setup
        .disks
        .provisioner
        .create(seconds(20), &new)
        .await
        .unwrap_err();
    setup.configure(&json!({"out_of_stock": ["*/cloud_ssd"]}));
    let created = setup.disks.provisioner.create(seconds(20), &new).await;
    let created = created.unwrap().id;
    setup.configure(&json!({"stale": {"lag": "60s"}}));
    let restarted = setup.restarted();
    let throttled = json!({"code": {"status": 400, "code": "Throttling"}});
    let throttled = json!({"action": "CreateDisk", "from": 2, "times": 1, "kind": throttled});
    setup.configure(&json!({"faults": [throttled]}));
    let first = restarted.provisioner.create(seconds(20), &new).await;
    first.unwrap_err();
    let second = restarted.provisioner.create(minutes(2), &new).await;
    assert_eq!(
        (second.unwrap().id, setup.only_disk()),
        (created.clone(), created)
    );
}

#[tokio::test(start_paused = true)]
async fn an_incompatible_request_after_a_lost_response_is_resolved_without_other_disks() {
    for (loss, has_effect) in [("reset-before", false), ("reset-after", true)] {
        let setup = Setup::new(&[]);
        setup.fault("CreateDisk", &json!(loss));
        let new = new_disk("pvc-1");
        let lost = setup.disks.provisioner.create(seconds(9), &new);
        assert_eq!(
            lost.await.unwrap_err().failure_kind(),
            FailureKind::Unavailable
        );
        let elsewhere = NewDisk {
            zones: vec![zone("b").into()],
            categories: vec![Category::CloudSsd],
            ..new.clone()
        };
        let outcome = setup.disks.provisioner.create(minutes(1), &elsewhere).await;
        if has_effect {
            assert!(
                matches!(outcome, Err(Error::AlreadyExists { .. })),
                "{outcome:?}"
            );
        } else {
            assert_eq!(outcome.unwrap().id, setup.only_disk());
        }
        assert_eq!(setup.rows().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_snapshot_is_not_final_while_empty_responses_may_hide_its_disk() {
    let setup = Setup::new(&[]);
    let source = setup.disk("source").await;
    let snapshot = setup.snapshot("snap", &source).await;
    let other_process = setup.restarted();
    let other = new_disk("other");
    let other = other_process.provisioner.create(minutes(1), &other);
    other.await.unwrap();
    let new = NewDisk {
        snapshot: Some(snapshot.clone()),
        ..new_disk("pvc-1")
    };
    setup.fault("CreateDisk", &json!("reset-after"));
    let lost = setup.disks.provisioner.create(minutes(1), &new).await;
    lost.unwrap_err();
    let deleted = setup.disks.snapshotter.delete(minutes(1), &snapshot);
    deleted.await.unwrap();
    setup.hide_disks(150);
    for _ in 0..2 {
        let rejected = other_process.provisioner.create(seconds(30), &new).await;
        let rejected = rejected.unwrap_err();
        assert!(!is_final(&rejected), "{}", text(&rejected));
        sleep(60).await;
    }
    sleep(60).await;
    let disk = other_process.provisioner.create(minutes(1), &new).await;
    assert_eq!(disk.unwrap().source_snapshot, Some(snapshot));
    assert_eq!(setup.rows().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_new_process_reports_rejected_credentials() {
    let setup = Setup::new(&[]);
    setup.disk("other").await;
    let restarted = setup.restarted();
    let kind = json!({"code": {"status": 403, "code": "InvalidAccessKeyId.Inactive"}});
    let fails = ["CreateDisk", "DescribeDisks"]
        .map(|action| json!({"action": action, "times": 100, "kind": kind}));
    setup.configure(&json!({"faults": fails}));
    let new = new_disk("pvc-1");
    let rejected = restarted.provisioner.create(minutes(1), &new).await;
    let rejected = rejected.unwrap_err();
    assert!(is_final(&rejected), "{}", text(&rejected));
    assert!(
        text(&rejected).contains("ACCESS_KEY_INACTIVE"),
        "{}",
        text(&rejected)
    );
}

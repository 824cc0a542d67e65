//! Orders that the cloud refuses for now: how often they are repeated, and what goes on meanwhile.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use diskplugin::disk::FailureKind;
use diskplugin::model::DiskId;

use crate::kit::{Setup, minutes, node_one, node_two, seconds, text};

/// The instance of the fake cloud refuses the action like this for so long.
fn refuse(setup: &Setup, action: &str, code: &str, lasts: &str) {
    let kind = json!({"code": {"status": 403, "code": code}});
    let fault = json!({"action": action, "for": lasts, "kind": kind});
    setup.configure(&json!({"faults": [fault]}));
}

async fn attached(setup: &Setup, name: &str) -> DiskId {
    let disk = setup.disk(name).await;
    let attacher = &setup.disks.attacher;
    attacher
        .attach(minutes(5), &disk, &node_one())
        .await
        .unwrap();
    disk
}

async fn time<T, E>(call: impl Future<Output = Result<T, E>>) -> Duration {
    let start = Instant::now();
    assert!(call.await.is_ok());
    start.elapsed()
}

#[tokio::test(start_paused = true)]
async fn half_a_minute_of_refusals_costs_few_calls() {
    let attach_codes = [
        "IncorrectInstanceStatus",
        "InvalidOperation.Conflict",
        "IncorrectDiskStatus",
    ];
    for (action, codes) in [("AttachDisk", attach_codes), ("DetachDisk", attach_codes)] {
        for code in codes {
            let setup = Setup::new(&["--attach-delay=2s", "--detach-delay=2s"]);
            let disk = if action == "AttachDisk" {
                setup.disk("pvc-1").await
            } else {
                attached(&setup, "pvc-1").await
            };
            setup.cloud.clear_calls();
            refuse(&setup, action, code, "30s");
            let (attacher, node) = (&setup.disks.attacher, node_one());
            let took = if action == "AttachDisk" {
                time(attacher.attach(minutes(2), &disk, &node)).await
            } else {
                time(attacher.detach(minutes(2), &disk, &node)).await
            };
            let (orders, reads) = (setup.calls(action), setup.calls("DescribeDisks"));
            assert!(orders <= 8, "{action} {code}: {orders}");
            assert!(reads <= 40, "{action} {code}: {reads}");
            assert!(took <= Duration::from_secs(42), "{action} {code}: {took:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn all_disks_of_an_instance_that_refuses_share_their_attempts() {
    let setup = Setup::new(&["--attach-delay=1s"]);
    let mut calls = JoinSet::new();
    let mut disks = Vec::new();
    for n in 0..6 {
        disks.push(setup.disk(&format!("pvc-{n}")).await);
    }
    setup.cloud.clear_calls();
    refuse(&setup, "AttachDisk", "IncorrectInstanceStatus", "30s");
    for disk in disks {
        let services = Arc::clone(&setup.disks);
        calls.spawn(async move {
            services
                .attacher
                .attach(minutes(2), &disk, &node_one())
                .await
        });
    }
    assert!(calls.join_all().await.iter().all(Result::is_ok));
    let count = &setup.cloud.counts()["AttachDisk"];
    assert!(count.refused <= 8, "{count:?}");
    assert!(
        setup.calls("DescribeDisks") <= 60,
        "{:?}",
        setup.cloud.counts()
    );
}

#[tokio::test(start_paused = true)]
async fn repeated_calls_with_short_deadlines_keep_the_long_pauses() {
    let setup = Setup::new(&["--attach-delay=1s"]);
    let disk = setup.disk("pvc-1").await;
    setup.cloud.clear_calls();
    refuse(&setup, "AttachDisk", "IncorrectInstanceStatus", "30s");
    let mut calls = 0;
    loop {
        calls += 1;
        match setup
            .disks
            .attacher
            .attach(seconds(15), &disk, &node_one())
            .await
        {
            Ok(_) => break,
            Err(error) => {
                assert_eq!(
                    error.failure_kind(),
                    FailureKind::Aborted,
                    "{}",
                    text(&error)
                );
                for part in [
                    "IncorrectInstanceStatus",
                    "RequestId",
                    "i-one",
                    disk.as_str(),
                ] {
                    assert!(text(&error).contains(part), "{}", text(&error));
                }
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(calls >= 3);
    assert!(
        setup.calls("AttachDisk") <= 10,
        "{}",
        setup.calls("AttachDisk")
    );
}

#[tokio::test(start_paused = true)]
async fn other_disks_are_attached_and_detached_between_the_attempts() {
    let setup = Setup::new(&["--attach-delay=2s", "--detach-delay=2s"]);
    let held = attached(&setup, "pvc-1").await;
    let (first, second) = (setup.disk("pvc-2").await, setup.disk("pvc-3").await);
    let kind = json!({"code": {"status": 403, "code": "IncorrectInstanceStatus"}});
    // At 0, 0.5, 1.5, 3.5 and 7.5 seconds; the next attempt is at 15.5.
    setup.faults("AttachDisk", 5, &kind);
    let (attacher, node) = (&setup.disks.attacher, node_one());
    let others = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let detach = time(attacher.detach(minutes(1), &held, &node)).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        (
            detach,
            time(attacher.attach(minutes(1), &second, &node)).await,
        )
    };
    let (rejected, (detach, attach)) =
        tokio::join!(time(attacher.attach(minutes(1), &first, &node)), others);
    assert!(detach <= Duration::from_millis(2500), "{detach:?}");
    assert!(attach <= Duration::from_millis(2500), "{attach:?}");
    // The instance has accepted another order: it is tried again at once.
    assert!(rejected <= Duration::from_secs(15), "{rejected:?}");
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_is_not_ready_holds_up_no_other_disk_of_the_node() {
    let setup = Setup::new(&["--create-delay=60s", "--attach-delay=2s"]);
    let slow = setup.unmanaged_disk(diskplugin::model::Tags::new()).await;
    setup.configure(&json!({"delays": {"create": "0s"}}));
    let quick = setup.disk("pvc-1").await;
    setup.cloud.clear_calls();
    let (attacher, node) = (&setup.disks.attacher, node_one());
    let second = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        time(attacher.attach(minutes(1), &quick, &node)).await
    };
    let (_, took) = tokio::join!(time(attacher.attach(minutes(2), &slow, &node)), second);
    assert!(took <= Duration::from_millis(2500), "{took:?}");
    assert!(
        setup.calls("AttachDisk") <= 4,
        "{}",
        setup.calls("AttachDisk")
    );
    assert!(
        setup.calls("DescribeDisks") <= 60,
        "{}",
        setup.calls("DescribeDisks")
    );
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_does_not_end_holds_up_others_for_half_a_minute_only() {
    let setup = Setup::new(&["--parallel-attach", "--detach-delay=2s"]);
    let (stuck, other) = (
        attached(&setup, "pvc-1").await,
        attached(&setup, "pvc-2").await,
    );
    setup.fault("DetachDisk", &json!("fails-later"));
    // That it takes several at a time is not known.
    setup.configure(&json!({"denied": ["DescribeInstances"]}));
    let (attacher, node) = (&setup.disks.attacher, node_one());
    let second = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        time(attacher.detach(minutes(5), &other, &node)).await
    };
    let (first, took) = tokio::join!(attacher.detach(minutes(3), &stuck, &node), second);
    assert_eq!(
        first.unwrap_err().failure_kind(),
        FailureKind::DeadlineExceeded
    );
    assert!(took <= Duration::from_secs(33), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_releases_its_permit_wherever_it_is() {
    let setup = Setup::new(&["--attach-delay=20s"]);
    let (first, second) = (setup.disk("pvc-1").await, setup.disk("pvc-2").await);
    let third = setup.disk("pvc-3").await;
    let mut calls = JoinSet::new();
    let services = Arc::clone(&setup.disks);
    // Under way, in the queue, and between two attempts.
    calls.spawn(async move {
        services
            .attacher
            .attach(minutes(5), &first, &node_one())
            .await
    });
    let services = Arc::clone(&setup.disks);
    let queued = second.clone();
    calls.spawn(async move {
        services
            .attacher
            .attach(minutes(5), &queued, &node_one())
            .await
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    refuse(&setup, "AttachDisk", "IncorrectInstanceStatus", "3s");
    let services = Arc::clone(&setup.disks);
    let rejected = third.clone();
    calls.spawn(async move {
        services
            .attacher
            .attach(minutes(5), &rejected, &node_two())
            .await
    });
    tokio::time::sleep(Duration::from_secs(2)).await;
    calls.shutdown().await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let attacher = &setup.disks.attacher;
    for (disk, node) in [(second, node_one()), (third, node_two())] {
        let took = time(attacher.attach(minutes(1), &disk, &node)).await;
        assert!(took <= Duration::from_secs(22), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_long_operation_ends_the_pause_of_the_next_order() {
    let setup = Setup::new(&["--attach-delay=40s"]);
    let (first, second) = (setup.disk("pvc-1").await, setup.disk("pvc-2").await);
    setup.cloud.clear_calls();
    let (attacher, node) = (&setup.disks.attacher, node_one());
    let both = async {
        tokio::join!(
            time(attacher.attach(minutes(5), &first, &node)),
            time(attacher.attach(minutes(5), &second, &node)),
        )
    };
    let (_, second) = both.await;
    assert!(second <= Duration::from_secs(83), "{second:?}");
    let orders = setup.calls("AttachDisk");
    assert!(orders <= 8, "{orders}");
}

//! Growing a disk.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use diskplugin::cloud::{AttachDisk, EcsApi};
use diskplugin::disk::{Error, FailureKind};
use diskplugin::model::{Bytes, SizeRange, Tags};

use crate::kit::{Setup, between, gib, minutes, node_one, seconds, text};

#[tokio::test(start_paused = true)]
async fn a_free_disk_grows_offline_and_an_attached_one_online() {
    for (attach, mode) in [(false, "offline"), (true, "online")] {
        let setup = Setup::new(&["--resize-delay=3s"]);
        let disk = setup.disk("pvc-1").await;
        if attach {
            setup.attach(&disk, &node_one()).await;
        }
        let begun = Instant::now();
        let row = setup
            .disks
            .resizer
            .resize(minutes(1), &disk, gib(30))
            .await
            .unwrap();
        assert_eq!(
            (row.size.0, setup.row(&disk)["size"].as_u64()),
            (30, Some(30))
        );
        // A look before, then the size shows late.
        assert!(begun.elapsed() >= Duration::from_secs(3));
        assert_eq!(accepted(&setup), [mode]);
    }
}

/// How the disks were grown, as far as the cloud took it.
fn accepted(setup: &Setup) -> Vec<String> {
    let calls = setup.cloud.calls().into_iter();
    let grown = calls.filter(|call| call.action == "ResizeDisk" && call.code.is_none());
    grown.map(|call| call.params["Type"].clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn an_attached_disk_never_grows_offline_however_old_the_reads() {
    for seed in 0..40 {
        for online in [true, false] {
            let seed = format!("--seed={seed}");
            let setup = Setup::new(&["--stale=0s..2s", "--stale-jumping", &seed]);
            let disk = setup.disk("pvc-1").await;
            let attach = AttachDisk {
                disk: disk.clone(),
                instance: node_one(),
                force: false,
                delete_with_instance: false,
            };
            let ecs = setup.cloud.ecs();
            ecs.attach_disk(minutes(1), &attach).await.unwrap();
            if !online {
                let code = "InvalidDiskSize.NotSupportResizeOnline";
                setup.fault(
                    "ResizeDisk",
                    &json!({"code": {"status": 403, "code": code}}),
                );
            }
            let grown = setup.disks.resizer.resize(minutes(1), &disk, gib(30)).await;
            assert_eq!(grown.is_ok(), online, "{seed}");
            assert_eq!(accepted(&setup), vec!["online"; usize::from(online)]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_is_on_its_way_grows_where_it_arrives() {
    let setup = Setup::new(&["--attach-delay=5s", "--detach-delay=5s"]);
    let (disk, node) = (setup.disk("pvc-1").await, node_one());
    let (attached, grown) = tokio::join!(
        setup.disks.attacher.attach(minutes(1), &disk, &node),
        setup.disks.resizer.resize(minutes(1), &disk, gib(30))
    );
    assert_eq!((attached.is_ok(), grown.unwrap().size.0), (true, 30));
    let (off, grown) = tokio::join!(
        setup.disks.attacher.detach(minutes(1), &disk, &node),
        setup.disks.resizer.resize(minutes(1), &disk, gib(40))
    );
    assert_eq!((off.is_ok(), grown.unwrap().size.0), (true, 40));
    assert_eq!(accepted(&setup), ["online", "offline"]);
}

#[tokio::test(start_paused = true)]
async fn a_disk_of_a_moment_ago_is_found_though_reads_do_not_show_it_yet() {
    let setup = Setup::new(&["--stale=2s"]);
    let disk = setup.unmanaged_disk(Tags::new()).await;
    let grown = setup.disks.resizer.resize(minutes(1), &disk, gib(30)).await;
    assert_eq!(grown.unwrap().size.0, 30);
}

#[tokio::test(start_paused = true)]
async fn what_is_large_enough_is_left_as_it_is_without_a_call() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    for range in [gib(20), gib(5), between(10, 25), SizeRange::default()] {
        let row = setup
            .disks
            .resizer
            .resize(minutes(1), &disk, range)
            .await
            .unwrap();
        assert_eq!(row.size.0, 20);
    }
    setup
        .disks
        .resizer
        .resize(minutes(1), &disk, gib(30))
        .await
        .unwrap();
    setup
        .disks
        .resizer
        .resize(minutes(1), &disk, gib(30))
        .await
        .unwrap();
    assert_eq!(accepted(&setup), ["offline"]);
}

#[tokio::test(start_paused = true)]
async fn a_size_rounds_up_to_the_next_gib_unless_the_limit_forbids_it() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    let odd = SizeRange {
        required: Some(Bytes((30 << 30) + 1)),
        limit: Some(Bytes((31 << 30) - 1)),
    };
    let rejected = setup
        .disks
        .resizer
        .resize(minutes(1), &disk, odd)
        .await
        .unwrap_err();
    assert_eq!(rejected.failure_kind(), FailureKind::OutOfRange);
    let odd = SizeRange { limit: None, ..odd };
    assert_eq!(
        setup
            .disks
            .resizer
            .resize(minutes(1), &disk, odd)
            .await
            .unwrap()
            .size
            .0,
        31
    );
}

#[tokio::test(start_paused = true)]
async fn a_limit_below_the_size_and_a_size_beyond_the_category_are_out_of_range() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    for (range, part) in [
        (between(1, 19), "disks cannot shrink"),
        (gib(70_000), "65536 GiB"),
    ] {
        let rejected = setup
            .disks
            .resizer
            .resize(minutes(1), &disk, range)
            .await
            .unwrap_err();
        assert!(matches!(rejected, Error::OutOfRange { .. }), "{rejected:?}");
        assert!(
            text(&rejected).contains(part) && text(&rejected).contains(disk.as_str()),
            "{rejected}"
        );
    }
    assert_eq!(setup.calls("ResizeDisk"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_size_that_shows_late_is_waited_for_and_found_by_the_repeat() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::new(&["--resize-delay=10s", stale]);
        let disk = setup.disk("pvc-1").await;
        let late = setup
            .disks
            .resizer
            .resize(seconds(5), &disk, gib(30))
            .await
            .unwrap_err();
        assert_eq!(late.failure_kind(), FailureKind::DeadlineExceeded);
        let row = setup
            .restarted()
            .resizer
            .resize(minutes(1), &disk, gib(30))
            .await
            .unwrap();
        assert_eq!(
            (row.size.0, setup.row(&disk)["size"].as_u64()),
            (30, Some(30))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_that_is_still_processed_is_waited_out() {
    let setup = Setup::with_retries(&["--resize-delay=8s"]);
    let disk = setup.disk("pvc-1").await;
    setup
        .disks
        .resizer
        .resize(seconds(2), &disk, gib(30))
        .await
        .unwrap_err();
    let row = setup
        .disks
        .resizer
        .resize(minutes(1), &disk, gib(40))
        .await
        .unwrap();
    assert_eq!(row.size.0, 40);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_ends_with_the_size_that_was_asked_for() {
    for loss in ["reset-before", "reset-after", "internal-error-after"] {
        let setup = Setup::new(&["--resize-delay=2s"]);
        let disk = setup.disk("pvc-1").await;
        setup.fault("ResizeDisk", &json!(loss));
        let lost = setup
            .disks
            .resizer
            .resize(minutes(1), &disk, gib(30))
            .await
            .unwrap_err();
        assert_eq!(lost.failure_kind(), FailureKind::Unavailable);
        let row = setup
            .disks
            .resizer
            .resize(minutes(1), &disk, gib(30))
            .await
            .unwrap();
        assert_eq!(row.size.0, 30, "{loss}");
    }
}

#[tokio::test(start_paused = true)]
async fn somebody_elses_growth_in_between_is_success() {
    // Old reads still show the old size; the cloud refuses to grow to what it is.
    let setup = Setup::new(&["--stale=2s"]);
    let disk = setup.disk("pvc-1").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    setup.fault(
        "ResizeDisk",
        &json!({"code": {"status": 403, "code": "InvalidDiskSize.TooSmall"}}),
    );
    let (ours, theirs) = tokio::join!(
        setup.disks.resizer.resize(minutes(1), &disk, gib(30)),
        async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            setup
                .restarted()
                .resizer
                .resize(minutes(1), &disk, gib(30))
                .await
        }
    );
    for row in [ours, theirs] {
        assert_eq!(
            row.unwrap_or_else(|error| panic!("{}", text(&error)))
                .size
                .0,
            30
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_a_refused_resize_used_up_does_not_stand_in_the_way() {
    let setup = Setup::new(&["--cut-delay=10s"]);
    setup.configure(&json!({"rules": {"token_burn_percent": 100}}));
    let disk = setup.disk("pvc-1").await;
    let verbs = &setup.disks;
    let snapshot = crate::kit::new_snapshot("snap", &disk);
    verbs
        .snapshotter
        .create(seconds(1), &snapshot)
        .await
        .unwrap_err();
    let rejected = verbs
        .resizer
        .resize(seconds(1), &disk, gib(30))
        .await
        .unwrap_err();
    assert_eq!(
        rejected.failure_kind(),
        FailureKind::Aborted,
        "{}",
        text(&rejected)
    );
    tokio::time::sleep(Duration::from_secs(20)).await;
    let row = verbs.resizer.resize(minutes(1), &disk, gib(30)).await;
    assert_eq!(
        row.unwrap_or_else(|error| panic!("{}", text(&error)))
            .size
            .0,
        30
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_that_does_not_run_is_told_with_the_clouds_code() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    setup.attach(&disk, &node_one()).await;
    setup.cloud.set_instance_power(&node_one(), false);
    let rejected = setup
        .disks
        .resizer
        .resize(minutes(1), &disk, gib(30))
        .await
        .unwrap_err();
    for part in [
        disk.as_str(),
        "node i-one",
        "start the instance",
        "InvalidInstanceStatus.NotRunning",
        "RequestId",
    ] {
        assert!(text(&rejected).contains(part), "{}", text(&rejected));
    }
    // Not FAILED_PRECONDITION, which external-resizer takes for "only offline".
    assert_eq!(rejected.failure_kind(), FailureKind::Aborted);
    setup.cloud.set_instance_power(&node_one(), true);
    assert!(
        setup
            .disks
            .resizer
            .resize(minutes(1), &disk, gib(30))
            .await
            .is_ok()
    );
}

#[tokio::test(start_paused = true)]
async fn an_unknown_disk_is_not_found() {
    let setup = Setup::new(&[]);
    let rejected = setup
        .disks
        .resizer
        .resize(minutes(1), &"d-none".parse().unwrap(), gib(30))
        .await;
    assert_eq!(rejected.unwrap_err().failure_kind(), FailureKind::NotFound);
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_grows_offline_only_is_a_precondition_that_names_its_holder() {
    for code in [
        "InvalidDiskSize.NotSupportResizeOnline",
        "InvalidOperation.MultiAttachDiskNotSupportResizeOnline",
        "InvalidOperation.InstanceTypeNotSupportOnlineResize",
    ] {
        let setup = Setup::new(&[]);
        let disk = setup.disk("pvc-1").await;
        setup.attach(&disk, &node_one()).await;
        let kind = json!({"code": {"status": 403, "code": code}});
        setup.faults("ResizeDisk", 1, &kind);
        let rejected = setup.disks.resizer.resize(minutes(1), &disk, gib(30)).await;
        let rejected = rejected.unwrap_err();
        // FAILED_PRECONDITION: external-resizer waits until nobody has it.
        assert_eq!(
            rejected.failure_kind(),
            FailureKind::FailedPrecondition,
            "{code}"
        );
        for part in [disk.as_str(), "node i-one", code, "stop the pod"] {
            assert!(text(&rejected).contains(part), "{}", text(&rejected));
        }
        setup.detach(&disk, &node_one()).await;
        setup.faults("ResizeDisk", 1, &kind);
        let grown = setup.disks.resizer.resize(minutes(1), &disk, gib(30)).await;
        assert_eq!(grown.unwrap().size.0, 30, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_size_that_only_the_cloud_knows_not_to_be_sold_is_out_of_range() {
    for code in [
        "InvalidDiskSize.TooLarge",
        "InvalidDataDiskSize.ValueNotSupported",
    ] {
        let setup = Setup::new(&[]);
        let disk = setup.disk("pvc-1").await;
        setup.fault(
            "ResizeDisk",
            &json!({"code": {"status": 403, "code": code}}),
        );
        let rejected = setup.disks.resizer.resize(minutes(1), &disk, gib(30)).await;
        let rejected = rejected.unwrap_err();
        assert_eq!(rejected.failure_kind(), FailureKind::OutOfRange, "{code}");
        assert!(text(&rejected).contains(code), "{}", text(&rejected));
    }
}

#[tokio::test(start_paused = true)]
async fn growing_a_disk_in_use_costs_one_order_and_a_look_before_and_after() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    setup.attach(&disk, &node_one()).await;
    setup.cloud.clear_calls();
    setup
        .disks
        .resizer
        .resize(minutes(1), &disk, gib(30))
        .await
        .unwrap();
    let calls: Vec<_> = setup.cloud.calls().into_iter().map(|c| c.action).collect();
    assert_eq!(calls, ["DescribeDisks", "ResizeDisk", "DescribeDisks"]);
}

#[tokio::test(start_paused = true)]
async fn many_disks_that_grow_together_share_their_looks() {
    let setup = Setup::new(&["--resize-delay=2s"]);
    let mut ids = Vec::new();
    for n in 0..60 {
        ids.push(setup.disk(&format!("pvc-{n}")).await);
    }
    setup.cloud.clear_calls();
    let mut growths = tokio::task::JoinSet::new();
    for disk in ids {
        let disks = std::sync::Arc::clone(&setup.disks);
        growths.spawn(async move {
            disks
                .resizer
                .resize(minutes(1), &disk, gib(30))
                .await
                .is_ok()
        });
    }
    assert!(growths.join_all().await.into_iter().all(|ok| ok));
    // One before, and several while the duration is unknown.
    let looks = setup.calls("DescribeDisks");
    assert!(looks <= 15, "{looks} looks at 60 disks");
}

//! Resizing of disks.

use diskplugin::model::Bytes;

use crate::verbs::kit::*;

/// The `Type` parameter of each accepted ResizeDisk call.
fn resize_types(setup: &Setup) -> Vec<String> {
    let calls = setup.cloud.calls().into_iter();
    let accepted = calls.filter(|call| call.action == "ResizeDisk" && call.code.is_none());
    accepted.map(|call| call.params["Type"].clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_detached_disk_resizes_offline_and_an_attached_disk_online() {
    for (attached, resize_type) in [(false, "offline"), (true, "online")] {
        let setup = Setup::new(&["--resize-delay=3s"]);
        let disk = setup.disk("pvc-1").await;
        if attached {
            setup.attach(&disk, &node_one()).await;
        }
        let started = Instant::now();
        let row = setup.resize(&disk, gib(30)).await;
        assert_eq!((row.size.0, setup.row(&disk)["size"].as_u64()), (30, Some(30)));
        // The first poll shows the previous size.
        assert!(started.elapsed() >= Duration::from_secs(3));
        assert_eq!(resize_types(&setup), [resize_type]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_attached_disk_never_resizes_offline_despite_stale_reads() {
    for seed in seeds(40) {
        for online in [true, false] {
            let setup = Setup::new(&["--stale=0s..2s", "--stale-jumping", &seed]);
            let disk = setup.disk("pvc-1").await;
            setup.attach_externally(&disk, &node_one()).await;
            if !online {
                setup.reject("ResizeDisk", 403, "InvalidDiskSize.NotSupportResizeOnline");
            }
            let resized = setup.try_resize(minutes(1), &disk, gib(30)).await;
            assert_eq!(resized.is_ok(), online);
            assert_eq!(resize_types(&setup), vec!["online"; usize::from(online)]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_resizes_during_an_attach_and_during_a_detach() {
    let setup = Setup::new(&["--attach-delay=5s", "--detach-delay=5s"]);
    let (disk, node) = (setup.disk("pvc-1").await, node_one());
    let (attached, resized) = tokio::join!(
        setup.try_attach(minutes(1), &disk, &node),
        setup.try_resize(minutes(1), &disk, gib(30))
    );
    assert_eq!((attached.is_ok(), resized.unwrap().size.0), (true, 30));
    let (detached, resized) = tokio::join!(
        setup.try_detach(minutes(1), &disk, &node),
        setup.try_resize(minutes(1), &disk, gib(40))
    );
    assert_eq!((detached.is_ok(), resized.unwrap().size.0), (true, 40));
    assert_eq!(resize_types(&setup), ["online", "offline"]);
}

#[tokio::test(start_paused = true)]
async fn a_new_disk_resizes_even_if_reads_do_not_return_it_yet() {
    let setup = Setup::new(&["--stale=2s"]);
    let disk = setup.unmanaged_disk(Tags::new()).await;
    assert_eq!(setup.resize(&disk, gib(30)).await.size.0, 30);
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_is_large_enough_is_not_resized() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    for range in [gib(20), gib(5), between(10, 25), SizeRange::default()] {
        let row = setup.resize(&disk, range).await;
        assert_eq!(row.size.0, 20);
    }
    setup.resize(&disk, gib(30)).await;
    setup.resize(&disk, gib(30)).await;
    assert_eq!(resize_types(&setup), ["offline"]);
}

#[tokio::test(start_paused = true)]
async fn the_size_is_rounded_up_to_whole_gib_within_the_limit() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    let fractional = SizeRange {
        required: Some(Bytes((30 << 30) + 1)),
        limit: Some(Bytes((31 << 30) - 1)),
    };
    let rejected = setup.try_resize(minutes(1), &disk, fractional).await.unwrap_err();
    assert_eq!(rejected.failure_kind(), FailureKind::OutOfRange);
    let fractional = SizeRange {
        limit: None,
        ..fractional
    };
    assert_eq!(setup.resize(&disk, fractional).await.size.0, 31);
}

#[tokio::test(start_paused = true)]
async fn shrinking_and_exceeding_the_maximum_of_the_category_are_out_of_range() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    for (range, part) in [(between(1, 19), "disks cannot shrink"), (gib(70_000), "65536 GiB")] {
        let rejected = setup.try_resize(minutes(1), &disk, range).await.unwrap_err();
        assert!(matches!(rejected, Error::OutOfRange { .. }), "{rejected:?}");
        assert_names(&rejected, &[part, disk.as_str()]);
    }
    assert_eq!(setup.calls("ResizeDisk"), 0);
}

#[tokio::test(start_paused = true)]
async fn resize_waits_for_the_new_size_and_a_repeat_finds_it() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::new(&["--resize-delay=10s", stale]);
        let disk = setup.disk("pvc-1").await;
        let late = setup.try_resize(seconds(5), &disk, gib(30)).await.unwrap_err();
        assert_eq!(late.failure_kind(), FailureKind::DeadlineExceeded);
        let row = setup.restarted().resize(&disk, gib(30)).await;
        assert_eq!((row.size.0, setup.row(&disk)["size"].as_u64()), (30, Some(30)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_resize_waits_for_a_running_resize() {
    let setup = Setup::without_canary(&["--resize-delay=8s"]);
    let disk = setup.disk("pvc-1").await;
    setup.try_resize(seconds(2), &disk, gib(30)).await.unwrap_err();
    let row = setup.resize(&disk, gib(40)).await;
    assert_eq!(row.size.0, 40);
}

#[tokio::test(start_paused = true)]
async fn a_repeat_after_a_lost_response_reaches_the_requested_size() {
    for loss in ["reset-before", "reset-after", "internal-error-after"] {
        let setup = Setup::new(&["--resize-delay=2s"]);
        let disk = setup.disk("pvc-1").await;
        let resize = setup.try_resize(seconds(1), &disk, gib(30));
        setup.lose("ResizeDisk", &json!(loss), resize).await;
        let row = setup.resize(&disk, gib(30)).await;
        assert_eq!(row.size.0, 30);
    }
}

#[tokio::test(start_paused = true)]
async fn a_concurrent_resize_to_the_same_size_succeeds() {
    // Stale reads show the previous size; the cloud rejects a resize to the current size.
    let setup = Setup::new(&["--stale=2s"]);
    let disk = setup.disk("pvc-1").await;
    sleep(3).await;
    setup.reject("ResizeDisk", 403, "InvalidDiskSize.TooSmall");
    let (first, second) = tokio::join!(setup.try_resize(minutes(1), &disk, gib(30)), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        setup.restarted().try_resize(minutes(1), &disk, gib(30)).await
    });
    for row in [first, second] {
        assert_eq!(row.unwrap_or_else(|error| panic!("{}", text(&error))).size.0, 30);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_token_consumed_by_a_rejected_resize_does_not_block_later_resizes() {
    let setup = Setup::new(&["--cut-delay=10s"]);
    setup.configure(&json!({"rules": {"token_burn_percent": 100}}));
    let disk = setup.disk("pvc-1").await;
    let disks = &setup.disks;
    let snapshot = new_snapshot("snap", &disk);
    disks.snapshotter.create(seconds(1), &snapshot).await.unwrap_err();
    let rejected = disks.resizer.resize(seconds(1), &disk, gib(30)).await.unwrap_err();
    assert_error(&rejected, FailureKind::Aborted, &[]);
    sleep(20).await;
    assert_eq!(setup.resize(&disk, gib(30)).await.size.0, 30);
}

#[tokio::test(start_paused = true)]
async fn resize_on_a_stopped_instance_is_aborted_with_the_error_code() {
    let setup = Setup::new(&[]);
    let disk = setup.attached("pvc-1").await;
    setup.cloud.set_instance_power(node_one(), false);
    let rejected = setup.try_resize(minutes(1), &disk, gib(30)).await.unwrap_err();
    let parts = [
        disk.as_str(),
        "node i-one",
        "start the instance",
        "InvalidInstanceStatus.NotRunning",
        "RequestId",
    ];
    assert_names(&rejected, &parts);
    // Not FAILED_PRECONDITION, which external-resizer interprets as "only offline".
    assert_eq!(rejected.failure_kind(), FailureKind::Aborted);
    setup.cloud.set_instance_power(node_one(), true);
    setup.resize(&disk, gib(30)).await;
}

#[tokio::test(start_paused = true)]
async fn a_disk_without_online_resize_fails_the_precondition_and_names_its_node() {
    for code in [
        "InvalidDiskSize.NotSupportResizeOnline",
        "InvalidOperation.MultiAttachDiskNotSupportResizeOnline",
        "InvalidOperation.InstanceTypeNotSupportOnlineResize",
    ] {
        let setup = Setup::new(&[]);
        let disk = setup.attached("pvc-1").await;
        setup.reject("ResizeDisk", 403, code);
        let rejected = setup.try_resize(minutes(1), &disk, gib(30)).await.unwrap_err();
        // With FAILED_PRECONDITION, external-resizer waits until the disk is detached.
        let parts = [disk.as_str(), "node i-one", code, "stop the pod"];
        assert_error(&rejected, FailureKind::FailedPrecondition, &parts);
        setup.detach(&disk, &node_one()).await;
        setup.reject("ResizeDisk", 403, code);
        assert_eq!(setup.resize(&disk, gib(30)).await.size.0, 30, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_size_that_the_cloud_rejects_is_out_of_range() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    for code in ["InvalidDiskSize.TooLarge", "InvalidDataDiskSize.ValueNotSupported"] {
        setup.reject("ResizeDisk", 403, code);
        let rejected = setup.try_resize(minutes(1), &disk, gib(30)).await.unwrap_err();
        assert_error(&rejected, FailureKind::OutOfRange, &[code]);
    }
}

#[tokio::test(start_paused = true)]
async fn resizing_an_attached_disk_costs_one_write_and_two_reads() {
    let setup = Setup::new(&[]);
    let disk = setup.attached("pvc-1").await;
    setup.cloud.clear_calls();
    setup.resize(&disk, gib(30)).await;
    let calls: Vec<_> = setup.cloud.calls().into_iter().map(|c| c.action).collect();
    assert_eq!(calls, ["DescribeDisks", "ResizeDisk", "DescribeDisks"]);
}

#[tokio::test(start_paused = true)]
async fn concurrent_resizes_share_polls() {
    let setup = Setup::new(&["--resize-delay=2s"]);
    let ids = setup.create_disks(60).await;
    let resize = |setup: Setup, disk| async move { setup.try_resize(minutes(1), &disk, gib(30)).await };
    assert!(setup.each(ids, resize).await.iter().all(Result::is_ok));
    // One read before, and several polls while the duration is unknown.
    let reads = setup.calls("DescribeDisks");
    assert!(reads <= 15, "{reads} calls for 60 disks");
}

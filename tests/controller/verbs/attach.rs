//! Attaching disks: API calls, results and errors.

use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn attach_calls_attach_disk_once_and_polls_rarely() {
    let delays = ["0s", "500ms", "1200ms", "2s", "3s", "3300ms", "6s"];
    for (delay, max_polls) in delays.into_iter().zip([1, 1, 3, 3, 4, 5, 8]) {
        let setup = Setup::new(&[&format!("--attach-delay={delay}")]);
        let disk = setup.disk("pvc-1").await;
        setup.cloud.clear_calls();
        setup.attach(&disk, &node_one()).await;
        assert_eq!(setup.cloud.calls()[0].action, "AttachDisk");
        assert_eq!(setup.calls("AttachDisk"), 1);
        let polls = setup.calls("DescribeDisks");
        assert!(polls <= max_polls, "{delay}: {polls}");
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_attachments_share_polls_and_polling_stops_when_idle() {
    let setup = Setup::with_nodes(10, &["--attach-delay=2s"]);
    let disks = setup.create_disks(50).await;
    let begun = Instant::now();
    let attach = |setup: Setup, (n, disk): (usize, DiskId)| async move {
        let node = format!("i-{}", n % 10).parse().unwrap();
        setup.try_attach(minutes(5), &disk, &node).await
    };
    let outcomes = setup.each(disks.into_iter().enumerate(), attach).await;
    assert!(outcomes.iter().all(Result::is_ok));
    // Five disks per node, attached sequentially in 2 s each.
    assert!(begun.elapsed() <= (Duration::from_secs(2) + POLL_TOLERANCE) * 5);
    assert_eq!(setup.calls("AttachDisk"), 50);
    let polls = setup.calls("DescribeDisks");
    assert!(polls <= 20, "{polls}");
    sleep(3600).await;
    assert_eq!(setup.calls("DescribeDisks"), polls);
}

#[tokio::test(start_paused = true)]
async fn attach_of_an_attached_disk_costs_one_attach_disk_and_one_describe_disks() {
    for setup in Setup::alternatives(&[]) {
        let disk = setup.attached("pvc-1").await;
        setup.cloud.clear_calls();
        setup.attach(&disk, &node_one()).await;
        let counts = (setup.calls("AttachDisk"), setup.calls("DescribeDisks"));
        assert_eq!(counts, (1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn attach_of_a_disk_attached_to_another_node_fails_and_names_that_node() {
    for setup in Setup::alternatives(&["--attach-delay=1s"]) {
        let disk = setup.disk("pvc-1").await;
        setup.attach(&disk, &node_two()).await;
        let rejected = setup.try_attach(minutes(1), &disk, &node_one()).await.unwrap_err();
        let is_expected = matches!(&rejected, Error::InUseElsewhere { holder, .. } if *holder == node_two());
        assert!(is_expected, "{rejected:?}");
        let parts = [disk.as_str(), "i-one", "i-two"];
        assert_error(&rejected, FailureKind::FailedPrecondition, &parts);
        assert_eq!(setup.attachments(&disk), attached_to(&node_two()));
        assert_eq!(setup.calls("DetachDisk"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_attachments_to_two_nodes_succeed_on_one_and_name_it_to_the_other() {
    let setup = Setup::new(&["--attach-delay=2s"]);
    let disk = setup.disk("pvc-1").await;
    let (restarted, nodes) = (setup.restarted(), (node_one(), node_two()));
    let (first, second) = tokio::join!(
        setup.try_attach(minutes(1), &disk, &nodes.0),
        restarted.try_attach(minutes(1), &disk, &nodes.1),
    );
    assert!(first.unwrap().is_in_use_on(&node_one()));
    assert!(matches!(second.unwrap_err(), Error::InUseElsewhere { holder, .. } if holder == node_one()));
    assert_eq!(setup.attachments(&disk), attached_to(&node_one()));
}

#[tokio::test(start_paused = true)]
async fn attach_to_a_full_node_fails_with_the_cloud_code_unless_already_attached() {
    let setup = Setup::new(&["--disk-quantity=2"]);
    let (first, second) = (setup.attached("pvc-1").await, setup.disk("pvc-2").await);
    let rejected = setup.try_attach(minutes(1), &second, &node_one()).await.unwrap_err();
    assert!(matches!(rejected, Error::AttachLimitExceeded { .. }), "{rejected:?}");
    let parts = [second.as_str(), "i-one", "InstanceDiskLimitExceeded", "RequestId"];
    assert_error(&rejected, FailureKind::ResourceExhausted, &parts);
    // The order of the cloud's checks is not documented.
    setup.reject("AttachDisk", 403, "InstanceDiskLimitExceeded");
    setup.attach(&first, &node_one()).await;
}

#[tokio::test(start_paused = true)]
async fn attach_to_a_node_in_another_zone_fails_precondition_with_the_cloud_code() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    let far = "i-far".parse().unwrap();
    let rejected = setup.try_attach(minutes(1), &disk, &far).await.unwrap_err();
    let parts = [disk.as_str(), "i-far", "ResourcesNotInSameZone", "RequestId"];
    assert_error(&rejected, FailureKind::FailedPrecondition, &parts);
    let other = setup.create(&in_zone("pvc-2", "b")).await.id;
    setup.attach(&other, &far).await;
}

#[tokio::test(start_paused = true)]
async fn attach_queued_beyond_its_deadline_names_disk_and_node() {
    let setup = Setup::new(&["--attach-delay=20s"]);
    let (first, second) = (setup.disk("pvc-1").await, setup.disk("pvc-2").await);
    let node = node_one();
    let (attached, late) = tokio::join!(
        setup.try_attach(minutes(1), &first, &node),
        setup.try_attach(seconds(10), &second, &node),
    );
    attached.unwrap();
    let late = late.unwrap_err();
    assert_error(&late, FailureKind::DeadlineExceeded, &[second.as_str(), "i-one"]);
}

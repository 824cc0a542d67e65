//! Attaching disks: API calls, results and errors.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use diskplugin::disk::{Error, FailureKind, NewDisk};
use diskplugin::model::{DiskId, Failure, InstanceId};

use crate::verbs::kit::{
    POLL_TOLERANCE, Setup, attached_to, minutes, new_disk, node_one, node_two, seconds, text, zone,
};

#[tokio::test(start_paused = true)]
async fn attach_calls_attach_disk_once_and_polls_rarely() {
    for (delay, max_polls) in [
        ("0s", 1),
        ("500ms", 1),
        ("1200ms", 3),
        ("2s", 3),
        ("3s", 4),
        ("3300ms", 5),
        ("6s", 8),
    ] {
        let setup = Setup::new(&[&format!("--attach-delay={delay}")]);
        let disk = setup.disk("pvc-1").await;
        setup.cloud.clear_calls();
        let row = setup.attach(&disk, &node_one()).await;
        assert!(row.is_in_use_on(&node_one()));
        assert_eq!(setup.attachments(&disk), attached_to(&node_one()));
        assert_eq!(setup.cloud.calls()[0].action, "AttachDisk");
        assert_eq!(setup.calls("AttachDisk"), 1);
        let polls = setup.calls("DescribeDisks");
        assert!(polls <= max_polls, "{delay}: {polls}");
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_attachments_share_polls_and_polling_stops_when_idle() {
    let setup = Setup::with_nodes(10, &["--attach-delay=2s"]);
    let mut disks = Vec::new();
    for n in 0..50 {
        disks.push(setup.disk(&format!("pvc-{n}")).await);
    }
    setup.cloud.clear_calls();
    let begun = Instant::now();
    let mut attaching = JoinSet::new();
    for (n, disk) in disks.into_iter().enumerate() {
        let services = Arc::clone(&setup.disks);
        let node: InstanceId = format!("i-{}", n % 10).parse().unwrap();
        attaching.spawn(async move { services.attacher.attach(minutes(5), &disk, &node).await.is_ok() });
    }
    assert!(attaching.join_all().await.into_iter().all(|ok| ok));
    // Five disks per node, attached sequentially in 2 s each.
    assert!(begun.elapsed() <= (Duration::from_secs(2) + POLL_TOLERANCE) * 5);
    assert_eq!(setup.calls("AttachDisk"), 50);
    let polls = setup.calls("DescribeDisks");
    assert!(polls <= 20, "{polls}");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(setup.calls("DescribeDisks"), polls);
}

#[tokio::test(start_paused = true)]
async fn attach_of_an_attached_disk_costs_one_attach_disk_and_one_describe_disks() {
    for alternatives in ["first", "last"] {
        let setup = Setup::new(&[]);
        setup.configure(&json!({"rules": {"alternatives": alternatives}}));
        let disk = setup.disk("pvc-1").await;
        setup.attach(&disk, &node_one()).await;
        setup.cloud.clear_calls();
        let row = setup.attach(&disk, &node_one()).await;
        assert!(row.is_in_use_on(&node_one()));
        let counts = (setup.calls("AttachDisk"), setup.calls("DescribeDisks"));
        assert_eq!(counts, (1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn attach_of_a_disk_attached_to_another_node_fails_and_names_that_node() {
    for alternatives in ["first", "last"] {
        let setup = Setup::new(&["--attach-delay=1s"]);
        setup.configure(&json!({"rules": {"alternatives": alternatives}}));
        let disk = setup.disk("pvc-1").await;
        setup.attach(&disk, &node_two()).await;
        let rejected = setup
            .disks
            .attacher
            .attach(minutes(1), &disk, &node_one())
            .await
            .unwrap_err();
        let Error::InUseElsewhere { holder, .. } = &rejected else {
            panic!("{rejected:?}")
        };
        assert_eq!(
            (holder, rejected.failure_kind()),
            (&node_two(), FailureKind::FailedPrecondition)
        );
        for name in [disk.as_str(), "i-one", "i-two"] {
            assert!(text(&rejected).contains(name), "{rejected}");
        }
        assert_eq!(setup.attachments(&disk), attached_to(&node_two()));
        assert_eq!(setup.calls("DetachDisk"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_attachments_to_two_nodes_succeed_on_one_and_name_it_to_the_other() {
    let setup = Setup::new(&["--attach-delay=2s"]);
    let disk = setup.disk("pvc-1").await;
    let (services, nodes) = ((Arc::clone(&setup.disks), setup.restarted()), (node_one(), node_two()));
    let (first, second) = tokio::join!(
        services.0.attacher.attach(minutes(1), &disk, &nodes.0),
        services.1.attacher.attach(minutes(1), &disk, &nodes.1),
    );
    assert!(first.unwrap().is_in_use_on(&node_one()));
    assert!(matches!(second.unwrap_err(), Error::InUseElsewhere { holder, .. } if holder == node_one()));
    assert_eq!(setup.attachments(&disk), attached_to(&node_one()));
}

#[tokio::test(start_paused = true)]
async fn attach_to_a_full_node_fails_with_the_cloud_code_unless_already_attached() {
    let setup = Setup::new(&["--disk-quantity=2"]);
    let (first, second) = (setup.disk("pvc-1").await, setup.disk("pvc-2").await);
    setup.attach(&first, &node_one()).await;
    let rejected = setup
        .disks
        .attacher
        .attach(minutes(1), &second, &node_one())
        .await
        .unwrap_err();
    assert!(matches!(rejected, Error::AttachLimitExceeded { .. }), "{rejected:?}");
    assert_eq!(rejected.failure_kind(), FailureKind::ResourceExhausted);
    for part in [second.as_str(), "i-one", "InstanceDiskLimitExceeded", "RequestId"] {
        assert!(text(&rejected).contains(part), "{}", text(&rejected));
    }
    // The order of the cloud's checks is not documented.
    let full = json!({"code": {"status": 403, "code": "InstanceDiskLimitExceeded"}});
    setup.fault("AttachDisk", &full);
    let attached = setup.disks.attacher.attach(minutes(1), &first, &node_one()).await;
    assert!(attached.unwrap().is_in_use_on(&node_one()));
}

#[tokio::test(start_paused = true)]
async fn attach_of_an_unknown_disk_or_to_an_unknown_node_is_not_found() {
    let setup = Setup::new(&[]);
    let (disk, node): (DiskId, InstanceId) = ("d-none".parse().unwrap(), "i-none".parse().unwrap());
    let rejected = setup
        .disks
        .attacher
        .attach(minutes(1), &disk, &node_one())
        .await
        .unwrap_err();
    assert!(matches!(rejected, Error::NoSuchDisk { .. }), "{rejected:?}");
    let disk = setup.disk("pvc-1").await;
    let rejected = setup.disks.attacher.attach(minutes(1), &disk, &node).await.unwrap_err();
    assert!(rejected.failure() == Failure::NoSuchNode, "{rejected:?}");
    assert!(text(&rejected).contains("i-none"), "{rejected}");
}

#[tokio::test(start_paused = true)]
async fn attach_to_a_node_in_another_zone_fails_precondition_with_the_cloud_code() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    let far = "i-far".parse().unwrap();
    let rejected = setup.disks.attacher.attach(minutes(1), &disk, &far).await.unwrap_err();
    assert_eq!(rejected.failure_kind(), FailureKind::FailedPrecondition);
    for part in [disk.as_str(), "i-far", "ResourcesNotInSameZone", "RequestId"] {
        assert!(text(&rejected).contains(part), "{}", text(&rejected));
    }
    let new = NewDisk {
        zones: vec![zone("b").into()],
        ..new_disk("pvc-2")
    };
    let other = setup.create(&new).await.id;
    assert!(setup.disks.attacher.attach(minutes(1), &other, &far).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn attach_queued_beyond_its_deadline_names_disk_and_node() {
    let setup = Setup::new(&["--attach-delay=20s"]);
    let (first, second) = (setup.disk("pvc-1").await, setup.disk("pvc-2").await);
    let node = node_one();
    let (attached, late) = tokio::join!(
        setup.disks.attacher.attach(minutes(1), &first, &node),
        setup.disks.attacher.attach(seconds(10), &second, &node),
    );
    attached.unwrap();
    let late = late.unwrap_err();
    assert_eq!(late.failure_kind(), FailureKind::DeadlineExceeded);
    for part in [second.as_str(), "i-one"] {
        assert!(text(&late).contains(part), "{late}");
    }
}

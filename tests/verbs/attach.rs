//! Attaching: what it calls, what it answers, what it refuses.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use diskplugin::disk::{Error, FailureKind, NewDisk};
use diskplugin::model::{DiskId, Failure, InstanceId};

use crate::kit::{attached_to, POLL_TOLERANCE, Setup, minutes, node_one, seconds, text, node_two, new_disk, zone};

#[tokio::test(start_paused = true)]
async fn one_attach_costs_one_attach_disk_first_and_few_looks() {
    for (delay, looks) in [
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
        assert!(polls <= looks, "{delay}: {polls}");
    }
}

#[tokio::test(start_paused = true)]
async fn fifty_disks_on_ten_nodes_share_their_looks_and_nobody_waiting_costs_none() {
    let setup = Setup::with_nodes(10, &["--attach-delay=2s"]);
    let mut disks = Vec::new();
    for n in 0..50 {
        disks.push(setup.disk(&format!("pvc-{n}")).await);
    }
    setup.cloud.clear_calls();
    let begun = Instant::now();
    let mut attaching = JoinSet::new();
    for (n, disk) in disks.into_iter().enumerate() {
        let verbs = Arc::clone(&setup.disks);
        let node: InstanceId = format!("i-{}", n % 10).parse().unwrap();
        attaching.spawn(async move {
            verbs
                .attacher
                .attach(minutes(5), &disk, &node)
                .await
                .is_ok()
        });
    }
    assert!(attaching.join_all().await.into_iter().all(|ok| ok));
    // Five on each node, one after the other, 2 s each.
    assert!(begun.elapsed() <= (Duration::from_secs(2) + POLL_TOLERANCE) * 5);
    assert_eq!(setup.calls("AttachDisk"), 50);
    let polls = setup.calls("DescribeDisks");
    assert!(polls <= 20, "{polls}");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(setup.calls("DescribeDisks"), polls);
}

#[tokio::test(start_paused = true)]
async fn what_is_attached_there_is_found_with_one_attach_disk_and_one_look() {
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
async fn what_another_node_holds_is_refused_naming_the_holder_and_stays_there() {
    for alternatives in ["first", "last"] {
        let setup = Setup::new(&["--attach-delay=1s"]);
        setup.configure(&json!({"rules": {"alternatives": alternatives}}));
        let disk = setup.disk("pvc-1").await;
        setup.attach(&disk, &node_two()).await;
        let refused = setup
            .disks
            .attacher
            .attach(minutes(1), &disk, &node_one())
            .await
            .unwrap_err();
        let Error::InUseElsewhere { holder, .. } = &refused else {
            panic!("{refused:?}")
        };
        assert_eq!(
            (holder, refused.failure_kind()),
            (&node_two(), FailureKind::FailedPrecondition)
        );
        for name in [disk.as_str(), "i-one", "i-two"] {
            assert!(text(&refused).contains(name), "{refused}");
        }
        assert_eq!(setup.attachments(&disk), attached_to(&node_two()));
        assert_eq!(setup.calls("DetachDisk"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_nodes_that_want_a_disk_at_once_one_gets_it_and_the_other_is_told_who() {
    let setup = Setup::new(&["--attach-delay=2s"]);
    let disk = setup.disk("pvc-1").await;
    let (verbs, nodes) = (
        (Arc::clone(&setup.disks), setup.restarted()),
        (node_one(), node_two()),
    );
    let (first, second) = tokio::join!(
        verbs.0.attacher.attach(minutes(1), &disk, &nodes.0),
        verbs.1.attacher.attach(minutes(1), &disk, &nodes.1),
    );
    assert!(first.unwrap().is_in_use_on(&node_one()));
    assert!(matches!(second.unwrap_err(), Error::InUseElsewhere { holder, .. } if holder == node_one()));
    assert_eq!(setup.attachments(&disk), attached_to(&node_one()));
}

#[tokio::test(start_paused = true)]
async fn a_full_node_is_told_with_the_clouds_words_but_not_for_what_it_holds_already() {
    let setup = Setup::new(&["--disk-quantity=2"]);
    let (first, second) = (setup.disk("pvc-1").await, setup.disk("pvc-2").await);
    setup.attach(&first, &node_one()).await;
    let refused = setup
        .disks
        .attacher
        .attach(minutes(1), &second, &node_one())
        .await
        .unwrap_err();
    assert!(
        matches!(refused, Error::AttachLimitExceeded { .. }),
        "{refused:?}"
    );
    assert_eq!(refused.failure_kind(), FailureKind::ResourceExhausted);
    for part in [
        second.as_str(),
        "i-one",
        "InstanceDiskLimitExceeded",
        "RequestId",
    ] {
        assert!(text(&refused).contains(part), "{}", text(&refused));
    }
    // In which order the cloud checks is not documented.
    let full = json!({"code": {"status": 403, "code": "InstanceDiskLimitExceeded"}});
    setup.fault("AttachDisk", &full);
    let there = setup
        .disks
        .attacher
        .attach(minutes(1), &first, &node_one())
        .await;
    assert!(there.unwrap().is_in_use_on(&node_one()));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_disk_and_an_unknown_node_are_not_found_by_name() {
    let setup = Setup::new(&[]);
    let (disk, node): (DiskId, InstanceId) = ("d-none".parse().unwrap(), "i-none".parse().unwrap());
    let refused = setup
        .disks
        .attacher
        .attach(minutes(1), &disk, &node_one())
        .await
        .unwrap_err();
    assert!(matches!(refused, Error::NoSuchDisk { .. }), "{refused:?}");
    let disk = setup.disk("pvc-1").await;
    let refused = setup
        .disks
        .attacher
        .attach(minutes(1), &disk, &node)
        .await
        .unwrap_err();
    assert!(refused.failure() == Failure::NoSuchNode, "{refused:?}");
    assert!(text(&refused).contains("i-none"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_node_in_another_zone_is_refused_for_good_with_the_clouds_code() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    let far = "i-far".parse().unwrap();
    let refused = setup
        .disks
        .attacher
        .attach(minutes(1), &disk, &far)
        .await
        .unwrap_err();
    assert_eq!(refused.failure_kind(), FailureKind::FailedPrecondition);
    for part in [
        disk.as_str(),
        "i-far",
        "ResourcesNotInSameZone",
        "RequestId",
    ] {
        assert!(text(&refused).contains(part), "{}", text(&refused));
    }
    let there = NewDisk {
        places: vec![zone("b").into()],
        ..new_disk("pvc-2")
    };
    let there = setup.create(&there).await
        .id;
    assert!(
        setup
            .disks
            .attacher
            .attach(minutes(1), &there, &far)
            .await
            .is_ok()
    );
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_its_turn_beyond_its_deadline_is_told_disk_and_node() {
    let setup = Setup::new(&["--attach-delay=30s"]);
    let (first, second) = (setup.disk("pvc-1").await, setup.disk("pvc-2").await);
    let node = node_one();
    let (held, late) = tokio::join!(
        setup.disks.attacher.attach(minutes(1), &first, &node),
        setup.disks.attacher.attach(seconds(10), &second, &node),
    );
    held.unwrap();
    let late = late.unwrap_err();
    assert_eq!(late.failure_kind(), FailureKind::DeadlineExceeded);
    for part in [second.as_str(), "i-one"] {
        assert!(text(&late).contains(part), "{late}");
    }
}

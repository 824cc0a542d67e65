//! Attaching: what it calls, what it answers, what it refuses.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use diskplugin::disk::{Error, FailureKind, NewDisk};
use diskplugin::model::{DiskId, Failure, InstanceId};

use crate::kit::{LATE, Stage, minutes, one, seconds, text, two, wanted, zone};

fn held(node: &InstanceId) -> Vec<(String, String)> {
    vec![(node.to_string(), "Attached".to_owned())]
}

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
        let stage = Stage::new(&[&format!("--attach-delay={delay}")]);
        let disk = stage.disk("pvc-1").await;
        stage.cloud.clear_calls();
        let row = stage
            .disks
            .attacher
            .attach(minutes(1), &disk, &one())
            .await
            .unwrap();
        assert!(row.is_in_use_on(&one()));
        assert_eq!(stage.holders(&disk), held(&one()));
        assert_eq!(stage.cloud.calls()[0].action, "AttachDisk");
        assert_eq!(stage.calls("AttachDisk"), 1);
        let polls = stage.calls("DescribeDisks");
        assert!(polls <= looks, "{delay}: {polls}");
    }
}

#[tokio::test(start_paused = true)]
async fn fifty_disks_on_ten_nodes_share_their_looks_and_nobody_waiting_costs_none() {
    let stage = Stage::crowd(10, &["--attach-delay=2s"]);
    let mut disks = Vec::new();
    for n in 0..50 {
        disks.push(stage.disk(&format!("pvc-{n}")).await);
    }
    stage.cloud.clear_calls();
    let begun = Instant::now();
    let mut attaching = JoinSet::new();
    for (n, disk) in disks.into_iter().enumerate() {
        let verbs = Arc::clone(&stage.disks);
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
    assert!(begun.elapsed() <= (Duration::from_secs(2) + LATE) * 5);
    assert_eq!(stage.calls("AttachDisk"), 50);
    let polls = stage.calls("DescribeDisks");
    assert!(polls <= 20, "{polls}");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(stage.calls("DescribeDisks"), polls);
}

#[tokio::test(start_paused = true)]
async fn what_is_attached_there_is_found_with_one_attach_disk_and_one_look() {
    for alternatives in ["first", "last"] {
        let stage = Stage::new(&[]);
        stage.configure(&json!({"rules": {"alternatives": alternatives}}));
        let disk = stage.disk("pvc-1").await;
        stage
            .disks
            .attacher
            .attach(minutes(1), &disk, &one())
            .await
            .unwrap();
        stage.cloud.clear_calls();
        let row = stage
            .disks
            .attacher
            .attach(minutes(1), &disk, &one())
            .await
            .unwrap();
        assert!(row.is_in_use_on(&one()));
        let counts = (stage.calls("AttachDisk"), stage.calls("DescribeDisks"));
        assert_eq!(counts, (1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn what_another_node_holds_is_refused_naming_the_holder_and_stays_there() {
    for alternatives in ["first", "last"] {
        let stage = Stage::new(&["--attach-delay=1s"]);
        stage.configure(&json!({"rules": {"alternatives": alternatives}}));
        let disk = stage.disk("pvc-1").await;
        stage
            .disks
            .attacher
            .attach(minutes(1), &disk, &two())
            .await
            .unwrap();
        let refused = stage
            .disks
            .attacher
            .attach(minutes(1), &disk, &one())
            .await
            .unwrap_err();
        let Error::InUseElsewhere { holder, .. } = &refused else {
            panic!("{refused:?}")
        };
        assert_eq!(
            (holder, refused.failure_kind()),
            (&two(), FailureKind::FailedPrecondition)
        );
        for name in [disk.as_str(), "i-one", "i-two"] {
            assert!(text(&refused).contains(name), "{refused}");
        }
        assert_eq!(stage.holders(&disk), held(&two()));
        assert_eq!(stage.calls("DetachDisk"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_nodes_that_want_a_disk_at_once_one_gets_it_and_the_other_is_told_who() {
    let stage = Stage::new(&["--attach-delay=2s"]);
    let disk = stage.disk("pvc-1").await;
    let (verbs, nodes) = (
        (Arc::clone(&stage.disks), stage.restarted()),
        (one(), two()),
    );
    let (first, second) = tokio::join!(
        verbs.0.attacher.attach(minutes(1), &disk, &nodes.0),
        verbs.1.attacher.attach(minutes(1), &disk, &nodes.1),
    );
    assert!(first.unwrap().is_in_use_on(&one()));
    assert!(matches!(second.unwrap_err(), Error::InUseElsewhere { holder, .. } if holder == one()));
    assert_eq!(stage.holders(&disk), held(&one()));
}

#[tokio::test(start_paused = true)]
async fn a_full_node_is_told_with_the_clouds_words_but_not_for_what_it_holds_already() {
    let stage = Stage::new(&["--disk-quantity=2"]);
    let (first, second) = (stage.disk("pvc-1").await, stage.disk("pvc-2").await);
    stage
        .disks
        .attacher
        .attach(minutes(1), &first, &one())
        .await
        .unwrap();
    let refused = stage
        .disks
        .attacher
        .attach(minutes(1), &second, &one())
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
    stage.fault("AttachDisk", &full);
    let there = stage
        .disks
        .attacher
        .attach(minutes(1), &first, &one())
        .await;
    assert!(there.unwrap().is_in_use_on(&one()));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_disk_and_an_unknown_node_are_not_found_by_name() {
    let stage = Stage::new(&[]);
    let (disk, node): (DiskId, InstanceId) = ("d-none".parse().unwrap(), "i-none".parse().unwrap());
    let refused = stage
        .disks
        .attacher
        .attach(minutes(1), &disk, &one())
        .await
        .unwrap_err();
    assert!(matches!(refused, Error::NoSuchDisk { .. }), "{refused:?}");
    let disk = stage.disk("pvc-1").await;
    let refused = stage
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
    let stage = Stage::new(&[]);
    let disk = stage.disk("pvc-1").await;
    let far = "i-far".parse().unwrap();
    let refused = stage
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
        ..wanted("pvc-2")
    };
    let there = stage
        .disks
        .provisioner
        .create(minutes(1), &there)
        .await
        .unwrap()
        .id;
    assert!(
        stage
            .disks
            .attacher
            .attach(minutes(1), &there, &far)
            .await
            .is_ok()
    );
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_its_turn_beyond_its_deadline_is_told_disk_and_node() {
    let stage = Stage::new(&["--attach-delay=30s"]);
    let (first, second) = (stage.disk("pvc-1").await, stage.disk("pvc-2").await);
    let node = one();
    let (held, late) = tokio::join!(
        stage.disks.attacher.attach(minutes(1), &first, &node),
        stage.disks.attacher.attach(seconds(10), &second, &node),
    );
    held.unwrap();
    let late = late.unwrap_err();
    assert_eq!(late.failure_kind(), FailureKind::DeadlineExceeded);
    for part in [second.as_str(), "i-one"] {
        assert!(text(&late).contains(part), "{late}");
    }
}

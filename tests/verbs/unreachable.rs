//! Nodes that are shut down, gone, or do not let go: what the cluster's failover needs of unpublishing,
//! and what is never taken from a node that lives.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use diskplugin::cloud::{AttachDisk, EcsApi};
use diskplugin::disk::{Error, FailureKind};
use diskplugin::model::{DiskId, Failure, InstanceId};

use crate::kit::{Setup, attached_to, minutes, node_one, node_two, seconds, text};

fn far() -> InstanceId {
    "i-far".parse().unwrap()
}

async fn attached(setup: &Setup) -> DiskId {
    let disk = setup.disk("pvc-1").await;
    setup.attach(&disk, &node_one()).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    disk
}

#[tokio::test(start_paused = true)]
async fn a_disk_comes_off_a_stopped_node_and_goes_to_another_one() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::new(&[stale]);
        let disk = attached(&setup).await;
        setup.cloud.set_instance_power(&node_one(), false);
        tokio::time::sleep(Duration::from_secs(300)).await;
        // Before the cluster has decided, it is left where it is.
        let early = setup
            .disks
            .attacher
            .attach(minutes(1), &disk, &node_two())
            .await;
        assert!(
            matches!(early, Err(Error::InUseElsewhere { .. })),
            "{early:?}"
        );
        setup.detach(&disk, &node_one()).await;
        assert!(setup.attachments(&disk).is_empty(), "{stale}");
        setup.attach(&disk, &node_two()).await;
        assert_eq!(setup.attachments(&disk), attached_to(&node_two()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_disappears_in_the_middle_of_a_detach_counts_when_the_disk_is_off() {
    for alternatives in ["first", "last"] {
        let setup = Setup::new(&["--detach-delay=20s"]);
        setup.configure(&json!({"rules": {"alternatives": alternatives}}));
        let disk = attached(&setup).await;
        let removed = async {
            tokio::time::sleep(Duration::from_secs(3)).await;
            assert!(setup.cloud.remove_instance(&node_one()));
        };
        let node = node_one();
        let (off, ()) = tokio::join!(
            setup.disks.attacher.detach(minutes(2), &disk, &node),
            removed
        );
        off.unwrap();
        assert!(setup.attachments(&disk).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_gone_is_no_proof_while_the_disk_still_shows_it() {
    let setup = Setup::new(&["--detach-delay=30s"]);
    let disk = attached(&setup).await;
    assert!(setup.cloud.remove_instance(&node_one()));
    let early = setup
        .disks
        .attacher
        .detach(seconds(10), &disk, &node_one())
        .await;
    let early = early.unwrap_err();
    assert_eq!(
        early.failure_kind(),
        FailureKind::DeadlineExceeded,
        "{}",
        text(&early)
    );
    assert_eq!(setup.attachments(&disk).len(), 1);
    setup.detach(&disk, &node_one()).await;
    assert!(setup.attachments(&disk).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_detach_that_hangs_says_what_to_do() {
    let setup = Setup::new(&[]);
    let disk = attached(&setup).await;
    setup.fault("DetachDisk", &json!("fails-later"));
    let late = setup
        .disks
        .attacher
        .detach(seconds(20), &disk, &node_one())
        .await
        .unwrap_err();
    assert!(late.failure() == Failure::DetachStuck, "{late:?}");
    for part in [disk.as_str(), "i-one", "is Detaching", "stop the instance"] {
        assert!(text(&late).contains(part), "{}", text(&late));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_comes_only_when_the_disk_is_off_however_soon_after_it_was_attached() {
    for seed in 0..60 {
        let seed = format!("--seed={seed}");
        let flags = [
            "--stale=0s..2s",
            "--stale-jumping",
            "--attach-delay=1s",
            "--detach-delay=4s",
        ];
        let setup = Setup::new(&[flags[0], flags[1], flags[2], flags[3], &seed]);
        let disk = setup.disk("pvc-1").await;
        setup.attach(&disk, &node_one()).await;
        setup.detach(&disk, &node_one()).await;
        assert!(setup.attachments(&disk).is_empty(), "{seed}");
    }
}

/// A regional disk that hangs on its way off a node of zone a.
async fn hanging(setup: &Setup) -> DiskId {
    let disk = setup.regional_disk();
    setup.attach(&disk, &node_one()).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    setup.fault("DetachDisk", &json!("fails-later"));
    setup
        .disks
        .attacher
        .detach(seconds(5), &disk, &node_one())
        .await
        .unwrap_err();
    disk
}

#[tokio::test(start_paused = true)]
async fn a_regional_disk_that_hangs_on_a_stopped_node_is_taken_at_once_and_from_one_not_described_after_a_minute()
 {
    for gone in [false, true] {
        let setup = Setup::new(&["--attach-delay=1s"]);
        let disk = hanging(&setup).await;
        if gone {
            setup.configure(&json!({"delays": {"detach": "1h"}}));
            assert!(setup.cloud.remove_instance(&node_one()));
        } else {
            setup.cloud.set_instance_power(&node_one(), false);
            tokio::time::sleep(Duration::from_secs(120)).await;
        }
        let begun = Instant::now();
        let row = setup.disks.attacher.attach(minutes(2), &disk, &far()).await;
        row.unwrap_or_else(|error| panic!("gone: {gone}: {}", text(&error)));
        assert_eq!(setup.attachments(&disk), attached_to(&far()));
        let took = begun.elapsed();
        let at_once = took < Duration::from_secs(10);
        let after_a_minute = took >= Duration::from_secs(60);
        assert!(if gone { after_a_minute } else { at_once }, "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_somebody_gets_after_a_refused_attempt_by_force_is_not_taken_from_them() {
    let setup = Setup::new(&["--attach-delay=1s"]);
    let disk = hanging(&setup).await;
    setup.cloud.set_instance_power(&node_one(), false);
    tokio::time::sleep(Duration::from_secs(120)).await;
    setup.cloud.clear_calls();
    let conflict = json!({"code": {"status": 403, "code": "InvalidOperation.Conflict"}});
    let second = json!({"action": "AttachDisk", "from": 2, "times": 1, "kind": conflict});
    setup.configure(&json!({"faults": [second]}));
    let meanwhile = async {
        while setup.calls("AttachDisk") < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        setup.cloud.release(&disk);
        let theirs = AttachDisk {
            disk: disk.clone(),
            instance: node_two(),
            force: false,
            delete_with_instance: false,
        };
        let ecs = setup.cloud.ecs();
        while ecs.attach_disk(minutes(1), &theirs).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let node = far();
    let (rejected, ()) = tokio::join!(
        setup.disks.attacher.attach(minutes(2), &disk, &node),
        meanwhile
    );
    assert!(
        matches!(&rejected, Err(Error::InUseElsewhere { holder, .. }) if *holder == node_two()),
        "{rejected:?}"
    );
    assert_eq!(setup.attachments(&disk), attached_to(&node_two()));
    let calls = setup.cloud.calls();
    let force = |v: &String| v == "true";
    let forced = calls
        .iter()
        .filter(|call| call.params.get("Force").is_some_and(force));
    assert_eq!(forced.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_that_hangs_on_a_living_node_is_given_a_minute_and_one_in_use_is_never_taken() {
    let setup = Setup::new(&["--attach-delay=1s"]);
    let disk = hanging(&setup).await;
    let begun = Instant::now();
    setup.attach(&disk, &far()).await;
    assert!(
        begun.elapsed() >= Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(setup.attachments(&disk), attached_to(&far()));
    // In use: whether its node lives or not, nobody has said that it should leave.
    setup.cloud.set_instance_power(&far(), false);
    tokio::time::sleep(Duration::from_secs(300)).await;
    setup.cloud.clear_calls();
    let rejected = setup
        .disks
        .attacher
        .attach(minutes(2), &disk, &node_one())
        .await;
    assert!(
        matches!(rejected, Err(Error::InUseElsewhere { .. })),
        "{rejected:?}"
    );
    let calls = setup.cloud.calls();
    assert!(
        calls
            .iter()
            .all(|call| call.params.get("Force").is_none_or(|v| v == "false"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_hangs_and_cannot_be_taken_by_force_is_waited_for() {
    let setup = Setup::new(&["--attach-delay=1s"]);
    let disk = hanging(&setup).await;
    // Force works between zones only.
    let late = setup
        .disks
        .attacher
        .attach(seconds(90), &disk, &node_two())
        .await
        .unwrap_err();
    assert!(text(&late).contains(disk.as_str()), "{}", text(&late));
    setup.cloud.release(&disk);
    setup.attach(&disk, &node_two()).await;
    assert_eq!(setup.attachments(&disk), attached_to(&node_two()));
}

#[tokio::test(start_paused = true)]
async fn force_is_no_word_of_an_ordinary_attachment() {
    let setup = Setup::new(&[]);
    let disk = attached(&setup).await;
    let steal = AttachDisk {
        disk: disk.clone(),
        instance: node_two(),
        force: true,
        delete_with_instance: false,
    };
    assert!(
        setup
            .cloud
            .ecs()
            .attach_disk(minutes(1), &steal)
            .await
            .is_err()
    );
    assert_eq!(setup.attachments(&disk), attached_to(&node_one()));
}

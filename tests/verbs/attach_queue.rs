//! Permits for orders to an instance: how many at a time, in which order, and what it costs to learn that.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use diskplugin::model::{DiskId, InstanceId};

use crate::kit::{POLL_TOLERANCE, Setup, minutes, node_one, node_two, seconds};

fn first() -> InstanceId {
    "i-0".parse().unwrap()
}

async fn disks(setup: &Setup, count: usize) -> Vec<DiskId> {
    let mut disks = Vec::new();
    for n in 0..count {
        disks.push(setup.disk(&format!("pvc-{n}")).await);
    }
    setup.cloud.clear_calls();
    disks
}

/// Attaches or detaches all at once; how long it took.
async fn all(setup: &Setup, disks: &[DiskId], on: bool) -> Duration {
    let begun = Instant::now();
    let mut running = JoinSet::new();
    for disk in disks {
        let disk = disk.clone();
        let verbs = Arc::clone(&setup.disks);
        running.spawn(async move {
            if on {
                verbs
                    .attacher
                    .attach(minutes(5), &disk, &first())
                    .await
                    .map(|_| ())
            } else {
                verbs.attacher.detach(minutes(5), &disk, &first()).await
            }
        });
    }
    for outcome in running.join_all().await {
        outcome.unwrap();
    }
    begun.elapsed()
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_takes_disks_side_by_side_gets_them_so_and_is_asked_about_once() {
    let setup = Setup::with_nodes(1, &["--attach-delay=2s", "--detach-delay=2s"]);
    let tags = ["supportConcurrencyAttach", "supportConcurrencyDetach"];
    for key in tags {
        assert!(setup.cloud.tag_instance(&first(), key, "true"));
    }
    let disks = disks(&setup, 10).await;
    let took = all(&setup, &disks, true).await;
    assert!(took <= Duration::from_millis(3000), "{took:?}");
    let took = all(&setup, &disks, false).await;
    // Five at a time is what the cloud takes off.
    assert!(took <= Duration::from_millis(6000), "{took:?}");
    let rejected: u64 = setup
        .cloud
        .counts()
        .values()
        .map(|count| count.refused)
        .sum();
    assert_eq!((rejected, setup.calls("DescribeInstances")), (0, 1));
    assert_eq!(
        (setup.calls("AttachDisk"), setup.calls("DetachDisk")),
        (10, 10)
    );
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_takes_one_at_a_time_gets_one_and_refuses_none() {
    for denied in [json!([]), json!(["DescribeInstances"])] {
        let setup = Setup::with_nodes(1, &["--attach-delay=2s"]);
        setup.configure(&json!({"denied": denied}));
        let disks = disks(&setup, 4).await;
        let took = all(&setup, &disks, true).await;
        assert!(
            took <= (Duration::from_secs(2) + POLL_TOLERANCE) * 4,
            "{took:?}"
        );
        assert_eq!(setup.calls("AttachDisk"), 4);
        // Without permission, again after one second, two and four more.
        let most = if denied == json!([]) { 1 } else { 4 };
        let reads = setup.calls("DescribeInstances");
        assert!(reads <= most, "{reads}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_single_disk_costs_no_look_at_its_instance() {
    let setup = Setup::with_nodes(1, &[]);
    let disks = disks(&setup, 1).await;
    all(&setup, &disks, true).await;
    all(&setup, &disks, false).await;
    assert_eq!(setup.calls("DescribeInstances"), 0);
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_refuses_what_its_tag_promises_is_taken_for_a_narrow_one() {
    for alternatives in ["first", "last"] {
        let setup = Setup::with_nodes(1, &["--attach-delay=2s"]);
        setup.configure(&json!({"rules": {"alternatives": alternatives}}));
        setup
            .cloud
            .tag_instance(&first(), "supportConcurrencyAttach", "true");
        let disks = disks(&setup, 5).await;
        // The tag is read, and does not help.
        let code = if alternatives == "first" {
            json!({"code": {"status": 403, "code": "InvalidOperation.Conflict"}})
        } else {
            let code = "OperationConflict.DisksAttachingParallellyExceed";
            json!({"code": {"status": 400, "code": code}})
        };
        let fault = json!({"action": "AttachDisk", "from": 2, "times": 4, "kind": code});
        setup.configure(&json!({"faults": [fault]}));
        all(&setup, &disks, true).await;
        let rejected = setup.cloud.counts()["AttachDisk"].refused;
        assert_eq!(
            rejected, 4,
            "{alternatives}: each was rejected once, none twice"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn where_the_cloud_does_one_thing_at_a_time_a_detach_goes_before_the_attaches_that_wait() {
    let setup = Setup::with_nodes(1, &["--attach-delay=4s", "--detach-delay=4s"]);
    setup.configure(&json!({"rules": {"exclusive_attach_detach": true}}));
    let disks = disks(&setup, 5).await;
    all(&setup, &disks[..1], true).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let attaching = all(&setup, &disks[1..], true);
    let detaching = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let begun = Instant::now();
        setup.detach(&disks[0], &first()).await;
        begun.elapsed()
    };
    let (_, waited) = tokio::join!(attaching, detaching);
    // The attach that runs, and its own time; not the three that wait.
    assert!(waited <= Duration::from_secs(9), "{waited:?}");
    let rejected: u64 = setup
        .cloud
        .counts()
        .values()
        .map(|count| count.refused)
        .sum();
    assert!(
        rejected <= 2,
        "{rejected} rejections to learn that the turn is shared"
    );
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_just_left_a_node_comes_back_there_without_a_pause() {
    for stale in ["--stale=0s", "--stale=1s"] {
        let setup = Setup::new(&["--attach-delay=1s", "--detach-delay=2s", stale]);
        let disk = setup.disk("pvc-1").await;
        setup.attach(&disk, &node_one()).await;
        setup.detach(&disk, &node_one()).await;
        let begun = Instant::now();
        setup.attach(&disk, &node_one()).await;
        let took = begun.elapsed();
        let most = if stale == "--stale=0s" { 1 } else { 2 };
        assert!(
            took <= Duration::from_secs(most) + POLL_TOLERANCE,
            "{stale}: {took:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn taking_a_disk_off_whoever_holds_it_is_over_when_it_is_off() {
    let setup = Setup::new(&["--attach-delay=1s", "--detach-delay=2s"]);
    let disk = setup.disk("pvc-1").await;
    setup.attach(&disk, &node_one()).await;
    let begun = Instant::now();
    setup
        .disks
        .attacher
        .detach_everywhere(minutes(1), &disk)
        .await
        .unwrap();
    let took = begun.elapsed();
    assert!(setup.attachments(&disk).is_empty());
    assert!(
        took <= Duration::from_millis(2500) + POLL_TOLERANCE * 2,
        "{took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_is_still_on_its_way_off_elsewhere_holds_up_no_other_disk_of_the_node() {
    let setup = Setup::new(&["--attach-delay=1s", "--detach-delay=40s"]);
    let (slow, quick) = (setup.disk("pvc-1").await, setup.disk("pvc-2").await);
    setup.attach(&slow, &node_two()).await;
    let early = setup
        .disks
        .attacher
        .detach(seconds(1), &slow, &node_two())
        .await;
    early.unwrap_err();
    let node = node_one();
    let second = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let begun = Instant::now();
        setup.attach(&quick, &node).await;
        begun.elapsed()
    };
    let (first, took) = tokio::join!(
        setup.disks.attacher.attach(minutes(2), &slow, &node),
        second
    );
    first.unwrap();
    assert!(took <= Duration::from_secs(3), "{took:?}");
}

/// The instance takes disks in parallel, if that can be read.
fn parallel(setup: &Setup) {
    for key in ["supportConcurrencyAttach", "supportConcurrencyDetach"] {
        assert!(setup.cloud.tag_instance(&first(), key, "true"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_or_empty_read_of_the_instance_is_repeated_soon() {
    for kind in [
        json!("no-rows"),
        json!("internal-error"),
        json!({"code": {"status": 403, "code": "Forbidden.RAM"}}),
    ] {
        let setup = Setup::with_nodes(1, &["--attach-delay=2s"]);
        parallel(&setup);
        let disks = disks(&setup, 12).await;
        setup.fault("DescribeInstances", &kind);
        let took = all(&setup, &disks, true).await;
        assert!(took <= Duration::from_secs(5), "{kind}: {took:?}");
        let count = &setup.cloud.counts()["DescribeInstances"];
        assert!(count.calls <= 2, "{kind}: {count:?}");
        assert_eq!(setup.cloud.counts()["AttachDisk"].refused, 0, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_read_of_the_instance_leaves_no_permit_unused() {
    for kind in [json!({"delay-after": "4s"}), json!("hang")] {
        let setup = Setup::with_nodes(1, &["--attach-delay=2s"]);
        let disks = disks(&setup, 4).await;
        setup.faults("DescribeInstances", 9, &kind);
        let took = all(&setup, &disks, true).await;
        assert!(
            took <= (Duration::from_secs(2) + POLL_TOLERANCE) * 4,
            "{kind}: {took:?}"
        );
    }
}

/// What an instance of the fake cloud does at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Several,
    OneOfEach,
    OneOperation,
}

/// The lives of so many volumes on ten nodes, 50 at a time: how long they took, and the calls of each.
async fn lives(volumes: u32, takes: Takes) -> (Duration, f64) {
    let flags = [
        "--create-delay=500ms",
        "--attach-delay=2s",
        "--detach-delay=2s",
        "--latency=5ms",
    ];
    let setup = Setup::with_nodes(10, &flags);
    setup.configure(&json!({"rules": {"exclusive_attach_detach": takes == Takes::OneOperation}}));
    for n in (0..10).filter(|_| takes == Takes::Several) {
        let node = format!("i-{n}").parse().unwrap();
        for key in ["supportConcurrencyAttach", "supportConcurrencyDetach"] {
            assert!(setup.cloud.tag_instance(&node, key, "true"));
        }
    }
    let begun = Instant::now();
    let running = Arc::new(tokio::sync::Semaphore::new(50));
    let mut all = JoinSet::new();
    for n in 0..volumes {
        let (services, running) = (Arc::clone(&setup.disks), Arc::clone(&running));
        all.spawn(async move {
            let _permit = running.acquire().await;
            let node: InstanceId = format!("i-{}", n % 10).parse().unwrap();
            let new = crate::kit::new_disk(&format!("pvc-{n}"));
            let row = services.provisioner.create(minutes(9), &new).await;
            let disk = row.unwrap().id;
            let attacher = &services.attacher;
            attacher.attach(minutes(9), &disk, &node).await.unwrap();
            attacher.detach(minutes(9), &disk, &node).await.unwrap();
            let deleted = services.provisioner.delete(minutes(9), &disk).await;
            deleted.unwrap();
        });
    }
    all.join_all().await;
    let counts = setup.cloud.counts();
    let rejected: u64 = counts.values().map(|count| count.refused).sum();
    // That attach and detach exclude each other is learned once for each instance.
    let most = if takes == Takes::OneOperation { 20 } else { 0 };
    assert!(rejected <= most, "{rejected} of {counts:?}");
    let calls = u32::try_from(setup.cloud.calls().len()).unwrap();
    let calls = f64::from(calls) / f64::from(volumes);
    println!(
        "{volumes} {takes:?}: {:?}, {calls} calls, {counts:?}",
        begun.elapsed()
    );
    (begun.elapsed(), calls)
}

#[tokio::test(start_paused = true)]
async fn permits_add_little_to_the_delays_of_the_cloud() {
    for (takes, volumes, longest) in [
        (Takes::Several, 100, 9_600),
        (Takes::Several, 500, 47_500),
        (Takes::OneOfEach, 100, 24_000),
        (Takes::OneOfEach, 500, 108_000),
        (Takes::OneOperation, 100, 42_000),
        (Takes::OneOperation, 500, 208_000),
    ] {
        let (took, calls) = lives(volumes, takes).await;
        assert!(
            took <= Duration::from_millis(longest),
            "{volumes} {takes:?}: {took:?}"
        );
        let most = if takes == Takes::Several { 4.3 } else { 4.6 };
        assert!(calls <= most, "{volumes} {takes:?}: {calls}");
    }
}

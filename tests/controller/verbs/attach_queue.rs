//! Permits for AttachDisk and DetachDisk on an instance: parallelism, order, and the cost of detecting the parallelism.

use crate::verbs::kit::*;

/// Direction of the concurrent operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Attach,
    Detach,
}

/// Attaches or detaches the disks concurrently and returns the duration.
async fn run_all(setup: &Setup, disks: &[DiskId], operation: Operation) -> Duration {
    let started = Instant::now();
    let call = |setup: Setup, disk: DiskId| async move {
        match operation {
            Operation::Attach => setup.try_attach(minutes(5), &disk, &node(0)).await.map(drop),
            Operation::Detach => setup.try_detach(minutes(5), &disk, &node(0)).await,
        }
    };
    for outcome in setup.each(disks.to_vec(), call).await {
        outcome.unwrap();
    }
    started.elapsed()
}

/// Tags the instance for parallel operations.
fn tag_for_concurrency(setup: &Setup, node: &InstanceId) {
    for key in ["supportConcurrencyAttach", "supportConcurrencyDetach"] {
        assert!(setup.cloud.tag_instance(node, key, "true"));
    }
}

fn rejected(setup: &Setup) -> u64 {
    setup.cloud.counts().values().map(|count| count.refused).sum()
}

/// Asserts that four disks are attached one after another, two seconds each.
fn assert_sequential(duration: Duration) {
    let bound = (Duration::from_secs(2) + POLL_TOLERANCE) * 4;
    assert!(duration <= bound, "{duration:?}");
}

#[tokio::test(start_paused = true)]
async fn an_instance_tagged_for_concurrency_attaches_in_parallel_and_is_described_once() {
    let setup = Setup::with_nodes(1, &["--attach-delay=2s", "--detach-delay=2s"]);
    tag_for_concurrency(&setup, &node(0));
    let disks = setup.create_disks(10).await;
    let duration = run_all(&setup, &disks, Operation::Attach).await;
    assert!(duration <= Duration::from_millis(3000), "{duration:?}");
    let duration = run_all(&setup, &disks, Operation::Detach).await;
    // An instance detaches at most five disks in parallel.
    assert!(duration <= Duration::from_millis(6000), "{duration:?}");
    assert_eq!((rejected(&setup), setup.calls("DescribeInstances")), (0, 1));
    assert_eq!((setup.calls("AttachDisk"), setup.calls("DetachDisk")), (10, 10));
}

#[tokio::test(start_paused = true)]
async fn an_untagged_instance_attaches_one_disk_at_a_time_without_rejections() {
    for denied in [json!([]), json!(["DescribeInstances"])] {
        let setup = Setup::with_nodes(1, &["--attach-delay=2s"]);
        setup.configure(&json!({"denied": denied}));
        let disks = setup.create_disks(4).await;
        let duration = run_all(&setup, &disks, Operation::Attach).await;
        assert_sequential(duration);
        assert_eq!(setup.calls("AttachDisk"), 4);
        // Without the permission, the read is repeated after 1, 2 and 4 seconds.
        let max_reads = if denied == json!([]) { 1 } else { 4 };
        let reads = setup.calls("DescribeInstances");
        assert!(reads <= max_reads, "{reads}");
    }
}

#[tokio::test(start_paused = true)]
async fn attaching_a_single_disk_does_not_describe_the_instance() {
    let setup = Setup::with_nodes(1, &[]);
    let disks = setup.create_disks(1).await;
    run_all(&setup, &disks, Operation::Attach).await;
    run_all(&setup, &disks, Operation::Detach).await;
    assert_eq!(setup.calls("DescribeInstances"), 0);
}

#[tokio::test(start_paused = true)]
async fn rejections_despite_the_concurrency_tag_reduce_the_parallelism() {
    for alternatives in ["first", "last"] {
        let setup = Setup::with_nodes(1, &["--attach-delay=2s"]);
        setup.configure(&json!({"rules": {"alternatives": alternatives}}));
        setup.cloud.tag_instance(node(0), "supportConcurrencyAttach", "true");
        let disks = setup.create_disks(5).await;
        // The instance rejects parallel operations despite its tag.
        let code = if alternatives == "first" {
            error_code(403, "InvalidOperation.Conflict")
        } else {
            let code = "OperationConflict.DisksAttachingParallellyExceed";
            error_code(400, code)
        };
        let fault = json!({"action": "AttachDisk", "from": 2, "times": 4, "kind": code});
        setup.configure(&json!({"faults": [fault]}));
        run_all(&setup, &disks, Operation::Attach).await;
        let rejected = setup.cloud.counts()["AttachDisk"].refused;
        assert_eq!(rejected, 4, "{alternatives}: each call is rejected once");
    }
}

#[tokio::test(start_paused = true)]
async fn a_detach_precedes_queued_attaches_if_the_operations_are_exclusive() {
    let setup = Setup::with_nodes(1, &["--attach-delay=4s", "--detach-delay=4s"]);
    setup.configure(&json!({"rules": {"exclusive_attach_detach": true}}));
    let disks = setup.create_disks(5).await;
    run_all(&setup, &disks[..1], Operation::Attach).await;
    sleep(5).await;
    let attaching = run_all(&setup, &disks[1..], Operation::Attach);
    let detaching = async {
        sleep(1).await;
        let started = Instant::now();
        setup.detach(&disks[0], &node(0)).await;
        started.elapsed()
    };
    let (_, detach_duration) = tokio::join!(attaching, detaching);
    // The attach in progress and the detach itself, but not the three queued attaches.
    assert!(detach_duration <= Duration::from_secs(9), "{detach_duration:?}");
    // Until the driver detects that the operations are exclusive.
    assert!(rejected(&setup) <= 2, "{}", rejected(&setup));
}

#[tokio::test(start_paused = true)]
async fn a_detached_disk_is_attached_again_without_a_pause() {
    for stale in ["--stale=0s", "--stale=1s"] {
        let setup = Setup::new(&["--attach-delay=1s", "--detach-delay=2s", stale]);
        let disk = setup.attached("pvc-1").await;
        setup.detach(&disk, &node_one()).await;
        let started = Instant::now();
        setup.attach(&disk, &node_one()).await;
        let duration = started.elapsed();
        let seconds = if stale == "--stale=0s" { 1 } else { 2 };
        assert!(
            duration <= Duration::from_secs(seconds) + POLL_TOLERANCE,
            "{duration:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn detach_everywhere_returns_as_soon_as_the_disk_is_detached() {
    let setup = Setup::new(&["--attach-delay=1s", "--detach-delay=2s"]);
    let disk = setup.attached("pvc-1").await;
    let started = Instant::now();
    setup.detach_everywhere(&disk).await;
    let duration = started.elapsed();
    assert!(setup.attachments(&disk).is_empty());
    assert!(
        duration <= Duration::from_millis(2500) + POLL_TOLERANCE * 2,
        "{duration:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_disk_detaching_elsewhere_does_not_delay_other_disks_of_the_node() {
    let setup = Setup::new(&["--attach-delay=1s", "--detach-delay=40s"]);
    let (slow, fast) = (setup.disk("pvc-1").await, setup.disk("pvc-2").await);
    setup.attach(&slow, &node_two()).await;
    setup.try_detach(seconds(1), &slow, &node_two()).await.unwrap_err();
    let target = node_one();
    let second = async {
        sleep(5).await;
        let started = Instant::now();
        setup.attach(&fast, &target).await;
        started.elapsed()
    };
    let (first, duration) = tokio::join!(with_retries(|| setup.try_attach(minutes(2), &slow, &target)), second);
    first.unwrap();
    assert!(duration <= Duration::from_secs(3), "{duration:?}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_or_empty_read_of_the_instance_is_repeated() {
    for kind in [
        json!("no-rows"),
        json!("internal-error"),
        error_code(403, "Forbidden.RAM"),
    ] {
        let setup = Setup::with_nodes(1, &["--attach-delay=2s"]);
        tag_for_concurrency(&setup, &node(0));
        let disks = setup.create_disks(12).await;
        setup.fault("DescribeInstances", &kind);
        let duration = run_all(&setup, &disks, Operation::Attach).await;
        assert!(duration <= Duration::from_secs(5), "{kind}: {duration:?}");
        let count = &setup.cloud.counts()["DescribeInstances"];
        assert!(count.calls <= 2, "{kind}: {count:?}");
        assert_eq!(setup.cloud.counts()["AttachDisk"].refused, 0, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_read_of_the_instance_does_not_delay_attaches() {
    for kind in [json!({"delay-after": "4s"}), json!("hang")] {
        let setup = Setup::with_nodes(1, &["--attach-delay=2s"]);
        let disks = setup.create_disks(4).await;
        setup.faults("DescribeInstances", 9, &kind);
        let duration = run_all(&setup, &disks, Operation::Attach).await;
        assert_sequential(duration);
    }
}

/// Operations that an instance of the fake cloud executes in parallel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Concurrency {
    Parallel,
    OneAttachAndOneDetach,
    Exclusive,
}

/// Lifecycles of `volumes` volumes on 10 nodes, 50 of them in parallel. Returns the duration and the calls per volume.
async fn run_lifecycles(volumes: u32, concurrency: Concurrency) -> (Duration, f64) {
    let flags = [
        "--create-delay=500ms",
        "--attach-delay=2s",
        "--detach-delay=2s",
        "--latency=5ms",
    ];
    let setup = Setup::with_nodes(10, &flags);
    setup.configure(&json!({"rules": {"exclusive_attach_detach": concurrency == Concurrency::Exclusive}}));
    for n in (0..10).filter(|_| concurrency == Concurrency::Parallel) {
        tag_for_concurrency(&setup, &format!("i-{n}").parse().unwrap());
    }
    let started = Instant::now();
    let semaphore = Arc::new(tokio::sync::Semaphore::new(50));
    let mut lifecycles = JoinSet::new();
    for n in 0..volumes {
        let (setup, semaphore) = (setup.clone(), Arc::clone(&semaphore));
        lifecycles.spawn(async move {
            let _permit = semaphore.acquire().await;
            let node: InstanceId = format!("i-{}", n % 10).parse().unwrap();
            let new = new_disk(&format!("pvc-{n}"));
            let disk = setup.try_create(minutes(9), &new).await.unwrap().id;
            setup.try_attach(minutes(9), &disk, &node).await.unwrap();
            setup.try_detach(minutes(9), &disk, &node).await.unwrap();
            setup.try_delete(minutes(9), &disk).await.unwrap();
        });
    }
    lifecycles.join_all().await;
    let counts = setup.cloud.counts();
    let rejected = rejected(&setup);
    // Exclusive operations are detected once for each instance.
    let max_rejected = if concurrency == Concurrency::Exclusive { 20 } else { 0 };
    assert!(rejected <= max_rejected, "{rejected} of {counts:?}");
    let calls = u32::try_from(setup.cloud.calls().len()).unwrap();
    let calls = f64::from(calls) / f64::from(volumes);
    let duration = started.elapsed();
    println!("{volumes} {concurrency:?}: {duration:?}, {calls} calls, {counts:?}");
    (duration, calls)
}

#[tokio::test(start_paused = true)]
async fn permits_add_little_to_the_latency_of_the_cloud() {
    for (concurrency, volumes, max_millis) in [
        (Concurrency::Parallel, 100, 9_600),
        (Concurrency::Parallel, 500, 47_500),
        (Concurrency::OneAttachAndOneDetach, 100, 24_000),
        (Concurrency::OneAttachAndOneDetach, 500, 108_000),
        (Concurrency::Exclusive, 100, 42_000),
        (Concurrency::Exclusive, 500, 208_000),
    ] {
        let (duration, calls) = run_lifecycles(volumes, concurrency).await;
        assert!(duration <= Duration::from_millis(max_millis), "{duration:?}");
        let max_calls = if concurrency == Concurrency::Parallel { 4.3 } else { 4.6 };
        assert!(calls <= max_calls, "{calls}");
    }
}

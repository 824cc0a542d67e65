use super::*;

fn node(id: &str) -> InstanceId {
    id.parse().unwrap()
}

fn try_acquire(queues: &AttachQueues, node: &InstanceId, operation: AttachOperation) -> Option<Permit> {
    let (mut permit, _) = queues.enqueue(node, operation);
    permit.start().then_some(permit)
}

fn second() -> Deadline {
    Deadline::after(Duration::from_secs(1))
}

#[tokio::test(start_paused = true)]
async fn each_instance_has_one_permit_per_operation() {
    let queues = AttachQueues::default();
    let held = queues.acquire(&node("i-1"), AttachOperation::Attach, second()).await;
    assert!(held.is_ok());
    for (id, operation) in [("i-2", AttachOperation::Attach), ("i-1", AttachOperation::Detach)] {
        let permit = queues.acquire(&node(id), operation, second()).await;
        assert!(permit.is_ok());
    }
    assert!(try_acquire(&queues, &node("i-1"), AttachOperation::Attach).is_none());
    let late = queues.acquire(&node("i-1"), AttachOperation::Attach, second()).await;
    assert!(late.is_err());
}

#[tokio::test(start_paused = true)]
async fn an_unused_queue_is_removed() {
    let (queues, n) = (AttachQueues::default(), node("i-1"));
    let held = queues.acquire(&n, AttachOperation::Attach, second()).await.unwrap();
    assert!(queues.acquire(&n, AttachOperation::Attach, second()).await.is_err());
    drop(held);
    assert!(lock(&queues.0).is_empty());
}

#[tokio::test(start_paused = true)]
async fn parallelism_is_cached_and_refreshed() {
    let (queues, n) = (AttachQueues::default(), node("i-1"));
    assert_eq!(queues.next_read(&n), Instant::now());
    queues.set_parallelism(&n, 2, 1);
    assert_eq!(queues.next_read(&n), Instant::now() + REFRESH);
    let free = || try_acquire(&queues, &n, AttachOperation::Attach);
    let held = [free(), free()];
    assert!(held.iter().all(Option::is_some) && free().is_none());
    tokio::time::advance(REFRESH).await;
    // Until another response, the parallelism is two.
    assert_eq!(queues.next_read(&n), Instant::now());
    let [one, other] = held;
    drop(one);
    assert!(free().is_some());
    drop(other);
    assert!(lock(&queues.0).is_empty());
}

#[tokio::test(start_paused = true)]
async fn failed_read_keeps_the_parallelism_and_is_retried_with_backoff() {
    let (queues, n) = (AttachQueues::default(), node("i-1"));
    let (held, mut pauses) = (try_acquire(&queues, &n, AttachOperation::Attach), Vec::new());
    for _ in 0..4 {
        let start = Instant::now();
        // All waiters for the response report the failure.
        queues.record_read_failure(&n);
        queues.record_read_failure(&n);
        let due = queues.next_read(&n);
        pauses.push((due - start).as_secs());
        tokio::time::advance(due - start).await;
    }
    assert_eq!(pauses, [1, 2, 4, 8]);
    queues.set_parallelism(&n, 9, 5);
    tokio::time::advance(REFRESH).await;
    queues.record_read_failure(&n);
    assert!(try_acquire(&queues, &n, AttachOperation::Attach).is_some());
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn only_conflicts_with_own_operations_reduce_the_parallelism() {
    let (queues, n) = (AttachQueues::default(), node("i-1"));
    queues.set_parallelism(&n, 5, 5);
    let alone = try_acquire(&queues, &n, AttachOperation::Attach).unwrap();
    assert!(!alone.record_conflict());
    let second = try_acquire(&queues, &n, AttachOperation::Attach).unwrap();
    assert!(!second.record_conflict(), "an external operation is possible");
    second.record_accepted();
    assert!(!second.record_conflict());
    assert!(second.record_conflict(), "two in a row");
    drop(second);
    assert!(try_acquire(&queues, &n, AttachOperation::Attach).is_none());
    drop(alone);
    assert!(try_acquire(&queues, &n, AttachOperation::Attach).is_some());
}

#[tokio::test(start_paused = true)]
async fn queued_detach_precedes_attach_if_they_exclude_each_other() {
    let (queues, n) = (AttachQueues::default(), node("i-1"));
    let attach = try_acquire(&queues, &n, AttachOperation::Attach).unwrap();
    let detach = try_acquire(&queues, &n, AttachOperation::Detach);
    assert!(attach.record_conflict());
    drop(detach);
    let order = Mutex::new(Vec::new());
    let acquire = async |operation| {
        let permit = queues.acquire(&n, operation, second()).await.unwrap();
        order.lock().unwrap().push(operation);
        drop(permit);
    };
    let released = async { drop(attach) };
    tokio::join!(
        acquire(AttachOperation::Attach),
        acquire(AttachOperation::Detach),
        released
    );
    let order = order.into_inner().unwrap();
    assert_eq!(order, [AttachOperation::Detach, AttachOperation::Attach]);
}

#[tokio::test(start_paused = true)]
async fn cancelled_request_does_not_block_others() {
    let (queues, n) = (AttachQueues::default(), node("i-1"));
    let attach = try_acquire(&queues, &n, AttachOperation::Attach).unwrap();
    let detach = try_acquire(&queues, &n, AttachOperation::Detach).unwrap();
    assert!(attach.record_conflict());
    drop(attach);
    let (mut waiting, _) = queues.enqueue(&n, AttachOperation::Attach);
    let (mut leaving, _) = queues.enqueue(&n, AttachOperation::Detach);
    drop(detach);
    // The detach, which has priority, is cancelled before it starts; another is cancelled just after its start.
    assert!(!waiting.start());
    drop(leaving);
    (leaving, _) = queues.enqueue(&n, AttachOperation::Detach);
    assert!(leaving.start() && !waiting.start());
    drop(leaving);
    assert!(waiting.start());
    drop(waiting);
    assert!(try_acquire(&queues, &n, AttachOperation::Attach).is_some());
}

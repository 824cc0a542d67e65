use super::*;

fn node(id: &str) -> InstanceId {
    id.parse().unwrap()
}

fn try_acquire(queues: &AttachQueues, node: &InstanceId, operation: Operation) -> Option<Permit> {
    let (mut permit, _) = queues.enqueue(node, operation);
    permit.start().then_some(permit)
}

fn second() -> Deadline {
    Deadline::after(Duration::from_secs(1))
}

#[tokio::test(start_paused = true)]
async fn an_instance_has_one_permit_for_each_operation_and_another_instance_its_own() {
    let queues = AttachQueues::default();
    let held = queues
        .acquire(&node("i-1"), Operation::Attach, second())
        .await;
    assert!(held.is_ok());
    for (id, operation) in [("i-2", Operation::Attach), ("i-1", Operation::Detach)] {
        let permit = queues.acquire(&node(id), operation, second()).await;
        assert!(permit.is_ok());
    }
    assert!(try_acquire(&queues, &node("i-1"), Operation::Attach).is_none());
    let late = queues
        .acquire(&node("i-1"), Operation::Attach, second())
        .await;
    assert!(late.is_err());
}

#[tokio::test(start_paused = true)]
async fn an_unused_queue_is_removed() {
    let (queues, n) = (AttachQueues::default(), node("i-1"));
    let held = queues
        .acquire(&n, Operation::Attach, second())
        .await
        .unwrap();
    assert!(
        queues
            .acquire(&n, Operation::Attach, second())
            .await
            .is_err()
    );
    drop(held);
    assert!(queues.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn parallelism_is_used_while_it_is_known_and_read_again_after_a_while() {
    let (queues, n) = (AttachQueues::default(), node("i-1"));
    assert_eq!(queues.read_due(&n), Instant::now());
    queues.learn(&n, 2, 1);
    assert_eq!(queues.read_due(&n), Instant::now() + REFRESH);
    let free = || try_acquire(&queues, &n, Operation::Attach);
    let held = [free(), free()];
    assert!(held.iter().all(Option::is_some) && free().is_none());
    tokio::time::advance(REFRESH).await;
    // Until another response, the parallelism is two.
    assert_eq!(queues.read_due(&n), Instant::now());
    let [one, other] = held;
    drop(one);
    assert!(free().is_some());
    drop(other);
    assert!(queues.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_failed_read_teaches_nothing_and_is_repeated_after_growing_pauses() {
    let (queues, n) = (AttachQueues::default(), node("i-1"));
    let (held, mut pauses) = (try_acquire(&queues, &n, Operation::Attach), Vec::new());
    for _ in 0..4 {
        let start = Instant::now();
        // All who waited for the response report it.
        queues.read_failed(&n);
        queues.read_failed(&n);
        let due = queues.read_due(&n);
        pauses.push((due - start).as_secs());
        tokio::time::advance(due - start).await;
    }
    assert_eq!(pauses, [1, 2, 4, 8]);
    queues.learn(&n, 9, 5);
    tokio::time::advance(REFRESH).await;
    queues.read_failed(&n);
    assert!(try_acquire(&queues, &n, Operation::Attach).is_some());
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_conflict_with_our_own_operation_reduces_parallelism_and_one_with_another_teaches_nothing()
 {
    let (queues, n) = (AttachQueues::default(), node("i-1"));
    queues.learn(&n, 5, 5);
    let alone = try_acquire(&queues, &n, Operation::Attach).unwrap();
    assert!(!alone.learn_conflict());
    let second = try_acquire(&queues, &n, Operation::Attach).unwrap();
    assert!(
        !second.learn_conflict(),
        "somebody else may have been at it"
    );
    second.accepted();
    assert!(!second.learn_conflict());
    assert!(second.learn_conflict(), "two in a row");
    drop(second);
    assert!(try_acquire(&queues, &n, Operation::Attach).is_none());
    drop(alone);
    assert!(try_acquire(&queues, &n, Operation::Attach).is_some());
}

#[tokio::test(start_paused = true)]
async fn where_attach_and_detach_exclude_each_other_a_waiting_detach_precedes_every_attach() {
    let (queues, n) = (AttachQueues::default(), node("i-1"));
    let attach = try_acquire(&queues, &n, Operation::Attach).unwrap();
    let detach = try_acquire(&queues, &n, Operation::Detach);
    assert!(attach.learn_conflict());
    drop(detach);
    let order = Mutex::new(Vec::new());
    let acquire = async |operation| {
        let permit = queues.acquire(&n, operation, second()).await.unwrap();
        order.lock().unwrap().push(operation);
        drop(permit);
    };
    let released = async { drop(attach) };
    tokio::join!(
        acquire(Operation::Attach),
        acquire(Operation::Detach),
        released
    );
    let order = order.into_inner().unwrap();
    assert_eq!(order, [Operation::Detach, Operation::Attach]);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_leaves_holds_up_no_other() {
    let (queues, n) = (AttachQueues::default(), node("i-1"));
    let attach = try_acquire(&queues, &n, Operation::Attach).unwrap();
    let detach = try_acquire(&queues, &n, Operation::Detach).unwrap();
    assert!(attach.learn_conflict());
    drop(attach);
    let (mut waiting, _) = queues.enqueue(&n, Operation::Attach);
    let (mut leaving, _) = queues.enqueue(&n, Operation::Detach);
    drop(detach);
    // The detach, which goes first, is cancelled before it starts, and so is one that has just started.
    assert!(!waiting.start());
    drop(leaving);
    (leaving, _) = queues.enqueue(&n, Operation::Detach);
    assert!(leaving.start() && !waiting.start());
    drop(leaving);
    assert!(waiting.start());
    drop(waiting);
    assert!(try_acquire(&queues, &n, Operation::Attach).is_some());
}

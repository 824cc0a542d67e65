//! Faults in a percentage of calls, drawn from the seed.

use crate::contract::world::*;

const CALLS: usize = 200;

/// Asserts a percentage within the tolerance of a random draw.
fn assert_percentage(count: usize, percent: usize) {
    let wanted = CALLS * percent / 100;
    assert!(
        count.abs_diff(wanted) < CALLS / 10,
        "{count} of {CALLS} are not {percent} %"
    );
}

contract!(a_percentage_of_the_reads_is_stale, |ecs, world| {
    world.configure(json!({"stale": {"lag": "2s", "percent": 30}}));
    let disk = create_essd(ecs, "data").await;
    let mut absent = 0;
    for _ in 0..CALLS {
        absent += usize::from(described(ecs, &disk).await.is_none());
    }
    assert_percentage(absent, 30);
    world.pass(3);
    assert!(described(ecs, &disk).await.is_some());
});

contract!(a_percentage_of_the_calls_fails, |ecs, world| {
    let denied = json!({"code": {"status": 403, "code": "Forbidden.RAM"}});
    world.configure(json!({"faults": [
        {"action": "DescribeDisks", "percent": 20, "kind": denied},
    ]}));
    let mut failed = 0;
    for _ in 0..CALLS {
        if let Err(error) = ecs.describe_disks(deadline(), &DescribeDisks::default()).await {
            assert_eq!(error.kind(), Kind::Denied);
            failed += 1;
        }
    }
    assert_percentage(failed, 20);
});

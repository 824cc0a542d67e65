//! What befalls a share of all calls, drawn from the seed.

use diskplugin::cloud::{DescribeDisks, Ecs, Kind};
use serde_json::json;

use crate::world::{World, made, seen, soon};

on_every_face!(
    a_share_of_the_reads_is_stale_and_the_others_are_not,
    a_share_of_the_calls_fails_and_the_others_do_not,
);

const CALLS: usize = 200;

/// So many in a hundred, within what a draw may miss it by.
fn is_share(count: usize, percent: usize) {
    let wanted = CALLS * percent / 100;
    assert!(
        count.abs_diff(wanted) < CALLS / 10,
        "{count} of {CALLS} are not {percent} %"
    );
}

pub(crate) async fn a_share_of_the_reads_is_stale_and_the_others_are_not(
    ecs: &dyn Ecs,
    world: &World,
) {
    world.configure(json!({"stale": {"lag": "2s", "percent": 30}}));
    let disk = made(ecs, "data").await;
    let mut absent = 0;
    for _ in 0..CALLS {
        absent += usize::from(seen(ecs, &disk).await.is_none());
    }
    is_share(absent, 30);
    world.pass(3);
    assert!(seen(ecs, &disk).await.is_some());
}

pub(crate) async fn a_share_of_the_calls_fails_and_the_others_do_not(ecs: &dyn Ecs, world: &World) {
    let denied = json!({"code": {"status": 403, "code": "Forbidden.RAM"}});
    world.configure(json!({"faults": [
        {"action": "DescribeDisks", "percent": 20, "kind": denied},
    ]}));
    let mut failed = 0;
    for _ in 0..CALLS {
        match ecs.describe_disks(soon(), &DescribeDisks::default()).await {
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.kind(), Kind::Denied);
                failed += 1;
            }
        }
    }
    is_share(failed, 20);
}

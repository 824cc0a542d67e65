//! The cloud discards client tokens after a day: a name must still not create a second disk.

use crate::verbs::kit::*;

async fn sleep_hours(hours: u64) {
    sleep(3600 * hours).await;
}

async fn setup() -> Setup {
    let setup = Setup::new(&[]);
    setup.configure(&json!({"rules": {"token_memory": "24h"}}));
    setup
}

#[tokio::test(start_paused = true)]
async fn a_create_repeated_after_a_day_returns_the_same_disk() {
    let setup = setup().await;
    let disk = setup.disk("pvc-1").await;
    sleep_hours(25).await;
    let again = setup.create(&new_disk("pvc-1")).await;
    assert_eq!((again.id, setup.only_disk()), (disk.clone(), disk));
}

#[tokio::test(start_paused = true)]
async fn a_disk_whose_response_was_lost_a_day_before_a_restart_is_found() {
    let setup = setup().await;
    let new = new_disk("pvc-1");
    setup.lose_create(&json!("reset-after"), &new).await;
    sleep_hours(25).await;
    let found = setup.restarted().create(&new_disk("pvc-1")).await;
    assert_eq!(found.id, setup.only_disk());
}

#[tokio::test(start_paused = true)]
async fn disks_are_not_created_while_describe_disks_is_denied_for_more_than_a_day() {
    for long_running in [true, false] {
        let setup = Setup::new(&[]);
        sleep_hours(if long_running { 2 } else { 0 }).await;
        setup.configure(&json!({"rules": {"token_memory": "24h"}}));
        setup.faults("DescribeDisks", 1_000_000, &error_code(403, "Forbidden.RAM"));
        for _ in 0..30 {
            let denied_create = setup.try_create(seconds(9), &new_disk("pvc-1")).await;
            // Without a listing, it is not certain that no disk has the name.
            let denied_create = denied_create.unwrap_err();
            assert_error(&denied_create, FailureKind::Unavailable, &["Forbidden.RAM"]);
            sleep_hours(1).await;
        }
        assert!(setup.rows().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_create_repeated_after_a_day_returns_the_same_snapshot() {
    let setup = setup().await;
    let disk = setup.disk("pvc-1").await;
    let first = setup.snapshot("snap", &disk).await;
    sleep_hours(25).await;
    assert_eq!(setup.snapshot("snap", &disk).await, first);
    sleep_hours(25).await;
    let new = new_snapshot("snap", &disk);
    let again = setup.restarted().create_snapshot(&new).await;
    assert_eq!(again.id, first);
}

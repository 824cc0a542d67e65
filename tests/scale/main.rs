//! The bench `scale` with small fleets and bounds: describes per volume, growth, delays, memory of the idle controller,
//! and the state of the cloud at the end.
#![cfg(feature = "mock-cloud")]

#[path = "../../benches/scale/mod.rs"]
mod scale;

use std::time::Duration;

use peak_alloc::PeakAlloc;
use scale::figures::Figures;
use scale::{day, fleet, growth, leader, outage, proof, reschedule};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Memory is counted for the whole process.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

#[track_caller]
fn assert_correct(figures: &Figures) {
    println!("{figures}");
    assert!(figures.wrong.is_empty(), "{:#?}", figures.wrong);
}

#[tokio::test(start_paused = true)]
async fn calls_grow_no_faster_than_volumes_and_describes_are_shared() {
    let _alone = ALONE.lock().await;
    let (small, large) = (growth::run(400).await.1, growth::run(1600).await.1);
    for figures in [&small, &large] {
        assert_correct(figures);
        // One CreateDisk and one AttachDisk per volume.
        let orders = figures.count(|action| !action.starts_with("Describe"));
        assert_eq!(orders, 2 * figures.volumes as u64);
        let idle = figures.idle_mib.unwrap_or_default();
        assert!((0.1..=4.0).contains(&idle), "{idle} MiB");
    }
    assert!(large.describes_per_1000() <= 100.0, "{large}");
    assert!(large.calls_per_volume() <= small.calls_per_volume(), "{small}{large}");
    for (rpc, late) in [("CreateVolume", 1.5), ("ControllerPublishVolume", 0.6)] {
        let times = &large.rpcs[rpc];
        assert!(times.times.p50 <= times.floor_p50 + late, "{large}");
        assert!(times.times.p99 <= times.floor_p99 + late, "{large}");
    }
}

#[tokio::test(start_paused = true)]
async fn volumes_move_in_parallel_and_after_a_kill_of_the_leader_without_leaks_and_duplicates() {
    let _alone = ALONE.lock().await;
    let (mut fleet, figures) = growth::run(400).await;
    assert_correct(&figures);
    let moved = reschedule::run(&mut fleet, 200).await;
    assert_correct(&moved);
    assert_eq!(moved.count(|action| action == "DetachDisk"), 200);
    assert_eq!(moved.count(|action| action == "AttachDisk"), 200);
    let taken_over = leader::run(&mut fleet, 200).await;
    assert_correct(&taken_over);
    // The leader was killed while volumes moved.
    let completed = taken_over.notes["volumes with a completed step at the kill"];
    assert!((1.0..200.0).contains(&completed), "{completed}");
    assert!(taken_over.calls_per_volume() <= 5.0, "{taken_over}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_zone_delays_no_other_zone_and_costs_few_calls() {
    let _alone = ALONE.lock().await;
    let (mut fleet, _) = growth::run(400).await;
    let outage = outage::run(&mut fleet, 100).await;
    assert_correct(&outage);
    // Orders that an instance refuses are repeated every eight seconds, whatever number of volumes wait for it.
    let refused = outage.calls["DetachDisk"].1;
    assert!(refused <= 2 * 600 / 8 * 7, "{outage}");
    for rpc in ["CreateVolume", "ControllerPublishVolume", "ControllerUnpublishVolume"] {
        let times = &outage.rpcs[&format!("{rpc}, other zones")];
        assert!(times.times.p99 <= times.floor_p99 + 2.0, "{outage}");
    }
    let failed = outage.failures.keys();
    let mut failed = failed.filter(|failure| failure.contains("other zones"));
    assert_eq!(failed.next(), None, "{outage}");
}

#[tokio::test(start_paused = true)]
async fn a_load_below_the_quota_and_bursts_above_it_are_rarely_throttled() {
    let _alone = ALONE.lock().await;
    let day = day::run(Duration::from_mins(20)).await;
    assert_correct(&day);
    assert!(day.throttled <= 100, "{day}");
    assert!(day.calls_per_volume() <= 6.0, "{day}");
    let minute = day.rpcs.values().all(|rpc| rpc.times.p99 <= 150.0);
    assert!(minute, "{day}");
}

#[tokio::test(start_paused = true)]
async fn the_comparison_finds_a_leak_a_lost_disk_and_a_disk_on_another_node() {
    let _alone = ALONE.lock().await;
    let (mut fleet, figures) = growth::run(60).await;
    assert_correct(&figures);
    let unknown = fleet.volumes.pop().unwrap();
    let leak = format!("{} is leaked", unknown.id);
    assert_eq!(proof::compare(&fleet).await, std::slice::from_ref(&leak));
    fleet.volumes.push(fleet::Volume {
        id: "d-lost".to_owned(),
        ..unknown.clone()
    });
    let lost = format!("{} (d-lost) does not exist", unknown.claim.name);
    assert_eq!(proof::compare(&fleet).await, [lost, leak]);
    *fleet.volumes.last_mut().unwrap() = fleet::Volume { node: None, ..unknown };
    let wrong = proof::compare(&fleet).await;
    assert!(wrong.len() == 1 && wrong[0].ends_with("instead of None"), "{wrong:?}");
}

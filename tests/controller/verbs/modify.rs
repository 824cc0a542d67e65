//! Modification of disks: category, performance level, provisioned IOPS, bursting and tags.

use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn modify_applies_the_whole_change_and_a_repeat_writes_nothing() {
    let setup = Setup::new(&[]);
    setup.configure(&json!({"delays": {"modify": "30s"}}));
    let disk = setup.disk("pvc-1").await;
    let started = Instant::now();
    modify(&setup, &disk, &full_change()).await;
    assert!(started.elapsed() >= Duration::from_secs(30));
    assert_eq!(properties(&setup, &disk), changed_properties());
    assert_eq!(setup.row(&disk)["tags"]["team"], "blue");
    assert_eq!(writes(&setup), 3);
    // Longer than any staleness of a read.
    sleep(5).await;
    setup.cloud.clear_calls();
    modify(&setup, &disk, &full_change()).await;
    let calls: Vec<_> = setup.cloud.calls().into_iter().map(|c| c.action).collect();
    assert_eq!(calls, ["DescribeDisks"]);
}

#[tokio::test(start_paused = true)]
async fn a_performance_level_change_completes_without_polling_tasks() {
    let setup = Setup::new(&["--stale=2s"]);
    let disk = disk_of(&setup, Category::CloudEssd, 500).await;
    let level = Change {
        level: Some(PerformanceLevel::Pl2),
        ..Change::default()
    };
    modify(&setup, &disk, &level).await;
    assert_eq!(setup.row(&disk)["level"], "PL2");
    assert_eq!(setup.calls("DescribeTasks"), 0);
}

#[tokio::test(start_paused = true)]
async fn reverting_a_change_immediately_is_applied_despite_stale_reads() {
    for seed in seeds(20) {
        let setup = Setup::new(&["--stale=0s..2s", "--stale-jumping", &seed]);
        let disk = disk_of(&setup, Category::CloudAuto, 20).await;
        sleep(5).await;
        for (bursting, iops, team) in [(true, 500, "a"), (false, 0, "b"), (true, 500, "a")] {
            let change = Change {
                bursting: Some(bursting),
                provisioned_iops: Some(iops),
                tags: tags(&[("team", team)]),
                ..Change::default()
            };
            modify(&setup, &disk, &change).await;
            let (_, _, current_iops, current_bursting) = properties(&setup, &disk);
            assert_eq!(
                (current_iops, current_bursting),
                (u64::from(change.provisioned_iops.unwrap()), bursting)
            );
            assert_eq!(setup.row(&disk)["tags"]["team"], team);
        }
    }
}

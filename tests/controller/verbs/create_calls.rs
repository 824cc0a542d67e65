//! Number of API calls of creations and of the lifecycle of a volume.

use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn creations_in_a_new_process_share_one_listing() {
    let setup = Setup::new(&[]);
    for number in 0..3 {
        setup.disk(&format!("old-{number}")).await;
    }
    let restarted = setup.restarted();
    setup.cloud.clear_calls();
    let create = |process: Setup, number| async move {
        let new = available(&format!("pvc-{number}"));
        process.try_create(minutes(1), &new).await
    };
    assert!(restarted.each(0..60, create).await.iter().all(Result::is_ok));
    let calls = setup.cloud.calls();
    let lists = calls
        .iter()
        .filter(|call| call.action == "DescribeDisks" && !call.params.contains_key("DiskIds"));
    assert_eq!(lists.count(), 1);
    assert_eq!(setup.calls("CreateDisk"), 60);
    // The listing contains disks created before.
    for number in 0..3 {
        let new = new_disk(&format!("old-{number}"));
        restarted.create(&new).await;
    }
    assert_eq!((setup.calls("CreateDisk"), setup.rows().len()), (60, 63));
}

#[tokio::test(start_paused = true)]
async fn the_lifecycle_of_a_volume_costs_at_most_sixteen_calls() {
    let setup = Setup::new(&["--create-delay=500ms", "--attach-delay=2s", "--detach-delay=2s"]);
    let disk = setup.attached("pvc-1").await;
    setup.detach(&disk, &node_one()).await;
    setup.delete(&disk).await;
    let calls = setup.cloud.calls();
    let actions: Vec<_> = calls.iter().map(|call| call.action.as_str()).collect();
    assert!(actions.len() <= 16, "{actions:?}");
    // The detachment's last observation suffices for the deletion.
    assert_eq!(actions.last(), Some(&"DeleteDisk"));
    let deletion = actions.iter().rposition(|action| *action == "DetachDisk").unwrap();
    let polls = &actions[deletion + 1..actions.len() - 1];
    assert!(polls.iter().all(|action| *action == "DescribeDisks"), "{actions:?}");
}

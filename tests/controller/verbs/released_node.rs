//! Detaching from an instance that does not exist in the cloud any longer.

use crate::verbs::kit::*;

/// DetachDisk is rejected because the instance does not exist, before the disk is looked up.
fn reject_node(setup: &Setup) {
    setup.faults("DetachDisk", 1000, &error_code(404, "InvalidInstanceId.NotFound"));
}

#[tokio::test(start_paused = true)]
async fn the_advice_does_not_name_an_instance_that_does_not_exist() {
    let setup = Setup::new(&[]);
    let disk = setup.attached("pvc-1").await;
    sleep(30).await;
    reject_node(&setup);
    let detacher = &setup.disks.detacher;
    let error = detacher.detach(minutes(2), &disk, &node_one()).await.unwrap_err();
    assert_failure(&error, Failure::NodeReleased);
    let parts = [disk.as_str(), "i-one", "InvalidInstanceId.NotFound", "RequestId"];
    assert_error(&error, FailureKind::Unavailable, &parts);
    assert!(!text(&error).contains("stop the instance"), "{}", text(&error));
    assert_eq!(setup.calls("DetachDisk"), 1);
    let (node, start) = (node_one(), Instant::now());
    let again = detacher.detach(minutes(2), &disk, &node).await;
    assert_eq!(again.unwrap_err().failure(), Failure::NodeReleased);
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    assert_eq!(setup.calls("DetachDisk"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_detach_that_does_not_end_after_the_node_was_released_has_the_same_advice() {
    let setup = Setup::new(&["--detach-delay=1h"]);
    let disk = setup.attached("pvc-1").await;
    sleep(30).await;
    assert!(setup.cloud.remove_instance(node_one()));
    reject_node(&setup);
    let error = setup.try_detach(minutes(2), &disk, &node_one()).await.unwrap_err();
    assert_eq!(error.failure(), Failure::NodeReleased, "{}", text(&error));
}

#[tokio::test(start_paused = true)]
async fn detach_succeeds_if_node_and_disk_were_released_together() {
    let setup = Setup::new(&[]);
    let disk = setup.attached("pvc-1").await;
    // A disk that was created recently can be hidden.
    sleep(600).await;
    setup.detach_externally(&disk, &node_one()).await;
    sleep(30).await;
    let ecs = client(&setup.cloud);
    ecs.delete_disk(minutes(1), &disk).await.unwrap();
    sleep(30).await;
    reject_node(&setup);
    let (detacher, node) = (&setup.disks.detacher, node_one());
    let early = detacher.detach(minutes(2), &disk, &node).await.unwrap_err();
    assert_failure(&early, Failure::AbsenceUnproven);
    assert_names(&early, &["InvalidInstanceId.NotFound", "RequestId", disk.as_str()]);
    let start = Instant::now();
    with_retries(|| detacher.detach(minutes(2), &disk, &node))
        .await
        .unwrap();
    assert!(start.elapsed() <= Duration::from_secs(180), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn detach_of_a_living_disk_from_a_released_node_succeeds_with_its_row() {
    let setup = Setup::new(&[]);
    let disk = setup.attached("pvc-1").await;
    sleep(30).await;
    setup.detach_externally(&disk, &node_one()).await;
    sleep(30).await;
    reject_node(&setup);
    setup.detach(&disk, &node_one()).await;
}

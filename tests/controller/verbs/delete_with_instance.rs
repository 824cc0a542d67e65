//! Attachments by others with `DeleteWithInstance`: the disk would be deleted with the node.

use crate::verbs::kit::*;

fn is_deleted_with_instance(setup: &Setup, disk: &DiskId) -> Value {
    setup.row(disk)["delete_with_instance"].clone()
}

/// A disk that another client has attached with `DeleteWithInstance`.
async fn attached_by_others(setup: &Setup) -> DiskId {
    let disk = setup.disk("pvc-1").await;
    let request = ecs::AttachDisk {
        delete_with_instance: true,
        ..attach_to(&disk, &node_one())
    };
    let ecs = client(&setup.cloud);
    ecs.attach_disk(minutes(1), &request).await.unwrap();
    sleep(30).await;
    assert_eq!(is_deleted_with_instance(setup, &disk), json!(true));
    disk
}

#[tokio::test(start_paused = true)]
async fn publishing_a_disk_that_would_be_deleted_with_its_node_keeps_the_disk() {
    let setup = Setup::new(&[]);
    let disk = attached_by_others(&setup).await;
    let request = single_node(&disk, &node_one());
    for _ in 0..2 {
        setup.publish(&request).await.unwrap();
        assert_eq!(is_deleted_with_instance(&setup, &disk), json!(false));
    }
    assert_eq!(setup.calls("ModifyDiskAttribute"), 1);
    assert!(setup.cloud.remove_instance(node_one()));
    sleep(60).await;
    assert_eq!(setup.row(&disk)["id"], json!(disk.as_str()));
}

#[tokio::test(start_paused = true)]
async fn publishing_is_refused_if_the_deletion_with_the_node_cannot_be_disabled() {
    let setup = Setup::new(&[]);
    let disk = attached_by_others(&setup).await;
    setup.faults("ModifyDiskAttribute", 2, &error_code(403, "Forbidden.RAM"));
    let request = single_node(&disk, &node_one());
    let error = setup.publish(&request).await.unwrap_err();
    assert_failure(&error, Failure::DeletedWithInstance);
    let parts = [
        disk.as_str(),
        "i-one",
        "Forbidden.RAM",
        "RequestId",
        "ecs:ModifyDiskAttribute",
    ];
    assert_error(&error, FailureKind::FailedPrecondition, &parts);
}

#[tokio::test(start_paused = true)]
async fn publishing_a_disk_that_the_driver_attaches_changes_no_attribute() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    setup.cloud.clear_calls();
    setup.publish(&single_node(&disk, &node_one())).await.unwrap();
    assert_eq!((setup.calls("AttachDisk"), setup.calls("ModifyDiskAttribute")), (1, 0));
}

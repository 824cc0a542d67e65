//! Elastic ephemeral disks, the only category that is attached and detached with `DeleteWithInstance`.

use crate::verbs::kit::*;

/// Two nodes of an instance type that supports ephemeral disks.
fn setup() -> Setup {
    Setup::with_multi_attach_nodes(2, &[])
}

fn ephemeral(name: &str) -> NewDisk {
    NewDisk {
        size: gib(1),
        categories: vec![Category::EphemeralStandard],
        ..new_disk(name)
    }
}

fn delete_with_instance(setup: &Setup, disk: &DiskId) -> Value {
    setup.row(disk)["delete_with_instance"].clone()
}

#[tokio::test(start_paused = true)]
async fn the_lifecycle_of_an_ephemeral_disk_costs_one_call_per_operation() {
    let setup = setup();
    let row = setup.create(&ephemeral("pvc-1")).await;
    assert_eq!(row.size.0, 64, "minimum size of the category");
    setup.attach(&row.id, &node(0)).await;
    assert_eq!(delete_with_instance(&setup, &row.id), json!(true));
    setup.detach(&row.id, &node(0)).await;
    setup.delete(&row.id).await;
    for action in ["CreateDisk", "AttachDisk", "DetachDisk", "DeleteDisk"] {
        assert_eq!(setup.calls(action), 1, "{action}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_the_error_code_reveals_the_category() {
    let setup = setup();
    let disk = setup.create(&ephemeral("pvc-1")).await.id;
    let restarted = setup.restarted();
    restarted.try_attach(minutes(5), &disk, &node(0)).await.unwrap();
    let restarted = setup.restarted();
    restarted.try_detach(minutes(5), &disk, &node(0)).await.unwrap();
    assert_eq!((setup.calls("AttachDisk"), setup.calls("DetachDisk")), (2, 2));
    assert!(setup.attachments(&disk).is_empty());
}

#[tokio::test(start_paused = true)]
async fn other_disks_are_never_deleted_with_their_instance() {
    let setup = setup();
    let disk = setup.disk("pvc-1").await;
    // Regardless of the error that the cloud returns.
    setup.reject("AttachDisk", 403, "InvalidParameter.DeleteWithInstance");
    let rejected = setup.try_attach(minutes(5), &disk, &node(0)).await;
    assert_eq!(rejected.unwrap_err().failure(), Failure::DiskNotPortable);
    setup.attach(&disk, &node(0)).await;
    assert_eq!(delete_with_instance(&setup, &disk), json!(false));
    setup.reject("DetachDisk", 403, "InvalidParameter.DeleteWithInstance");
    let rejected = setup.try_detach(minutes(5), &disk, &node(0)).await;
    assert_eq!(rejected.unwrap_err().failure(), Failure::DiskNotPortable);
    assert_eq!(setup.calls("DetachDisk"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_ephemeral_disk_attaches_only_to_its_first_instance() {
    let setup = setup();
    let disk = setup.create(&ephemeral("pvc-1")).await.id;
    setup.attach(&disk, &node(0)).await;
    setup.detach(&disk, &node(0)).await;
    let moved = setup.try_attach(minutes(5), &disk, &node(1)).await.unwrap_err();
    let parts = ["DISK_NOT_PORTABLE", "stays with the first instance"];
    assert_error(&moved, FailureKind::FailedPrecondition, &parts);
    setup.attach(&disk, &node(0)).await;
}

#[tokio::test(start_paused = true)]
async fn the_error_names_the_code_if_the_cloud_rejects_detaching_the_category() {
    let setup = setup();
    let disk = setup.create(&ephemeral("pvc-1")).await.id;
    setup.attach(&disk, &node(0)).await;
    let code = "InvalidOperation.DiskCategoryUnsupported";
    setup.reject("DetachDisk", 403, code);
    let rejected = setup.try_detach(minutes(5), &disk, &node(0)).await.unwrap_err();
    assert_failure(&rejected, Failure::DiskNotPortable);
    assert_names(&rejected, &[code]);
    assert_eq!(setup.calls("DetachDisk"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_ephemeral_disk_supports_neither_snapshots_nor_a_category_change() {
    let setup = setup();
    let disk = setup.create(&ephemeral("pvc-1")).await.id;
    setup.attach(&disk, &node(0)).await;
    for alternatives in ["first", "last"] {
        setup.configure(&json!({"rules": {"alternatives": alternatives}}));
        let new = new_snapshot(alternatives, &disk);
        let rejected = setup.try_snapshot(minutes(5), &new).await;
        let error = rejected.unwrap_err();
        assert_failure(&error, Failure::SnapshotUnsupported);
        assert_eq!(error.failure_kind(), FailureKind::FailedPrecondition);
    }
    let change = category_change(Category::CloudEssd);
    let rejected = setup.try_modify(minutes(5), &disk, &change).await;
    assert_eq!(rejected.unwrap_err().failure(), Failure::ModifyRejected);
    let source = setup.disk("pvc-2").await;
    setup.attach(&source, &node(1)).await;
    let snapshot = setup.snapshot("snapshot", &source).await;
    let restored = NewDisk {
        snapshot: Some(snapshot),
        ..ephemeral("pvc-3")
    };
    let rejected = setup.try_create(minutes(5), &restored).await;
    let error = rejected.unwrap_err();
    assert_failure(&error, Failure::OutOfRange);
    assert_names(&error, &["not created from snapshots"]);
    assert_eq!(setup.rows().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_ephemeral_disk_resizes_within_the_limits_of_its_category() {
    let setup = setup();
    let disk = setup.create(&ephemeral("pvc-1")).await.id;
    setup.attach(&disk, &node(0)).await;
    let resized = setup.try_resize(minutes(5), &disk, gib(8192)).await;
    assert_eq!(resized.unwrap().size.0, 8192);
    let rejected = setup.try_resize(minutes(5), &disk, gib(8193)).await;
    assert_eq!(rejected.unwrap_err().failure(), Failure::OutOfRange);
    let small = NewDisk {
        size: between(1, 63),
        ..ephemeral("pvc-2")
    };
    let rejected = setup.try_create(minutes(5), &small).await;
    assert_eq!(rejected.unwrap_err().failure(), Failure::OutOfRange);
}

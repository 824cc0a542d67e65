//! Elastic ephemeral disks: attached and detached with `DeleteWithInstance`, as no other disk is.

use serde_json::{Value, json};

use diskplugin::disk::{FailureKind, NewDisk};
use diskplugin::model::{Category, Change, DiskId, Failure, InstanceId};

use crate::kit::{Setup, between, gib, minutes, new_disk, new_snapshot, text};

/// With two nodes of a type that takes ephemeral disks.
fn setup() -> Setup {
    Setup::with_multi_attach_nodes(2, &[])
}

fn node(n: usize) -> InstanceId {
    format!("i-{n}").parse().unwrap()
}

fn ephemeral(name: &str) -> NewDisk {
    NewDisk {
        size: gib(1),
        categories: vec![Category::EphemeralStandard],
        ..new_disk(name)
    }
}

fn is_deleted_with_instance(setup: &Setup, disk: &DiskId) -> Value {
    setup.row(disk)["delete_with_instance"].clone()
}

#[tokio::test(start_paused = true)]
async fn the_life_of_an_ephemeral_disk_takes_one_order_each() {
    let setup = setup();
    let row = setup
        .disks
        .provisioner
        .create(minutes(5), &ephemeral("pvc-1"))
        .await;
    let row = row.unwrap();
    assert_eq!(row.size.0, 64, "the least that is sold");
    setup
        .disks
        .attacher
        .attach(minutes(5), &row.id, &node(0))
        .await
        .unwrap();
    assert_eq!(is_deleted_with_instance(&setup, &row.id), json!(true));
    setup
        .disks
        .attacher
        .detach(minutes(5), &row.id, &node(0))
        .await
        .unwrap();
    setup
        .disks
        .provisioner
        .delete(minutes(5), &row.id)
        .await
        .unwrap();
    for action in ["CreateDisk", "AttachDisk", "DetachDisk", "DeleteDisk"] {
        assert_eq!(setup.calls(action), 1, "{action}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_the_refusal_shows_what_the_disk_is() {
    let setup = setup();
    let row = setup
        .disks
        .provisioner
        .create(minutes(5), &ephemeral("pvc-1"))
        .await;
    let disk = row.unwrap().id;
    let disks = setup.restarted();
    disks
        .attacher
        .attach(minutes(5), &disk, &node(0))
        .await
        .unwrap();
    let disks = setup.restarted();
    disks
        .attacher
        .detach(minutes(5), &disk, &node(0))
        .await
        .unwrap();
    assert_eq!(
        (setup.calls("AttachDisk"), setup.calls("DetachDisk")),
        (2, 2)
    );
    assert!(setup.attachments(&disk).is_empty());
}

#[tokio::test(start_paused = true)]
async fn no_other_disk_is_ever_deleted_with_its_instance() {
    let setup = setup();
    let disk = setup.disk("pvc-1").await;
    // Whatever the cloud answers.
    let refusal = json!({"code": {"status": 403, "code": "InvalidParameter.DeleteWithInstance"}});
    setup.fault("AttachDisk", &refusal);
    let refused = setup
        .disks
        .attacher
        .attach(minutes(5), &disk, &node(0))
        .await;
    assert_eq!(refused.unwrap_err().failure(), Failure::DiskNotPortable);
    setup
        .disks
        .attacher
        .attach(minutes(5), &disk, &node(0))
        .await
        .unwrap();
    assert_eq!(is_deleted_with_instance(&setup, &disk), json!(false));
    setup.fault("DetachDisk", &refusal);
    let refused = setup
        .disks
        .attacher
        .detach(minutes(5), &disk, &node(0))
        .await;
    assert_eq!(refused.unwrap_err().failure(), Failure::DiskNotPortable);
    assert_eq!(setup.calls("DetachDisk"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_ephemeral_disk_stays_with_its_first_instance() {
    let setup = setup();
    let row = setup
        .disks
        .provisioner
        .create(minutes(5), &ephemeral("pvc-1"))
        .await;
    let disk = row.unwrap().id;
    setup
        .disks
        .attacher
        .attach(minutes(5), &disk, &node(0))
        .await
        .unwrap();
    setup
        .disks
        .attacher
        .detach(minutes(5), &disk, &node(0))
        .await
        .unwrap();
    let moved = setup
        .disks
        .attacher
        .attach(minutes(5), &disk, &node(1))
        .await;
    let error = moved.unwrap_err();
    assert_eq!(error.failure_kind(), FailureKind::FailedPrecondition);
    let told = text(&error);
    assert!(told.contains("DISK_NOT_PORTABLE"), "{told}");
    assert!(told.contains("stays with the first instance"), "{told}");
    setup
        .disks
        .attacher
        .attach(minutes(5), &disk, &node(0))
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_never_detaches_the_disk_is_named() {
    let setup = setup();
    let row = setup
        .disks
        .provisioner
        .create(minutes(5), &ephemeral("pvc-1"))
        .await;
    let disk = row.unwrap().id;
    setup
        .disks
        .attacher
        .attach(minutes(5), &disk, &node(0))
        .await
        .unwrap();
    let code = "InvalidOperation.DiskCategoryUnsupported";
    setup.fault(
        "DetachDisk",
        &json!({"code": {"status": 403, "code": code}}),
    );
    let refused = setup
        .disks
        .attacher
        .detach(minutes(5), &disk, &node(0))
        .await;
    let error = refused.unwrap_err();
    assert_eq!(error.failure(), Failure::DiskNotPortable);
    assert!(text(&error).contains(code));
    assert_eq!(setup.calls("DetachDisk"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_ephemeral_disk_has_no_snapshots_clones_or_other_category() {
    let setup = setup();
    let row = setup
        .disks
        .provisioner
        .create(minutes(5), &ephemeral("pvc-1"))
        .await;
    let disk = row.unwrap().id;
    setup
        .disks
        .attacher
        .attach(minutes(5), &disk, &node(0))
        .await
        .unwrap();
    for alternatives in ["first", "last"] {
        setup.configure(&json!({"rules": {"alternatives": alternatives}}));
        let wanted = new_snapshot(alternatives, &disk);
        let refused = setup.disks.snapshotter.create(minutes(5), &wanted).await;
        let error = refused.unwrap_err();
        assert_eq!(error.failure(), Failure::SnapshotUnsupported, "{error:?}");
        assert_eq!(error.failure_kind(), FailureKind::FailedPrecondition);
    }
    let change = Change {
        category: Some(Category::CloudEssd),
        ..Change::default()
    };
    let refused = setup
        .disks
        .modifier
        .modify(minutes(5), &disk, &change)
        .await;
    assert_eq!(refused.unwrap_err().failure(), Failure::ModifyRejected);
    let source = setup.disk("pvc-2").await;
    setup
        .disks
        .attacher
        .attach(minutes(5), &source, &node(1))
        .await
        .unwrap();
    let snapshot = setup.snapshot("snapshot", &source).await;
    let restored = NewDisk {
        snapshot: Some(snapshot),
        ..ephemeral("pvc-3")
    };
    let refused = setup.disks.provisioner.create(minutes(5), &restored).await;
    let error = refused.unwrap_err();
    assert_eq!(error.failure(), Failure::OutOfRange);
    assert!(
        text(&error).contains("not created from snapshots"),
        "{}",
        text(&error)
    );
    assert_eq!(setup.rows().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_ephemeral_disk_grows_within_its_sizes() {
    let setup = setup();
    let row = setup
        .disks
        .provisioner
        .create(minutes(5), &ephemeral("pvc-1"))
        .await;
    let disk = row.unwrap().id;
    setup
        .disks
        .attacher
        .attach(minutes(5), &disk, &node(0))
        .await
        .unwrap();
    let grown = setup
        .disks
        .resizer
        .resize(minutes(5), &disk, gib(8192))
        .await;
    assert_eq!(grown.unwrap().size.0, 8192);
    let refused = setup
        .disks
        .resizer
        .resize(minutes(5), &disk, gib(8193))
        .await;
    assert_eq!(refused.unwrap_err().failure(), Failure::OutOfRange);
    let small = NewDisk {
        size: between(1, 63),
        ..ephemeral("pvc-2")
    };
    let refused = setup.disks.provisioner.create(minutes(5), &small).await;
    assert_eq!(refused.unwrap_err().failure(), Failure::OutOfRange);
}

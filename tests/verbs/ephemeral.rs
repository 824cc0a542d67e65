//! Elastic ephemeral disks: attached and detached with `DeleteWithInstance`, as no other disk is.

use serde_json::{Value, json};

use diskplugin::disk::{FailureKind, NewDisk};
use diskplugin::model::{Category, Change, DiskId, Failure, InstanceId};

use crate::kit::{Stage, between, gib, minutes, new_snapshot, text, wanted};

/// With two nodes of a type that takes ephemeral disks.
fn stage() -> Stage {
    Stage::sharers(2, &[])
}

fn node(n: usize) -> InstanceId {
    format!("i-{n}").parse().unwrap()
}

fn ephemeral(name: &str) -> NewDisk {
    NewDisk {
        size: gib(1),
        categories: vec![Category::EphemeralStandard],
        ..wanted(name)
    }
}

fn is_deleted_with_instance(stage: &Stage, disk: &DiskId) -> Value {
    stage.row(disk)["delete_with_instance"].clone()
}

#[tokio::test(start_paused = true)]
async fn the_life_of_an_ephemeral_disk_takes_one_order_each() {
    let stage = stage();
    let row = stage
        .disks
        .provisioner
        .create(minutes(5), &ephemeral("pvc-1"))
        .await;
    let row = row.unwrap();
    assert_eq!(row.size.0, 64, "the least that is sold");
    stage
        .disks
        .attacher
        .attach(minutes(5), &row.id, &node(0))
        .await
        .unwrap();
    assert_eq!(is_deleted_with_instance(&stage, &row.id), json!(true));
    stage
        .disks
        .attacher
        .detach(minutes(5), &row.id, &node(0))
        .await
        .unwrap();
    stage
        .disks
        .provisioner
        .delete(minutes(5), &row.id)
        .await
        .unwrap();
    for action in ["CreateDisk", "AttachDisk", "DetachDisk", "DeleteDisk"] {
        assert_eq!(stage.calls(action), 1, "{action}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_the_refusal_shows_what_the_disk_is() {
    let stage = stage();
    let row = stage
        .disks
        .provisioner
        .create(minutes(5), &ephemeral("pvc-1"))
        .await;
    let disk = row.unwrap().id;
    let disks = stage.restarted();
    disks
        .attacher
        .attach(minutes(5), &disk, &node(0))
        .await
        .unwrap();
    let disks = stage.restarted();
    disks
        .attacher
        .detach(minutes(5), &disk, &node(0))
        .await
        .unwrap();
    assert_eq!(
        (stage.calls("AttachDisk"), stage.calls("DetachDisk")),
        (2, 2)
    );
    assert!(stage.holders(&disk).is_empty());
}

#[tokio::test(start_paused = true)]
async fn no_other_disk_is_ever_deleted_with_its_instance() {
    let stage = stage();
    let disk = stage.disk("pvc-1").await;
    // Whatever the cloud answers.
    let refusal = json!({"code": {"status": 403, "code": "InvalidParameter.DeleteWithInstance"}});
    stage.fault("AttachDisk", &refusal);
    let refused = stage
        .disks
        .attacher
        .attach(minutes(5), &disk, &node(0))
        .await;
    assert_eq!(refused.unwrap_err().failure(), Failure::DiskNotPortable);
    stage
        .disks
        .attacher
        .attach(minutes(5), &disk, &node(0))
        .await
        .unwrap();
    assert_eq!(is_deleted_with_instance(&stage, &disk), json!(false));
    stage.fault("DetachDisk", &refusal);
    let refused = stage
        .disks
        .attacher
        .detach(minutes(5), &disk, &node(0))
        .await;
    assert_eq!(refused.unwrap_err().failure(), Failure::DiskNotPortable);
    assert_eq!(stage.calls("DetachDisk"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_ephemeral_disk_stays_with_its_first_instance() {
    let stage = stage();
    let row = stage
        .disks
        .provisioner
        .create(minutes(5), &ephemeral("pvc-1"))
        .await;
    let disk = row.unwrap().id;
    stage
        .disks
        .attacher
        .attach(minutes(5), &disk, &node(0))
        .await
        .unwrap();
    stage
        .disks
        .attacher
        .detach(minutes(5), &disk, &node(0))
        .await
        .unwrap();
    let moved = stage
        .disks
        .attacher
        .attach(minutes(5), &disk, &node(1))
        .await;
    let error = moved.unwrap_err();
    assert_eq!(error.failure_kind(), FailureKind::FailedPrecondition);
    let told = text(&error);
    assert!(told.contains("DISK_NOT_PORTABLE"), "{told}");
    assert!(told.contains("stays with the first instance"), "{told}");
    stage
        .disks
        .attacher
        .attach(minutes(5), &disk, &node(0))
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_never_detaches_the_disk_is_named() {
    let stage = stage();
    let row = stage
        .disks
        .provisioner
        .create(minutes(5), &ephemeral("pvc-1"))
        .await;
    let disk = row.unwrap().id;
    stage
        .disks
        .attacher
        .attach(minutes(5), &disk, &node(0))
        .await
        .unwrap();
    let code = "InvalidOperation.DiskCategoryUnsupported";
    stage.fault(
        "DetachDisk",
        &json!({"code": {"status": 403, "code": code}}),
    );
    let refused = stage
        .disks
        .attacher
        .detach(minutes(5), &disk, &node(0))
        .await;
    let error = refused.unwrap_err();
    assert_eq!(error.failure(), Failure::DiskNotPortable);
    assert!(text(&error).contains(code));
    assert_eq!(stage.calls("DetachDisk"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_ephemeral_disk_has_no_snapshots_clones_or_other_category() {
    let stage = stage();
    let row = stage
        .disks
        .provisioner
        .create(minutes(5), &ephemeral("pvc-1"))
        .await;
    let disk = row.unwrap().id;
    stage
        .disks
        .attacher
        .attach(minutes(5), &disk, &node(0))
        .await
        .unwrap();
    for alternatives in ["first", "last"] {
        stage.configure(&json!({"rules": {"alternatives": alternatives}}));
        let wanted = new_snapshot(alternatives, &disk);
        let refused = stage.disks.snapshotter.create(minutes(5), &wanted).await;
        let error = refused.unwrap_err();
        assert_eq!(error.failure(), Failure::SnapshotUnsupported, "{error:?}");
        assert_eq!(error.failure_kind(), FailureKind::FailedPrecondition);
    }
    let change = Change {
        category: Some(Category::CloudEssd),
        ..Change::default()
    };
    let refused = stage
        .disks
        .modifier
        .modify(minutes(5), &disk, &change)
        .await;
    assert_eq!(refused.unwrap_err().failure(), Failure::ModifyRejected);
    let source = stage.disk("pvc-2").await;
    stage
        .disks
        .attacher
        .attach(minutes(5), &source, &node(1))
        .await
        .unwrap();
    let snapshot = stage.snapshot("snapshot", &source).await;
    let restored = NewDisk {
        snapshot: Some(snapshot),
        ..ephemeral("pvc-3")
    };
    let refused = stage.disks.provisioner.create(minutes(5), &restored).await;
    let error = refused.unwrap_err();
    assert_eq!(error.failure(), Failure::OutOfRange);
    assert!(
        text(&error).contains("not created from snapshots"),
        "{}",
        text(&error)
    );
    assert_eq!(stage.rows().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_ephemeral_disk_grows_within_its_sizes() {
    let stage = stage();
    let row = stage
        .disks
        .provisioner
        .create(minutes(5), &ephemeral("pvc-1"))
        .await;
    let disk = row.unwrap().id;
    stage
        .disks
        .attacher
        .attach(minutes(5), &disk, &node(0))
        .await
        .unwrap();
    let grown = stage
        .disks
        .resizer
        .resize(minutes(5), &disk, gib(8192))
        .await;
    assert_eq!(grown.unwrap().size.0, 8192);
    let refused = stage
        .disks
        .resizer
        .resize(minutes(5), &disk, gib(8193))
        .await;
    assert_eq!(refused.unwrap_err().failure(), Failure::OutOfRange);
    let small = NewDisk {
        size: between(1, 63),
        ..ephemeral("pvc-2")
    };
    let refused = stage.disks.provisioner.create(minutes(5), &small).await;
    assert_eq!(refused.unwrap_err().failure(), Failure::OutOfRange);
}

//! Responses that omit rows, return other rows, or fail because of a malformed ID.

use super::{Fault, faulty_services};
use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn no_second_disk_is_created_when_own_disks_are_not_returned() {
    let setup = Setup::new(&[]);
    let services = faulty_services(&setup, Fault::HidesOwnedDisks);
    for _ in 0..2 {
        drop(services.try_create(seconds(45), &new_disk("pvc-1")).await);
    }
    assert_eq!(setup.rows().len(), 1, "{:#?}", setup.rows());
}

#[tokio::test(start_paused = true)]
async fn wrong_rows_do_not_prove_absence() {
    for fault in [Fault::HidesOwnedDisks, Fault::IgnoresIdFilter, Fault::TruncatesPages] {
        let setup = Setup::new(&[]);
        let other = setup.disk("other").await;
        sleep(5).await;
        let disk = setup.disk("pvc-1").await;
        sleep(5).await;
        let services = faulty_services(&setup, fault);
        if fault == Fault::TruncatesPages {
            services.disks.inventory.disk(seconds(9), &other).await.unwrap();
        }
        let outcome = services.try_delete(seconds(45), &disk).await;
        let is_deleted = setup.row(&disk).is_null();
        assert!(outcome.is_err() || is_deleted, "{fault:?}: OK, but the disk exists");
    }
}

#[tokio::test(start_paused = true)]
async fn an_ignored_tag_filter_does_not_return_the_disk_of_another_name() {
    let setup = Setup::new(&[]);
    let other = setup.disk("other").await;
    sleep(5).await;
    let services = faulty_services(&setup, Fault::IgnoresTagFilter);
    setup.faults("CreateDisk", 1, &error_code(403, "OperationDenied.NoStock"));
    for _ in 0..2 {
        if let Ok(disk) = services.try_create(seconds(30), &new_disk("pvc-1")).await {
            assert_ne!(disk.id, other, "pvc-1 got the disk of \"other\"");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_ignored_tag_filter_does_not_delete_a_user_snapshot() {
    let setup = Setup::new(&[]);
    let source = setup.attached("source").await;
    let kept = setup.snapshot("kept", &source).await;
    sleep(60).await;
    let clone = NewDisk {
        clone_of: Some(source.clone()),
        ..new_disk("clone")
    };
    let created = setup.try_clone(minutes(5), &clone, &source).await.unwrap();
    sleep(60).await;
    let services = faulty_services(&setup, Fault::IgnoresTagFilter);
    let _ = services.try_delete(seconds(45), &created.id).await;
    let left = setup.snapshots();
    assert!(left.iter().any(|row| row["id"] == kept.as_str()), "{left:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_new_process_does_not_list_zero_disks_from_an_empty_response() {
    let setup = Setup::new(&[]);
    let disk = setup.attached("pvc-1").await;
    let restarted = setup.restarted();
    restarted.disks.inventory.disk(seconds(9), &disk).await.unwrap();
    restarted.attach(&disk, &node_one()).await;
    sleep(60).await;
    setup.hide_disks(100);
    let listed = restarted.disks.inventory.list(seconds(45), |row| row.id.clone()).await;
    assert!(listed.is_err(), "{listed:?}");
}

#[tokio::test(start_paused = true)]
async fn malformed_ids_do_not_fail_requests_for_other_ids() {
    for bad in [1, 2, 3, 4, 6] {
        let setup = Setup::new(&[]);
        let mut good = setup.create_disks(60).await;
        good.sort();
        sleep(5).await;
        let services = faulty_services(&setup, Fault::RejectsIds("malformed"));
        let mut lookups = JoinSet::new();
        // Distributed evenly in the order of IDs.
        for n in 0..bad {
            let id: DiskId = format!("{}malformed", good[n * 60 / bad + 3]).parse().unwrap();
            let services = services.clone();
            lookups.spawn(async move {
                drop(services.disks.inventory.disk(seconds(30), &id).await);
                Ok(())
            });
        }
        for id in good {
            let services = services.clone();
            lookups.spawn(async move { services.disks.inventory.disk(seconds(30), &id).await.map(|_| ()) });
        }
        for lookup in lookups.join_all().await {
            expect("read of another disk", lookup);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_about_another_resource_does_not_prove_a_deletion() {
    for about in [
        "InvalidInstanceId.NotFound",
        "InvalidSnapshotId.NotFound",
        "InvalidSnapshotGroupId.NotFound",
        "InvalidDisk.AlreadyDetached",
    ] {
        let setup = Setup::new(&[]);
        let disk = setup.disk("pvc-1").await;
        setup.faults("DeleteDisk", 1000, &error_code(404, about));
        let outcome = setup.try_delete(seconds(20), &disk).await;
        assert!(outcome.is_err() || setup.rows().is_empty(), "{about}");
    }
}

//! Responses that hide rows, return others, or fail because of an ID.

use std::sync::Arc;

use serde_json::json;
use tokio::task::JoinSet;

use diskplugin::disk::NewDisk;
use diskplugin::model::DiskId;

use super::{Twist, code, pass, twisted};
use crate::kit::{Setup, minutes, node_one, seconds, text, new_disk};

#[tokio::test(start_paused = true)]
async fn an_account_that_sees_only_disks_of_others_creates_no_second_disk() {
    let setup = Setup::new(&[]).with_system_disk();
    let blind = twisted(&setup, Twist::HidesOurs);
    for _ in 0..2 {
        let outcome = blind
            .provisioner
            .create(seconds(45), &new_disk("pvc-1"))
            .await;
        drop(outcome);
    }
    assert_eq!(setup.rows().len(), 1, "{:#?}", setup.rows());
}

#[tokio::test(start_paused = true)]
async fn an_account_that_sees_only_disks_of_others_deletes_with_proof_only() {
    let setup = Setup::new(&[]).with_system_disk();
    let disk = setup.disk("pvc-1").await;
    let blind = twisted(&setup, Twist::HidesOurs);
    let outcome = blind.provisioner.delete(seconds(45), &disk).await;
    assert!(
        outcome.is_err() || setup.rows().is_empty(),
        "OK, and the disk is there"
    );
}

#[tokio::test(start_paused = true)]
async fn rows_that_were_not_asked_for_prove_no_absence() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    setup.disk("other").await;
    pass(5).await;
    let odd = twisted(&setup, Twist::ReturnsOthers);
    let outcome = odd.provisioner.delete(seconds(45), &disk).await;
    assert!(
        outcome.is_err() || setup.rows().len() == 1,
        "OK, and the disk is there"
    );
}

#[tokio::test(start_paused = true)]
async fn a_page_that_ends_early_proves_no_absence() {
    let setup = Setup::new(&[]);
    let other = setup.disk("other").await;
    pass(5).await;
    let disk = setup.disk("pvc-1").await;
    pass(5).await;
    let odd = twisted(&setup, Twist::ShortPages);
    odd.inventory.disk(seconds(9), &other).await.unwrap();
    let outcome = odd.provisioner.delete(seconds(45), &disk).await;
    assert!(
        outcome.is_err() || setup.rows().len() == 1,
        "OK, and the disk is there"
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_that_ignores_tags_gives_no_name_another_disk() {
    let setup = Setup::new(&[]);
    let other = setup.disk("other").await;
    pass(5).await;
    let odd = twisted(&setup, Twist::IgnoresTags);
    setup.faults("CreateDisk", 1, &code(403, "OperationDenied.NoStock"));
    for _ in 0..2 {
        if let Ok(disk) = odd.provisioner.create(seconds(30), &new_disk("pvc-1")).await {
            assert_ne!(disk.id, other, "pvc-1 was given the disk of \"other\"");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_ignores_tags_has_no_foreign_snapshot_deleted() {
    let setup = Setup::new(&[]);
    let source = setup.disk("source").await;
    let attacher = &setup.disks.attacher;
    attacher.attach(minutes(1), &source, &node_one()).await.unwrap();
    let kept = setup.snapshot("kept", &source).await;
    pass(60).await;
    let clone = NewDisk {
        clone_of: Some(source.clone()),
        ..new_disk("clone")
    };
    let made = setup
        .disks
        .provisioner
        .create_clone(minutes(5), &clone, &source)
        .await
        .unwrap();
    pass(60).await;
    let odd = twisted(&setup, Twist::IgnoresTags);
    let _ = odd.provisioner.delete(seconds(45), &made.id).await;
    let left = setup.cloud.state()["snapshots"].as_array().unwrap().clone();
    assert!(
        left.iter().any(|row| row["id"] == kept.as_str()),
        "the user's snapshot is deleted: {left:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_fresh_process_reports_no_empty_list_from_an_empty_response() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    setup.attach(&disk, &node_one()).await;
    let restarted = setup.restarted();
    restarted.inventory.disk(seconds(9), &disk).await.unwrap();
    restarted
        .attacher
        .attach(minutes(1), &disk, &node_one())
        .await
        .unwrap();
    pass(60).await;
    setup.configure(
        &json!({"faults": [{"action": "DescribeDisks", "for": "100s", "kind": "no-rows"}]}),
    );
    let listed = restarted
        .inventory
        .list(seconds(45), |row| row.id.clone())
        .await;
    assert!(
        listed.is_err(),
        "OK with {listed:?}, though this process has attached {disk}"
    );
}

#[tokio::test(start_paused = true)]
async fn several_malformed_ids_fail_nobody_else() {
    for bad in [1, 2, 3, 4, 6] {
        let setup = Setup::new(&[]);
        let mut good = Vec::new();
        for n in 0..60 {
            good.push(setup.disk(&format!("pvc-{n}")).await);
        }
        good.sort();
        pass(5).await;
        let odd = twisted(&setup, Twist::Malformed("malformed"));
        let mut looks = JoinSet::new();
        // Spread among the others in the order of ids.
        for n in 0..bad {
            let id: DiskId = format!("{}malformed", good[n * 60 / bad + 3])
                .parse()
                .unwrap();
            let odd = Arc::clone(&odd);
            looks.spawn(async move {
                let _ = odd.inventory.disk(seconds(30), &id).await;
                Ok(())
            });
        }
        for id in good {
            let odd = Arc::clone(&odd);
            looks.spawn(async move { odd.inventory.disk(seconds(30), &id).await.map(|_| ()) });
        }
        let failed: Vec<_> = looks
            .join_all()
            .await
            .into_iter()
            .filter_map(|look| look.err())
            .collect();
        let first = failed.first().map(text);
        assert!(
            failed.is_empty(),
            "{bad} malformed: {} others failed: {first:?}",
            failed.len()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_code_about_another_resource_is_no_proof_of_a_deletion() {
    for about in [
        "InvalidInstanceId.NotFound",
        "InvalidSnapshotId.NotFound",
        "InvalidSnapshotGroupId.NotFound",
        "InvalidDisk.AlreadyDetached",
    ] {
        let setup = Setup::new(&[]);
        let disk = setup.disk("pvc-1").await;
        setup.faults("DeleteDisk", 1000, &code(404, about));
        let outcome = setup.disks.provisioner.delete(seconds(20), &disk).await;
        assert!(
            outcome.is_err() || setup.rows().is_empty(),
            "{about}: OK, and the disk is there"
        );
    }
}

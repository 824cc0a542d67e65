//! The life of a volume with no more rights than its policy gives.

use std::collections::BTreeSet;

use crate::kit::{Setup, gib, minutes, new_disk, node_one, node_two};

/// The actions that a policy allows.
fn allowed(text: &str) -> BTreeSet<String> {
    let policy: serde_json::Value = serde_json::from_str(text).unwrap();
    let actions = policy["Statement"][0]["Action"].as_array().unwrap();
    let actions = actions.iter().map(|action| action.as_str().unwrap());
    actions
        .map(|action| action.trim_start_matches("ecs:").to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_volume_lives_and_dies_with_the_rights_for_volumes_only() {
    let setup = Setup::long_running(&[]).await;
    let disks = &setup.disks;
    let disk = disks
        .provisioner
        .create(minutes(5), &new_disk("pvc-1"))
        .await
        .unwrap()
        .id;
    disks
        .attacher
        .attach(minutes(1), &disk, &node_one())
        .await
        .unwrap();
    disks
        .resizer
        .resize(minutes(1), &disk, gib(30))
        .await
        .unwrap();
    disks.inventory.health(minutes(1), &disk).await.unwrap();
    disks
        .attacher
        .detach(minutes(1), &disk, &node_one())
        .await
        .unwrap();
    disks
        .attacher
        .attach(minutes(1), &disk, &node_two())
        .await
        .unwrap();
    disks
        .attacher
        .detach(minutes(1), &disk, &node_two())
        .await
        .unwrap();
    disks
        .provisioner
        .capacity(minutes(1), &new_disk("pvc-2"))
        .await
        .unwrap();
    let nodes = BTreeSet::from([node_one(), node_two()]);
    let types = disks
        .instance_types
        .types_of_instances(minutes(1), &nodes)
        .await
        .into_result()
        .unwrap();
    assert_eq!(types.len(), 2);
    disks
        .instance_types
        .region_attach_limits(minutes(1))
        .await
        .unwrap();
    disks.provisioner.delete(minutes(1), &disk).await.unwrap();
    let called: BTreeSet<String> = setup.cloud.counts().keys().cloned().collect();
    assert!(called.len() > 6, "{called:?}");
    let fewer = allowed(include_str!("../../deploy/ram-policies/volumes-only.json"));
    let beyond: Vec<_> = called.difference(&fewer).collect();
    assert!(beyond.is_empty(), "{beyond:?}");
    assert!(setup.rows().is_empty());
}

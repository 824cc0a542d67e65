//! The lifecycle of a volume uses only the actions that the RAM policy allows.

use crate::verbs::kit::*;

fn allowed_actions(policy: &str) -> BTreeSet<String> {
    let policy: serde_json::Value = serde_json::from_str(policy).unwrap();
    let actions = policy["Statement"][0]["Action"].as_array().unwrap();
    let actions = actions.iter().map(|action| action.as_str().unwrap());
    actions
        .map(|action| action.trim_start_matches("ecs:").to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn the_lifecycle_of_a_volume_uses_only_the_actions_of_the_volumes_only_policy() {
    let setup = Setup::new(&[]);
    let disks = &setup.disks;
    let disk = setup.attached("pvc-1").await;
    setup.resize(&disk, gib(30)).await;
    disks.inventory.health(minutes(1), &disk).await.unwrap();
    setup.detach(&disk, &node_one()).await;
    setup.attach(&disk, &node_two()).await;
    setup.detach(&disk, &node_two()).await;
    let new = new_disk("pvc-2");
    disks.provisioner.capacity(minutes(1), &new).await.unwrap();
    let nodes = BTreeSet::from([node_one(), node_two()]);
    let types = disks.instance_types.types_of_instances(minutes(1), &nodes).await;
    assert!(types.1.is_none());
    assert_eq!(types.0.len(), 2);
    let types = types.0.into_values().collect();
    let limits = disks.instance_types.attach_limits(minutes(1), &types).await;
    assert!(limits.1.is_none());
    setup.delete(&disk).await;
    let called: BTreeSet<String> = setup.cloud.counts().keys().cloned().collect();
    assert!(called.len() > 6, "{called:?}");
    let allowed = allowed_actions(include_str!("../../../deploy/ram-policies/volumes-only.json"));
    let excess: Vec<_> = called.difference(&allowed).collect();
    assert!(excess.is_empty(), "{excess:?}");
    assert!(setup.rows().is_empty());
}

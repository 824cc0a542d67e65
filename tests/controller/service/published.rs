//! ListVolumes with `LIST_VOLUMES_PUBLISHED_NODES`. csi-attacher publishes every volume again whose attachment the list
//! lacks.

use std::collections::BTreeMap;

use fake_ecs::ExistingDisk;

use crate::service::kit::*;

/// Longer than reads lag.
const SETTLED: Duration = Duration::from_secs(10);

fn stage(flags: &[&str]) -> Stage {
    enabled(Stage::new(flags))
}

fn enabled(stage: Stage) -> Stage {
    Stage::over(stage.cloud, stage.service.with_published_nodes(true))
}

/// A disk that the driver did not create.
fn existing(stage: &Stage, system: bool, instance: Option<&str>) -> String {
    let disk = stage.cloud.add_disk(&ExistingDisk {
        category: "cloud_essd".to_owned(),
        zone: Some("cn-beijing-a".to_owned()),
        system,
        portable: true,
        instance: instance.map(str::to_owned),
    });
    disk.to_string()
}

/// The nodes of each listed volume.
async fn list(stage: &Stage) -> RpcResult<BTreeMap<String, Vec<String>>> {
    let listed = stage.list_volumes(ListVolumesRequest::default()).await?;
    let entries = listed.entries.into_iter().map(|entry| {
        let nodes = entry.status.unwrap().published_node_ids;
        (entry.volume.unwrap().volume_id, nodes)
    });
    Ok(entries.collect())
}

#[tokio::test(start_paused = true)]
async fn published_volumes_are_listed_with_and_without_the_tag() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let stage = stage(&[stale]);
        let (own, foreign) = (stage.volume("pvc-1").await, existing(&stage, false, None));
        existing(&stage, false, None);
        existing(&stage, true, Some(NODE));
        tokio::time::sleep(SETTLED).await;
        for volume in [&own, &foreign] {
            stage.publish(volume, NODE).await.unwrap();
            assert_eq!(list(&stage).await.unwrap()[volume], [NODE], "{stale}");
        }
        tokio::time::sleep(SETTLED).await;
        let all = BTreeMap::from([own, foreign].map(|volume| (volume, vec![NODE.to_owned()])));
        assert_eq!(list(&stage).await.unwrap(), all);
        assert_eq!(list(&enabled(stage.restarted())).await.unwrap(), all);
    }
}

#[tokio::test(start_paused = true)]
async fn disks_of_another_account_do_not_replace_those_of_the_cluster() {
    let stage = stage(&[]);
    existing(&stage, false, Some(NODE));
    assert_eq!(list(&stage).await.unwrap_err().code(), Code::Unavailable);
}

#[tokio::test(start_paused = true)]
async fn publishing_again_attaches_only_what_is_not_attached() {
    let stage = stage(&[]);
    let foreign = existing(&stage, false, None);
    for volume in [stage.volume("pvc-1").await, foreign] {
        stage.cloud.clear_calls();
        for _ in 0..5 {
            stage.publish(&volume, NODE).await.unwrap();
            tokio::time::sleep(SETTLED).await;
        }
        assert_eq!(stage.calls("AttachDisk"), 1);
        // A new process reads after the rejection, once.
        let restarted = stage.restarted();
        let publish = async || {
            restarted.publish(&volume, NODE).await.unwrap();
            stage.calls("AttachDisk")
        };
        let first = publish().await;
        for _ in 0..5 {
            assert_eq!(publish().await, first);
        }
        stage.cloud.release(&volume);
        tokio::time::sleep(SETTLED).await;
        stage.publish(&volume, NODE).await.unwrap();
        assert_eq!(holders(&stage, &volume), [NODE]);
        stage.unpublish(&volume, NODE).await.unwrap();
        stage.publish(&volume, NODE).await.unwrap();
        assert_eq!(holders(&stage, &volume), [NODE]);
    }
}

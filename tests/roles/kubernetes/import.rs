//! `diskplugin import`: what it prints, refuses and changes.

use ::ecs::AttachDisk;
use serde_json::{Value, json};

use diskplugin::base::Deadline;
use diskplugin::model::tag;

use crate::common::ecs;
use crate::common::process::{Ended, diskplugin};
use crate::kubernetes::kit::DRIVER;
use crate::kubernetes::orphans::fixture::{Fixture, PVS};
use crate::running::SOON;
use crate::text::{assert_failed, assert_has, assert_lacks, assert_succeeded};

const CSI_NODE: &str = "/apis/storage.k8s.io/v1/csinodes/node";

async fn import(of: &Fixture, flags: &[&str]) -> Ended {
    let start = diskplugin(["import", "--region=cn-beijing"]).keys();
    let start = start.args([format!("--ecs-endpoint={}", of.kit.fake.url)]);
    let start = start.args([format!("--kubeconfig={}", of.kit.kubeconfig().display())]);
    start.args(flags).ended().await
}

async fn row(of: &Fixture, disk: &str) -> Value {
    let rows = of.kit.fake.disks().await;
    rows.into_iter().find(|row| row["id"] == disk).unwrap()
}

#[tokio::test]
async fn a_disk_is_only_read_without_adopt_and_tagged_once_with_it() {
    let fixture = Fixture::new().await;
    let disk = fixture.disk(None).await;
    let before = row(&fixture, &disk).await;
    let printed = import(&fixture, &[&disk]).await;
    assert_succeeded(&printed);
    assert_has(&printed.stdout, &["kind: PersistentVolume\n", "fsType: ext4", &disk]);
    assert_failed(&import(&fixture, &[&disk, "--adopt"]).await, 64, &["--cluster-id"]);
    assert_eq!(row(&fixture, &disk).await, before);
    for _ in 0..2 {
        let adopted = import(&fixture, &[&disk, "--adopt", "--cluster-id=c-test"]).await;
        assert_eq!((adopted.code, adopted.stdout), (Some(0), printed.stdout.clone()));
    }
    assert_eq!(row(&fixture, &disk).await["tags"][tag::CLUSTER], "c-test");
    assert_eq!(fixture.kit.fake.count("TagResources").await, 1);
    let other = import(&fixture, &[&disk, "--adopt", "--cluster-id=c-other"]).await;
    assert_failed(&other, 1, &["it belongs to cluster ID c-test"]);
    let missing = import(&fixture, &["d-none"]).await;
    assert_failed(&missing, 1, &["the region cn-beijing has no disk d-none"]);
}

#[tokio::test]
async fn a_disk_of_another_volume_is_refused_and_an_unchecked_one_noted() {
    let fixture = Fixture::new().await;
    let disk = fixture.disk(None).await;
    let vendor = json!({"driver": "diskplugin.csi.alibabacloud.com", "volumeHandle": disk});
    let flex = json!({"driver": "alicloud/disk", "options": {"volumeId": disk}});
    for spec in [json!({"csi": vendor}), json!({"flexVolume": flex})] {
        fixture
            .kit
            .put(&format!("{PVS}/old"), json!({"metadata": {}, "spec": spec}));
        assert_failed(&import(&fixture, &[&disk]).await, 1, &["PersistentVolume old uses it"]);
    }
    fixture
        .kit
        .put(&format!("{PVS}/old"), json!({"metadata": {}, "spec": {}}));
    fixture.volume(&disk, &disk, "Bound");
    let keys = json!(["topology.kubernetes.io/zone", "disk.diskplugin.csi.example/cloud_essd"]);
    let rows = json!([{"name": DRIVER, "nodeID": "i-one", "topologyKeys": keys}]);
    fixture
        .kit
        .put(CSI_NODE, json!({"metadata": {}, "spec": {"drivers": rows}}));
    let printed = import(&fixture, &[&disk]).await;
    assert_succeeded(&printed);
    assert_has(&printed.stdout, &["key: disk.diskplugin.csi.example/cloud_essd"]);
    fixture.kit.forbid(&["GET /api/v1/persistentvolumes"]);
    let printed = import(&fixture, &[&disk]).await;
    assert_eq!(printed.code, Some(0));
    assert_has(
        &printed.stderr,
        &["note: not checked whether a PersistentVolume uses the disk"],
    );
    assert_lacks(&printed.stdout, &["note", "key: disk."]);
}

#[tokio::test]
async fn an_adopted_disk_is_not_deleted_with_its_instance() {
    let fixture = Fixture::new().await;
    let disk = fixture.disk(None).await;
    let attach = AttachDisk {
        delete_with_instance: true,
        ..ecs::attach_to(&disk.parse().unwrap(), &"i-one".parse().unwrap())
    };
    let deadline = Deadline::after(SOON);
    ecs::client(&fixture.kit.fake)
        .attach_disk(deadline, &attach)
        .await
        .unwrap();
    let printed = import(&fixture, &[&disk]).await;
    assert_has(&printed.stderr, &["deleted with the instance", "attached to i-one"]);
    let adopted = import(&fixture, &[&disk, "--adopt", "--cluster-id=c-test"]).await;
    assert_eq!(adopted.code, Some(0), "{adopted:?}");
    assert_lacks(&adopted.stderr, &["deleted with the instance"]);
    fixture.kit.fake.instance(json!({"op": "remove", "id": "i-one"})).await;
    assert!(fixture.exists(&disk).await);
}

//! Data survives restarts of pods and containers.

use serde_json::{Value, json};

use crate::api::text;
use crate::command::succeed;
use crate::install::{self, NAME};
use crate::namespace::claim;
use crate::path::{core, grouped};
use crate::plane::NAMESPACE;
use crate::scene::Scene;
use crate::wait::until;

/// The claim of the StatefulSet.
pub(crate) const CLAIM: &str = "data-db-0";

/// A StatefulSet writes, its pod is recreated, its container is killed, its volume grows in use, and a snapshot of it
/// is restored.
pub(crate) async fn database(scene: &Scene<'_>) {
    let sets = grouped("apps", &scene.name, "statefulsets");
    scene.api.create(&sets, &stateful_set()).await;
    scene.running("db-0").await;
    let volume = scene.bound(CLAIM).await;
    write(scene, "db-0").await;

    // The pod is deleted, and recreated after the disk was detached.
    let first = scene.running("db-0").await;
    scale(scene, 0).await;
    scene.detached(&volume).await;
    scale(scene, 1).await;
    let second = scene.running("db-0").await;
    assert_ne!(text(&first, "/metadata/uid"), text(&second, "/metadata/uid"));
    intact(scene, "db-0").await;

    // The container ends, and with it the process that sends the signal.
    scene.sh("db-0", "echo after >> /data/more && sync").await;
    scene.try_sh("db-0", "kill -TERM 1").await;
    until("the container was restarted", async || {
        let pod = scene.api.get(&scene.path("pods", "db-0")).await?;
        (pod["status"]["containerStatuses"][0]["restartCount"].as_u64()? > 0).then_some(())
    })
    .await;
    scene.running("db-0").await;
    intact(scene, "db-0").await;
    assert_eq!(scene.sh("db-0", "cat /data/more").await, "after");

    // The volume grows while it is mounted.
    let before = size(scene, "db-0").await;
    let larger = json!({"spec": {"resources": {"requests": {"storage": "30Gi"}}}});
    let path = scene.path("persistentvolumeclaims", CLAIM);
    scene.api.change(&path, &larger).await;
    until("the filesystem has grown", async || {
        (size(scene, "db-0").await > before + 9 * 1024 * 1024).then_some(())
    })
    .await;
    until("the claim has the new size", async || {
        let claim = scene.api.get(&path).await?;
        (claim["status"]["capacity"]["storage"] == "30Gi").then_some(())
    })
    .await;
    intact(scene, "db-0").await;

    // Later writes are not in the volume that is restored from the snapshot.
    scene.sh("db-0", "sync").await;
    snapshot(scene, "cut", CLAIM).await;
    scene.sh("db-0", "echo later > /data/later && sync").await;
    let mut restored = claim("restored", "disk-xfs");
    restored["spec"]["resources"]["requests"]["storage"] = json!("30Gi");
    restored["spec"]["dataSource"] =
        json!({"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "cut"});
    scene.make("persistentvolumeclaims", &restored).await;
    let mut reader = Scene::shell("reader", &["restored"]);
    reader["spec"]["containers"][0]["volumeMounts"][0]["mountPath"] = json!("/data");
    scene.make("pods", &reader).await;
    scene.running("reader").await;
    intact(scene, "reader").await;
    let content = scene.sh("reader", "cat /data/more; ls /data | tr '\\n' ' '").await;
    assert_eq!(content, "after\nmore rows sum");

    scene.end("reader").await;
    scene.close(&["restored"]).await;
    let snapshot = grouped("snapshot.storage.k8s.io", &scene.name, "volumesnapshots/cut");
    scene.api.delete(&snapshot).await;
    delete(scene).await;
}

/// Deletes the StatefulSet and its claim.
pub(crate) async fn delete(scene: &Scene<'_>) {
    let set = grouped("apps", &scene.name, "statefulsets/db");
    scene.api.delete(&set).await;
    scene.gone("pods", "db-0").await;
    scene.close(&[CLAIM]).await;
}

/// Writes the content that `intact` checks.
pub(crate) async fn write(scene: &Scene<'_>, pod: &str) {
    let write = "seq 1 100000 > /data/rows && sha256sum /data/rows > /data/sum && sync";
    scene.sh(pod, write).await;
}

/// Asserts that the content is unchanged.
pub(crate) async fn intact(scene: &Scene<'_>, pod: &str) {
    let check = "sha256sum -c /data/sum && test $(wc -l < /data/rows) = 100000";
    scene.sh(pod, check).await;
}

/// The size of the filesystem in KiB.
async fn size(scene: &Scene<'_>, pod: &str) -> u64 {
    let printed = scene.sh(pod, "df -k /data | tail -n 1 | awk '{print $(NF-4)}'").await;
    printed.parse().unwrap_or_else(|_| panic!("df printed {printed:?}"))
}

async fn scale(scene: &Scene<'_>, replicas: u64) {
    let set = grouped("apps", &scene.name, "statefulsets/db");
    scene.api.change(&set, &json!({"spec": {"replicas": replicas}})).await;
    if replicas == 0 {
        scene.gone("pods", "db-0").await;
    }
}

/// Takes a snapshot of the claim, and waits until it is ready.
pub(crate) async fn snapshot(scene: &Scene<'_>, name: &str, claim: &str) {
    let path = grouped("snapshot.storage.k8s.io", &scene.name, "volumesnapshots");
    let snapshot = json!({
        "apiVersion": "snapshot.storage.k8s.io/v1",
        "kind": "VolumeSnapshot",
        "metadata": {"name": name},
        "spec": {"volumeSnapshotClassName": "disk", "source": {"persistentVolumeClaimName": claim}},
    });
    scene.api.create(&path, &snapshot).await;
    until("the snapshot is ready", async || {
        let snapshot = scene.api.get(&format!("{path}/{name}")).await?;
        (snapshot["status"]["readyToUse"] == true).then_some(())
    })
    .await;
}

/// A StatefulSet with one replica and one volume.
pub(crate) fn stateful_set() -> Value {
    let mut pod = Scene::shell("db", &[]);
    pod["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {
            "replicas": 1,
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": pod["spec"]},
            // Some kernels refuse to grow a mounted ext4.
            "volumeClaimTemplates": [claim("data", "disk-xfs")],
        },
    })
}

/// A raw block volume has no filesystem, and keeps its content.
pub(crate) async fn block(scene: &Scene<'_>) {
    let mut claim = claim("raw", "disk");
    claim["spec"]["volumeMode"] = json!("Block");
    scene.make("persistentvolumeclaims", &claim).await;
    let mut pod = Scene::shell("one", &["raw"]);
    let container = &mut pod["spec"]["containers"][0];
    container["volumeMounts"] = json!([]);
    container["volumeDevices"] = json!([{"name": "raw", "devicePath": "/dev/raw0"}]);
    scene.make("pods", &pod).await;
    scene.running("one").await;
    let volume = scene.bound("raw").await;
    let size = scene.sh("one", "blockdev --getsize64 /dev/raw0").await;
    assert_eq!(size, (20_u64 << 30).to_string());
    let write = "yes block | head -c 1048576 | dd of=/dev/raw0 bs=4096 seek=1000 conv=fsync 2>/dev/null";
    scene.sh("one", write).await;
    scene.end("one").await;
    scene.detached(&volume).await;
    pod["metadata"]["name"] = json!("two");
    scene.make("pods", &pod).await;
    scene.running("two").await;
    let same = "dd if=/dev/raw0 bs=4096 skip=1000 count=256 2>/dev/null | sha256sum; \
                yes block | head -c 1048576 | sha256sum";
    let sums = scene.sh("two", same).await;
    let sums: Vec<&str> = sums.lines().collect();
    assert_eq!(sums[0], sums[1]);
    scene.end("two").await;
    scene.close(&["raw"]).await;
}

/// The test of the chart, which writes and reads a volume.
pub(crate) async fn helm_test(scene: &Scene<'_>) {
    let printed = succeed(install::helm(scene.cluster, &["test", NAME, "--logs"])).await;
    assert!(printed.contains("read back identical data"), "{printed}");
    let claim = core(NAMESPACE, &format!("persistentvolumeclaims/{NAME}-diskplugin-test"));
    until("its claim is deleted", async || {
        scene.api.get(&claim).await.is_none().then_some(())
    })
    .await;
}

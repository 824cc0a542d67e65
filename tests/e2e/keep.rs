//! What is written stays, whatever becomes of pod and container.

use serde_json::{Value, json};

use crate::api::text;
use crate::namespace::claim;
use crate::path::{core, grouped};
use crate::scene::Scene;
use crate::wait::until;

/// What the StatefulSet claims.
pub(crate) const CLAIM: &str = "data-db-0";

/// A StatefulSet, as a database is one: it writes, its pod goes and comes, its container is killed, its volume grows
/// while it is used, a snapshot of it becomes another volume with the same in it.
pub(crate) async fn database(scene: &Scene<'_>) {
    let sets = grouped("apps", &scene.name, "statefulsets");
    scene.api.create(&sets, &stateful_set()).await;
    scene.running("db-0").await;
    let volume = scene.bound(CLAIM).await;
    write(scene, "db-0").await;

    // Its pod goes, and comes back when the disk was detached.
    let first = scene.running("db-0").await;
    scale(scene, 0).await;
    scene.detached(&volume).await;
    scale(scene, 1).await;
    let second = scene.running("db-0").await;
    assert_ne!(text(&first, "/metadata/uid"), text(&second, "/metadata/uid"));
    intact(scene, "db-0").await;

    // Its container ends, and takes along who told it to.
    scene.sh("db-0", "echo after >> /data/more && sync").await;
    scene.try_sh("db-0", "kill -TERM 1").await;
    until("the container was started again", async || {
        let pod = scene.api.get(&scene.path("pods", "db-0")).await?;
        (pod["status"]["containerStatuses"][0]["restartCount"].as_u64()? > 0).then_some(())
    })
    .await;
    scene.running("db-0").await;
    intact(scene, "db-0").await;
    assert_eq!(scene.sh("db-0", "cat /data/more").await, "after");

    // It grows while it is mounted and written to.
    let before = size(scene, "db-0").await;
    let larger = json!({"spec": {"resources": {"requests": {"storage": "30Gi"}}}});
    scene
        .api
        .change(&scene.path("persistentvolumeclaims", CLAIM), &larger)
        .await;
    until("the filesystem has grown", async || {
        (size(scene, "db-0").await > before + 9 * 1024 * 1024).then_some(())
    })
    .await;
    until("the claim says so", async || {
        let claim = scene.api.get(&scene.path("persistentvolumeclaims", CLAIM)).await?;
        (claim["status"]["capacity"]["storage"] == "30Gi").then_some(())
    })
    .await;
    intact(scene, "db-0").await;

    // A snapshot, and what comes after it is not in the volume made of it.
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
    assert_eq!(
        scene.sh("reader", "cat /data/more; ls /data | tr '\\n' ' '").await,
        "after\nmore rows sum"
    );

    scene.end("reader").await;
    scene.close(&["restored"]).await;
    scene
        .api
        .delete(&grouped("snapshot.storage.k8s.io", &scene.name, "volumesnapshots/cut"))
        .await;
    scene.api.delete(&format!("{sets}/db")).await;
    until("the pod is gone", async || {
        scene.api.get(&scene.path("pods", "db-0")).await.is_none().then_some(())
    })
    .await;
    scene.close(&[CLAIM]).await;
}

/// Writes what `intact` looks for.
pub(crate) async fn write(scene: &Scene<'_>, pod: &str) {
    let write = "seq 1 100000 > /data/rows && sha256sum /data/rows > /data/sum && sync";
    scene.sh(pod, write).await;
}

/// As nobody wrote to it since.
pub(crate) async fn intact(scene: &Scene<'_>, pod: &str) {
    scene
        .sh(pod, "sha256sum -c /data/sum && test $(wc -l < /data/rows) = 100000")
        .await;
}

/// Of the filesystem, in KiB.
async fn size(scene: &Scene<'_>, pod: &str) -> u64 {
    let printed = scene.sh(pod, "df -k /data | tail -n 1 | awk '{print $(NF-4)}'").await;
    printed.parse().unwrap_or_else(|_| panic!("df printed {printed:?}"))
}

async fn scale(scene: &Scene<'_>, replicas: u64) {
    let set = grouped("apps", &scene.name, "statefulsets/db");
    scene.api.change(&set, &json!({"spec": {"replicas": replicas}})).await;
    if replicas == 0 {
        until("the pod is gone", async || {
            scene.api.get(&scene.path("pods", "db-0")).await.is_none().then_some(())
        })
        .await;
    }
}

/// Takes a snapshot of the claim, and waits until it can be used.
async fn snapshot(scene: &Scene<'_>, name: &str, claim: &str) {
    let path = grouped("snapshot.storage.k8s.io", &scene.name, "volumesnapshots");
    let wanted = json!({
        "apiVersion": "snapshot.storage.k8s.io/v1",
        "kind": "VolumeSnapshot",
        "metadata": {"name": name},
        "spec": {"volumeSnapshotClassName": "disk", "source": {"persistentVolumeClaimName": claim}},
    });
    scene.api.create(&path, &wanted).await;
    until("the snapshot can be used", async || {
        let snapshot = scene.api.get(&format!("{path}/{name}")).await?;
        (snapshot["status"]["readyToUse"] == true).then_some(())
    })
    .await;
}

/// A database of one, with one volume.
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
            // This kernel may refuse to grow a mounted ext4.
            "volumeClaimTemplates": [claim("data", "disk-xfs")],
        },
    })
}

/// A raw block volume has no filesystem, and keeps its bytes from pod to pod.
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
    scene
        .sh(
            "one",
            "yes block | head -c 1048576 | dd of=/dev/raw0 bs=4096 seek=1000 conv=fsync 2>/dev/null",
        )
        .await;
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

/// The chart's own test, which writes and reads back.
pub(crate) async fn helm_test(scene: &Scene<'_>) {
    let ended = crate::install::helm(scene.cluster, &["test", crate::install::NAME, "--logs"]);
    let said = crate::command::succeed(ended).await;
    assert!(said.contains("read back identical data"), "{said}");
    let claim = format!("persistentvolumeclaims/{}-diskplugin-test", crate::install::NAME);
    until("its claim is gone", async || {
        scene
            .api
            .get(&core(crate::plane::NAMESPACE, &claim))
            .await
            .is_none()
            .then_some(())
    })
    .await;
}

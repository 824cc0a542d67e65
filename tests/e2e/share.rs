//! Access to volumes.

use serde_json::json;

use crate::keep::snapshot;
use crate::namespace::claim;
use crate::path::{grouped, storage};
use crate::scene::Scene;

/// A pod with a read-only volume can read it and cannot write to it.
pub(crate) async fn read_only(scene: &Scene<'_>) {
    scene.want("data", "disk").await;
    scene.start("writer", &["data"]).await;
    scene.sh("writer", "echo kept > /data/file && sync").await;
    scene.end("writer").await;
    let mut pod = Scene::shell("reader", &["data"]);
    pod["spec"]["volumes"][0]["persistentVolumeClaim"]["readOnly"] = json!(true);
    scene.make("pods", &pod).await;
    scene.running("reader").await;
    assert_eq!(scene.sh("reader", "cat /data/file").await, "kept");
    let written = scene.try_sh("reader", "echo more >> /data/file").await;
    assert_ne!(written.code, Some(0));
    assert!(written.stderr.contains("Read-only file system"), "{written:?}");
    scene.end("reader").await;
    scene.close(&["data"]).await;
}

/// A volume belongs to the fsGroup of its pod, whose processes can write to it without root.
pub(crate) async fn group(scene: &Scene<'_>) {
    scene.want("data", "disk").await;
    let mut pod = Scene::shell("app", &["data"]);
    pod["spec"]["securityContext"] = json!({"runAsUser": 1234, "runAsGroup": 2345, "fsGroup": 3456});
    scene.make("pods", &pod).await;
    scene.running("app").await;
    let script = "stat -c %g /data; echo mine > /data/file; stat -c %u:%g /data/file";
    assert_eq!(scene.sh("app", script).await, "3456\n1234:3456");
    scene.end("app").await;
    scene.close(&["data"]).await;
}

/// Two pods of a node share a volume.
pub(crate) async fn two_pods(scene: &Scene<'_>) {
    scene.want("data", "disk").await;
    scene.start("one", &["data"]).await;
    scene.start("two", &["data"]).await;
    scene.sh("one", "echo from one > /data/one").await;
    let script = "cat /data/one; echo from two > /data/two";
    assert_eq!(scene.sh("two", script).await, "from one");
    // The volume remains mounted in the other pod.
    scene.end("one").await;
    assert_eq!(scene.sh("two", "cat /data/one /data/two").await, "from one\nfrom two");
    scene.end("two").await;
    scene.close(&["data"]).await;
}

/// A ReadWriteOncePod volume is refused to a second pod until the first one is deleted.
pub(crate) async fn once(scene: &Scene<'_>) {
    let mut claim = crate::namespace::claim("data", "disk");
    claim["spec"]["accessModes"] = json!(["ReadWriteOncePod"]);
    scene.make("persistentvolumeclaims", &claim).await;
    scene.start("one", &["data"]).await;
    scene.sh("one", "echo from one > /data/file && sync").await;
    scene.make("pods", &Scene::shell("two", &["data"])).await;
    let reason = "FailedScheduling";
    scene.wait_for_event("two", reason, "ReadWriteOncePod").await;
    scene.end("one").await;
    scene.running("two").await;
    assert_eq!(scene.sh("two", "cat /data/file").await, "from one");
    scene.end("two").await;
    scene.close(&["data"]).await;
}

/// A snapshot of a mounted ext4, whose journal is not replayed, is restored for readers. Both run on one node: the
/// nodes of this cluster share a kernel, in which a second mount namespace may not use the device.
pub(crate) async fn readers(scene: &Scene<'_>) {
    scene.want("data", "disk").await;
    scene.start("writer", &["data"]).await;
    let script = "echo kept > /data/file && sync -f /data && echo more > /data/more && sync -f /data";
    scene.sh("writer", script).await;
    snapshot(scene, "cut", "data").await;
    let class = json!({
        "metadata": {"name": "readers"},
        "provisioner": "diskplugin.csi.example",
        "parameters": {"type": "cloud_essd", "multiAttach": "true"},
        "mountOptions": ["noload"],
    });
    scene.api.create(&storage("storageclasses"), &class).await;
    let mut copy = claim("copy", "readers");
    copy["spec"]["accessModes"] = json!(["ReadOnlyMany"]);
    copy["spec"]["dataSource"] =
        json!({"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "cut"});
    scene.make("persistentvolumeclaims", &copy).await;
    for pod in ["one", "two"] {
        scene.start(pod, &["copy"]).await;
        assert_eq!(scene.sh(pod, "cat /copy/file").await, "kept");
        let written = scene.try_sh(pod, "echo more >> /copy/file").await;
        assert!(written.stderr.contains("Read-only file system"), "{written:?}");
    }
    for pod in ["writer", "one", "two"] {
        scene.end(pod).await;
    }
    let cut = grouped("snapshot.storage.k8s.io", &scene.name, "volumesnapshots/cut");
    scene.api.delete(&cut).await;
    scene.close(&["copy", "data"]).await;
    scene.api.delete(&storage("storageclasses/readers")).await;
}

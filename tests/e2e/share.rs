//! Access to volumes.

use serde_json::json;

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

//! Who may use a volume, and how.

use serde_json::json;

use crate::scene::Scene;

/// A pod that says so reads its volume and cannot write to it.
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

/// A volume belongs to the group that its pod says, and who is in it writes there without being root.
pub(crate) async fn group(scene: &Scene<'_>) {
    scene.want("data", "disk").await;
    let mut pod = Scene::shell("app", &["data"]);
    pod["spec"]["securityContext"] = json!({"runAsUser": 1234, "runAsGroup": 2345, "fsGroup": 3456});
    scene.make("pods", &pod).await;
    scene.running("app").await;
    let said = scene
        .sh(
            "app",
            "stat -c %g /data; echo mine > /data/file; stat -c %u:%g /data/file",
        )
        .await;
    assert_eq!(said, "3456\n1234:3456");
    scene.end("app").await;
    scene.close(&["data"]).await;
}

/// Two pods of a node see each other's files.
pub(crate) async fn two_pods(scene: &Scene<'_>) {
    scene.want("data", "disk").await;
    scene.start("one", &["data"]).await;
    scene.start("two", &["data"]).await;
    scene.sh("one", "echo from one > /data/one").await;
    assert_eq!(
        scene.sh("two", "cat /data/one; echo from two > /data/two").await,
        "from one"
    );
    // What one of them leaves, the other one keeps.
    scene.end("one").await;
    assert_eq!(scene.sh("two", "cat /data/one /data/two").await, "from one\nfrom two");
    scene.end("two").await;
    scene.close(&["data"]).await;
}

/// A volume for one pod is refused to a second one until the first is gone.
pub(crate) async fn once(scene: &Scene<'_>) {
    let mut claim = crate::namespace::claim("data", "disk");
    claim["spec"]["accessModes"] = json!(["ReadWriteOncePod"]);
    scene.make("persistentvolumeclaims", &claim).await;
    scene.start("one", &["data"]).await;
    scene.sh("one", "echo from one > /data/file && sync").await;
    scene.make("pods", &Scene::shell("two", &["data"])).await;
    scene
        .wait_for_event("two", "FailedScheduling", "ReadWriteOncePod")
        .await;
    scene.end("one").await;
    scene.running("two").await;
    assert_eq!(scene.sh("two", "cat /data/file").await, "from one");
    scene.end("two").await;
    scene.close(&["data"]).await;
}

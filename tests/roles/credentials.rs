//! Sources of the access key, and errors of a wrong key.

use std::os::unix::fs::symlink;
use std::path::Path;

use tonic::Code;

use crate::common::csi::{create, socket};
use crate::common::fake::{Fake, KEY, SECRET};

#[tokio::test]
async fn both_pairs_of_environment_variables_are_accepted() {
    let fake = Fake::start(&[]).await;
    for prefix in ["", "ALIBABA_CLOUD_"] {
        let dir = tempfile::tempdir().unwrap();
        let socket = socket(&dir);
        let start = fake
            .controller(&socket)
            .env(&format!("{prefix}ACCESS_KEY_ID"), KEY)
            .env(&format!("{prefix}ACCESS_KEY_SECRET"), SECRET);
        let (_controller, channel) = start.ready(&socket).await;
        create(&channel, "pvc-1").await.unwrap();
    }
}

#[tokio::test]
async fn a_wrong_secret_is_denied_without_revealing_the_key() {
    let (fake, dir) = (Fake::start(&[]).await, tempfile::tempdir().unwrap());
    for signature in ["v1", "v3"] {
        let socket = socket(&dir);
        let start = fake
            .controller(&socket)
            .env("ACCESS_KEY_ID", KEY)
            .env("ACCESS_KEY_SECRET", "wrong-and-hidden")
            .args(["--signature", signature]);
        let (controller, channel) = start.ready(&socket).await;
        let denied = create(&channel, "pvc-1").await.unwrap_err();
        // An answer to an earlier process may be lost, so no refusal of the key is final.
        assert_eq!(denied.code(), Code::Unavailable, "{denied:?}");
        assert!(denied.message().contains("access key"), "{denied:?}");
        for hidden in ["wrong-and-hidden", KEY] {
            assert!(!denied.message().contains(hidden), "{denied:?}");
            assert!(!controller.stderr().contains(hidden), "{}", controller.stderr());
        }
        controller.signal(nix::sys::signal::Signal::SIGTERM);
        controller.ended().await;
    }
}

#[tokio::test]
async fn without_a_key_the_error_names_the_setting() {
    let (fake, dir) = (Fake::start(&[]).await, tempfile::tempdir().unwrap());
    let socket = socket(&dir);
    // No server listens there, as outside of an instance.
    let start = fake
        .controller(&socket)
        .args(["--metadata-endpoint=http://127.0.0.1:9"]);
    let (_controller, channel) = start.ready(&socket).await;
    let refused = create(&channel, "pvc-1").await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(refused.message().contains("ACCESS_KEY_ID"), "{refused:?}");
}

#[tokio::test]
async fn a_rotated_secret_is_used_by_the_next_call() {
    let (fake, dir) = (Fake::start(&[]).await, tempfile::tempdir().unwrap());
    let socket = socket(&dir);
    let secret = dir.path().join("secret");
    std::fs::create_dir(&secret).unwrap();
    for name in ["access-key-id", "access-key-secret"] {
        symlink(Path::new("..data").join(name), secret.join(name)).unwrap();
    }
    publish(&secret, "..2026_01_01", "rotated-out");
    let start = fake.controller(&socket);
    let start = start.args(["--credentials-dir", secret.to_str().unwrap()]);
    let (_controller, channel) = start.ready(&socket).await;
    let denied = create(&channel, "pvc-1").await.unwrap_err();
    assert_eq!(denied.code(), Code::Unavailable, "{denied:?}");
    publish(&secret, "..2026_01_02", SECRET);
    std::fs::remove_dir_all(secret.join("..2026_01_01")).unwrap();
    create(&channel, "pvc-1").await.unwrap();
}

/// Updates the Secret volume as kubelet does: a new directory, then an atomic swap of `..data`.
fn publish(secret: &Path, version: &str, value: &str) {
    let files = secret.join(version);
    std::fs::create_dir(&files).unwrap();
    std::fs::write(files.join("access-key-id"), KEY).unwrap();
    std::fs::write(files.join("access-key-secret"), format!("{value}\n")).unwrap();
    symlink(version, secret.join("..data_tmp")).unwrap();
    std::fs::rename(secret.join("..data_tmp"), secret.join("..data")).unwrap();
}

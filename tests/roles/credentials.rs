//! Sources of the access key, and errors of a wrong key.

use std::os::unix::fs::symlink;
use std::path::Path;

use tonic::Code;

use crate::common::csi::create;
use crate::common::fake::{Fake, KEY, SECRET};
use crate::running::{NO_METADATA, Running};
use crate::text::{assert_has, assert_lacks};

const WRONG: &str = "wrong-and-hidden";

#[tokio::test]
async fn both_pairs_of_environment_variables_are_accepted() {
    let fake = Fake::start(&[]).await;
    for prefix in ["", "ALIBABA_CLOUD_"] {
        let controller = Running::of(|socket| {
            let start = fake.controller(socket).env(&format!("{prefix}ACCESS_KEY_ID"), KEY);
            start.env(&format!("{prefix}ACCESS_KEY_SECRET"), SECRET)
        });
        create(&controller.await.channel, "pvc-1").await.unwrap();
    }
}

#[tokio::test]
async fn a_wrong_secret_is_denied_without_revealing_the_key() {
    let fake = Fake::start(&[]).await;
    for signature in ["v1", "v3"] {
        let controller = Running::of(|socket| {
            let start = fake.controller(socket).keys().env("ACCESS_KEY_SECRET", WRONG);
            start.args(["--signature", signature])
        });
        let controller = controller.await;
        let denied = create(&controller.channel, "pvc-1").await.unwrap_err();
        // A response to an earlier process may be lost, so no refusal of the key is final.
        assert_eq!(denied.code(), Code::Unavailable, "{denied:?}");
        assert_has(denied.message(), &["access key"]);
        for text in [denied.message(), &controller.process.stderr()] {
            assert_lacks(text, &[WRONG, KEY]);
        }
    }
}

#[tokio::test]
async fn without_a_key_the_error_names_the_setting() {
    let fake = Fake::start(&[]).await;
    let controller = Running::of(|socket| fake.controller(socket).args([NO_METADATA])).await;
    let refused = create(&controller.channel, "pvc-1").await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    assert_has(refused.message(), &["ACCESS_KEY_ID"]);
}

#[tokio::test]
async fn a_rotated_secret_is_used_by_the_next_call() {
    let (fake, dir) = (Fake::start(&[]).await, tempfile::tempdir().unwrap());
    let secret = dir.path();
    for name in ["access-key-id", "access-key-secret"] {
        symlink(Path::new("..data").join(name), secret.join(name)).unwrap();
    }
    publish(secret, "..2026_01_01", "rotated-out");
    let flag = format!("--credentials-dir={}", secret.display());
    let controller = Running::of(|socket| fake.controller(socket).args([flag])).await;
    let denied = create(&controller.channel, "pvc-1").await.unwrap_err();
    assert_eq!(denied.code(), Code::Unavailable, "{denied:?}");
    publish(secret, "..2026_01_02", SECRET);
    std::fs::remove_dir_all(secret.join("..2026_01_01")).unwrap();
    create(&controller.channel, "pvc-1").await.unwrap();
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

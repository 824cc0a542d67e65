//! A cluster for a person.

use std::future::pending;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;
use tokio::runtime::Builder;
use tokio::time::Instant;

use crate::cluster::{Cluster, directory};
use crate::images::target;
use crate::outside::DOOR;
use crate::program::built;

/// The argument that asks for it.
pub(crate) const WORD: &str = "stay";

/// Where people find the cluster.
pub(crate) fn link() -> PathBuf {
    target().join("cluster")
}

/// Starts one, says how to talk to it, and keeps it until this process is ended.
pub(crate) fn run() -> ExitCode {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime can be made").block_on(async {
        let start = Instant::now();
        let cluster = Cluster::start().await;
        hand_over(&cluster);
        let link = link();
        println!(
            "A Kubernetes with the driver in it is up, after {} s. In another terminal:\n\n  \
             export KUBECONFIG={}/kubeconfig PATH=\"{}/bin:$PATH\"\n  \
             kubectl get nodes\n\nThe tutorial docs/tutorials/cluster.md goes on from here. Ctrl-C takes it down.",
            start.elapsed().as_secs(),
            link.display(),
            link.display(),
        );
        pending::<()>().await;
        drop(cluster);
    });
    ExitCode::SUCCESS
}

/// Puts what a person needs into the directory, and leads there.
fn hand_over(cluster: &Cluster) {
    let fine = "the directory can be written";
    let directory = directory();
    let port = std::env::var(DOOR).expect("the outer process has said it");
    let config = kubeconfig(cluster, &format!("https://127.0.0.1:{port}"));
    std::fs::copy(config, directory.join("kubeconfig")).expect(fine);
    bin(&directory);
    let link = link();
    // A cluster that was there before is there no more, or has its own terminal.
    if link.is_symlink() {
        std::fs::remove_file(&link).expect(fine);
    }
    symlink(directory, link).expect(fine);
}

/// Writes the administrator's, whose namespace is that which people expect; its path.
pub(crate) fn kubeconfig(cluster: &Cluster, server: &str) -> String {
    let keys = &cluster.plane.keys;
    let path = keys.kubeconfig("person", server, keys.token("admin"));
    let fine = "it was just written";
    let text = std::fs::read_to_string(&path).expect(fine);
    let mut config: Value = serde_json::from_str(&text).expect(fine);
    config["contexts"][0]["context"]["namespace"] = "default".into();
    std::fs::write(&path, config.to_string()).expect(fine);
    path
}

/// Makes the folder with kubectl and Helm, if it is not there.
pub(crate) fn bin(directory: &Path) -> PathBuf {
    let fine = "the directory can be written";
    let bin = directory.join("bin");
    std::fs::create_dir_all(&bin).expect(fine);
    let script = format!("#!/bin/sh\nexec '{}' kubectl \"$@\"\n", built("kube").display());
    let kubectl = bin.join("kubectl");
    std::fs::write(&kubectl, script).expect(fine);
    std::fs::set_permissions(&kubectl, PermissionsExt::from_mode(0o755)).expect(fine);
    let helm = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/helm/bin/helm");
    let link = bin.join("helm");
    if !link.is_symlink() {
        symlink(helm, link).expect(fine);
    }
    bin
}

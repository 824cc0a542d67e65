//! A cluster for interactive use.

use std::future::pending;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;
use tokio::runtime::Builder;
use tokio::time::Instant;

use crate::cluster::{Cluster, directory};
use crate::images::target;
use crate::outside::PORT;
use crate::program::built;

/// The argument that selects it.
pub(crate) const WORD: &str = "stay";

/// The link to the directory of the cluster.
pub(crate) fn link() -> PathBuf {
    target().join("cluster")
}

/// Starts a cluster, prints its kubeconfig, and keeps it until this process is terminated.
pub(crate) fn run() -> ExitCode {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime can be built").block_on(async {
        let start = Instant::now();
        let cluster = Cluster::start().await;
        publish(&cluster);
        let link = link();
        println!(
            "A Kubernetes with the driver in it is up, after {} s. In another terminal:\n\n  \
             export KUBECONFIG={}/kubeconfig PATH=\"{}/bin:$PATH\"\n  \
             kubectl get nodes\n\nContinue with docs/tutorials/cluster.md. Ctrl-C removes the cluster.",
            start.elapsed().as_secs(),
            link.display(),
            link.display(),
        );
        pending::<()>().await;
        drop(cluster);
    });
    ExitCode::SUCCESS
}

/// Writes kubeconfig and programs into the directory, and creates the link to it.
fn publish(cluster: &Cluster) {
    let fine = "the directory can be written";
    let directory = directory();
    let port = std::env::var(PORT).expect("set by the outer process");
    let config = kubeconfig(cluster, &format!("https://127.0.0.1:{port}"));
    std::fs::copy(config, directory.join("kubeconfig")).expect(fine);
    bin(&directory);
    let link = link();
    // The link of a previous cluster.
    if link.is_symlink() {
        std::fs::remove_file(&link).expect(fine);
    }
    symlink(directory, link).expect(fine);
}

/// Writes a kubeconfig of the administrator with the namespace `default`, and returns its path.
pub(crate) fn kubeconfig(cluster: &Cluster, server: &str) -> String {
    let keys = &cluster.plane.keys;
    let path = keys.kubeconfig("administrator", server, keys.token("admin"));
    let fine = "the file exists";
    let text = std::fs::read_to_string(&path).expect(fine);
    let mut config: Value = serde_json::from_str(&text).expect(fine);
    config["contexts"][0]["context"]["namespace"] = "default".into();
    std::fs::write(&path, config.to_string()).expect(fine);
    path
}

/// Creates the directory with kubectl and Helm if it does not exist.
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

//! Helm, without the configuration of the machine.

use std::path::Path;

use crate::common::process::{Ended, Start};
use crate::plane::Plane;

/// The path of the chart as a release publishes it; packaged on first use.
pub(crate) async fn packaged_chart(plane: &Plane) -> String {
    let directory = plane.directory("chart");
    let package = directory.join(concat!("diskplugin-", env!("CARGO_PKG_VERSION"), ".tgz"));
    if !package.exists() {
        let script = Start::with_pdeathsig(&file("scripts/package-chart"));
        let Ended { code, stderr, .. } = script.args([directory.display().to_string()]).ended().await;
        assert_eq!(code, Some(0), "scripts/package-chart: {stderr}");
    }
    package.display().to_string()
}

/// The path of a file of the repository.
pub(crate) fn file(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join(path).display().to_string()
}

/// Helm on a namespace.
pub(crate) fn start(plane: &Plane, namespace: &str, args: &[impl AsRef<str>]) -> Start {
    let home = plane.directory("helm");
    let mut start = Start::with_pdeathsig(&file("tests/helm/bin/helm"));
    for name in ["HOME", "HELM_CONFIG_HOME", "HELM_CACHE_HOME", "HELM_DATA_HOME"] {
        start = start.env(name, &home);
    }
    let kubeconfig = plane.kubeconfig();
    start
        .args(args)
        .args(["--namespace", namespace, "--kubeconfig", &kubeconfig])
}

/// Runs Helm in a namespace, which must succeed, and returns its output.
pub(crate) async fn helm<A: AsRef<str>>(plane: &Plane, namespace: &str, args: impl IntoIterator<Item = A>) -> String {
    let args: Vec<String> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
    let Ended { code, stdout, stderr } = start(plane, namespace, &args).ended().await;
    assert_eq!(code, Some(0), "helm {args:?}: {stdout}{stderr}");
    stdout
}

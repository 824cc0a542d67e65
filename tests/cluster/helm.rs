//! Helm, with nothing of the machine's own.

use std::path::Path;

use crate::common::process::{Ended, Start};
use crate::plane::Plane;

/// The chart of this repository.
pub(crate) const CHART: &str = "deploy/helm/diskplugin";
/// The one that users have who upgrade to it.
pub(crate) const PREVIOUS: &str = "tests/helm/previous";

/// The path of a file of the repository.
pub(crate) fn file(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join(path).display().to_string()
}

/// Helm on a namespace.
pub(crate) fn start(plane: &Plane, namespace: &str, args: &[impl AsRef<str>]) -> Start {
    let home = plane.directory("helm");
    let mut start = Start::tied(&file("tests/helm/bin/helm"));
    for name in [
        "HOME",
        "HELM_CONFIG_HOME",
        "HELM_CACHE_HOME",
        "HELM_DATA_HOME",
    ] {
        start = start.env(name, &home);
    }
    let kubeconfig = plane.kubeconfig();
    start
        .args(args)
        .args(["--namespace", namespace, "--kubeconfig", &kubeconfig])
}

/// Has Helm do something well in a namespace; what it prints.
pub(crate) async fn helm<A: AsRef<str>>(
    plane: &Plane,
    namespace: &str,
    args: impl IntoIterator<Item = A>,
) -> String {
    let args: Vec<String> = args
        .into_iter()
        .map(|arg| arg.as_ref().to_owned())
        .collect();
    let Ended {
        code,
        stdout,
        stderr,
    } = start(plane, namespace, &args).ended().await;
    assert_eq!(code, Some(0), "helm {args:?}: {stdout}{stderr}");
    stdout
}

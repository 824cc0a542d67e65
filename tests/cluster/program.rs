//! Programs that end with this one, whatever becomes of it: the kernel ends them with the thread that starts
//! them. The main thread and those of the runtime last as long as the test.

use std::path::{Path, PathBuf};

use crate::common::process::Start;

/// Where the Makefile puts what is built.
pub(crate) fn built(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cluster/bin")
        .join(name)
}

/// A component of Kubernetes. All of them are one binary; with `KUBERNETES=oldest` that of the oldest supported version.
pub(crate) fn kube(component: &str) -> Start {
    let binary = match std::env::var("KUBERNETES").as_deref() {
        Err(_) | Ok("") => "kube",
        Ok("oldest") => "kube-oldest",
        Ok(other) => panic!("KUBERNETES={other}: expected oldest, or unset"),
    };
    tied(&built(binary)).args([component])
}

/// A program that ends with the current thread.
pub(crate) fn tied(program: &Path) -> Start {
    Start::with_pdeathsig(&program.display().to_string())
}

/// A program with its own host name, by which the sidecars of two pods distinguish themselves. Requires permission to create
/// namespaces.
pub(crate) fn on_host(host: &str, program: &Path) -> Start {
    const NAME: &str = r#"printf %s "$0" > /proc/sys/kernel/hostname && exec "$@""#;
    let program = program.display().to_string();
    Start::with_pdeathsig("unshare").args(["--uts", "sh", "-c", NAME, host, &program])
}

//! Child processes that the kernel kills when the thread that started them ends (`PR_SET_PDEATHSIG`). The main thread
//! and those of the runtime exist until the test ends.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::process::Start;

/// The path of a program that the Makefile builds.
pub(crate) fn built(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cluster/bin")
        .join(name)
}

/// A component of Kubernetes. All components are one binary; `KUBERNETES=oldest` selects the oldest supported version.
pub(crate) fn kube(component: &str) -> Start {
    let binary = match std::env::var("KUBERNETES").as_deref() {
        Err(_) | Ok("") => "kube",
        Ok("oldest") => "kube-oldest",
        Ok(other) => panic!("KUBERNETES={other}: expected oldest, or unset"),
    };
    tied(&built(binary)).args([component])
}

/// The program of the driver that a container of the chart starts.
pub(crate) fn of_driver(container: &Value) -> &'static Path {
    let program = match container["command"][0].as_str() {
        None => env!("CARGO_BIN_EXE_diskplugin"),
        Some("/diskplugin-controller") => env!("CARGO_BIN_EXE_diskplugin-controller"),
        Some("/diskplugin-node") => env!("CARGO_BIN_EXE_diskplugin-node"),
        Some(other) => panic!("{other} is not a program of the driver"),
    };
    Path::new(program)
}

/// A process that is killed when the current thread ends.
pub(crate) fn tied(program: &Path) -> Start {
    Start::with_pdeathsig(&program.display().to_string())
}

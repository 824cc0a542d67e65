//! The images that the cluster runs: nothing is pulled.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::command::succeed;
use crate::common::process::Start;
use crate::program::built;

/// What holds a pod's namespaces.
pub(crate) const PAUSE: &str = "localhost/pause:1";
/// For pods that type commands; the chart's own test has the same.
pub(crate) const SHELL: &str = "registry.k8s.io/e2e-test-images/busybox:1.37.0-1";
/// Where Debian has the programs that give pods their network.
pub(crate) const CNI: &str = "/usr/lib/cni";
/// Where Debian has the busybox that needs no library.
const BUSYBOX: &str = "/bin/busybox";
/// The sidecars of the chart's values, and the program of each.
const SIDECARS: [(&str, &str); 4] = [
    ("provisioner", "csi-provisioner"),
    ("attacher", "csi-attacher"),
    ("resizer", "csi-resizer"),
    ("snapshotter", "csi-snapshotter"),
];

/// The archives to bring in: everybody else's images, and the driver's own.
pub(crate) async fn pack() -> [PathBuf; 2] {
    let out = target().join("e2e/images.tar");
    let script = root().join("tests/e2e/images.py").display().to_string();
    let start = Start::with_pdeathsig("python3").args(["-B", &script, &out.display().to_string(), BUSYBOX]);
    let values = values();
    let named = SIDECARS.iter().map(|(sidecar, program)| {
        let image = &values["sidecars"][sidecar]["image"];
        let text = |key: &str| image[key].as_str().expect("the chart has a default");
        format!("{}:{}={}", text("repository"), text("tag"), built(program).display())
    });
    succeed(start.args(named.collect::<Vec<_>>())).await;
    [out, driver()]
}

/// The archive of what the pods of Kubernetes' own storage suite run, under the names that it has for them.
pub(crate) async fn upstream() -> PathBuf {
    const NAMES: &str = "registry.k8s.io/e2e-test-images";
    let out = target().join("e2e/upstream.tar");
    let script = root().join("tests/e2e/images.py").display().to_string();
    let start = Start::with_pdeathsig("python3").args(["-B", &script, &out.display().to_string(), BUSYBOX]);
    let agnhost = built("agnhost");
    succeed(start.args([
        format!("{NAMES}/agnhost:2.63.0+{}", agnhost.display()),
        // Nothing but commands is asked of this.
        format!("{NAMES}/nginx:1.15-4"),
        // Nor of this, except that dd writes past the cache; busybox's shell would take its own.
        format!("{NAMES}/glibc-dns-testing:2.0.0^/bin/sh,/bin/dd"),
    ]))
    .await;
    out
}

/// Names another archive than that of `tests/e2e/image`, such as what `make image` has left.
pub(crate) const OTHER: &str = "DRIVER_IMAGE";

/// Where the driver's image is.
pub(crate) fn driver() -> PathBuf {
    if let Some(other) = std::env::var_os(OTHER).filter(|path| !path.is_empty()) {
        return PathBuf::from(other);
    }
    let arch = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "amd64",
    };
    let version = env!("CARGO_PKG_VERSION");
    target().join(format!("e2e/image/diskplugin-{version}-{arch}.tar"))
}

/// The chart's defaults.
fn values() -> Value {
    let file = root().join("deploy/helm/diskplugin/values.yaml");
    let text = std::fs::read_to_string(file).expect("the chart has values");
    serde_saphyr::from_str(&text).expect("they are YAML")
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The target directory, by a program in it.
pub(crate) fn target() -> PathBuf {
    let profile = Path::new(env!("CARGO_BIN_EXE_diskplugin")).parent();
    let target = profile.and_then(Path::parent).expect("it is TARGET/PROFILE/diskplugin");
    target.to_owned()
}

//! The images of the cluster. None is pulled.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::command::succeed;
use crate::common::process::Start;
use crate::program::built;

/// The sandbox image of pods.
pub(crate) const PAUSE: &str = "localhost/pause:1";
/// For pods that run commands; also in the test of the chart.
pub(crate) const SHELL: &str = "registry.k8s.io/e2e-test-images/busybox:1.37.0-1";
/// The directory of the CNI plugins in Debian.
pub(crate) const CNI: &str = "/usr/lib/cni";
/// The statically linked busybox of Debian.
const BUSYBOX: &str = "/bin/busybox";
/// The sidecars in the chart's values, and their programs.
const SIDECARS: [(&str, &str); 4] = [
    ("provisioner", "csi-provisioner"),
    ("attacher", "csi-attacher"),
    ("resizer", "csi-resizer"),
    ("snapshotter", "csi-snapshotter"),
];

/// The archives with all images: of the sidecars and other pods, and of the driver.
pub(crate) async fn pack() -> [PathBuf; 2] {
    let values = values();
    let named = SIDECARS.iter().map(|(sidecar, program)| {
        let image = &values["sidecars"][sidecar]["image"];
        let text = |key: &str| image[key].as_str().expect("the chart has a default");
        format!("{}:{}={}", text("repository"), text("tag"), built(program).display())
    });
    [archive("images", named.collect()).await, driver()]
}

/// The archive with the images of the storage suite's pods, under their upstream names.
pub(crate) async fn upstream() -> PathBuf {
    const NAMES: &str = "registry.k8s.io/e2e-test-images";
    let images = vec![
        format!("{NAMES}/agnhost:2.63.0+{}", built("agnhost").display()),
        // The suite only runs commands in it.
        format!("{NAMES}/nginx:1.15-4"),
        // Also here, but dd must support direct I/O, and the shell of busybox would use its own.
        format!("{NAMES}/glibc-dns-testing:2.0.0^/bin/sh,/bin/dd"),
    ];
    archive("upstream", images).await
}

/// Creates an archive of these images.
async fn archive(name: &str, images: Vec<String>) -> PathBuf {
    let out = target().join(format!("e2e/{name}.tar"));
    let script = root().join("tests/e2e/images.py").display().to_string();
    let start = Start::with_pdeathsig("python3").args(["-B", &script, &out.display().to_string(), BUSYBOX]);
    succeed(start.args(images)).await;
    out
}

/// The variable with another archive than that of `tests/e2e/image`, such as that of `make image`.
pub(crate) const OTHER: &str = "DRIVER_IMAGE";

/// The archive of the driver's image.
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
    serde_saphyr::from_str(&text).expect("the values are YAML")
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The target directory, from the path of a program.
pub(crate) fn target() -> PathBuf {
    let profile = Path::new(env!("CARGO_BIN_EXE_diskplugin")).parent();
    let target = profile
        .and_then(Path::parent)
        .expect("the path is TARGET/PROFILE/diskplugin");
    target.to_owned()
}

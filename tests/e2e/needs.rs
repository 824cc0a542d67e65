//! The requirements of a kubelet.

use std::path::Path;

use crate::common::process::Start;
use crate::images;
use crate::program::built;

/// Programs, and their Debian packages.
const PROGRAMS: [(&str, &str); 13] = [
    ("bash", "bash"),
    ("busybox", "busybox-static"),
    ("containerd", "containerd"),
    ("ctr", "containerd"),
    ("flock", "util-linux"),
    ("ip", "iproute2"),
    ("losetup", "mount"),
    ("mount", "mount"),
    ("nsenter", "util-linux"),
    ("python3", "python3"),
    ("runc", "runc"),
    ("setsid", "util-linux"),
    ("unshare", "util-linux"),
];

const FILESYSTEMS: [&str; 3] = ["overlay", "ext4", "xfs"];

/// The reason why a kubelet cannot run.
#[derive(Debug)]
pub(crate) enum Lack {
    /// A program is missing, or root.
    Setup(String),
    /// The kernel or the host of the machine does not support it.
    Machine(String),
}

/// The first missing requirement, with advice.
pub(crate) fn missing() -> Option<Lack> {
    set_up().map(Lack::Setup).or_else(|| machine().map(Lack::Machine))
}

fn set_up() -> Option<String> {
    if !nix::unistd::geteuid().is_root() {
        return Some("root is required for namespaces, mounts and loop devices".to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |program: &str| std::env::split_paths(&path).any(|dir| dir.join(program).exists());
    if let Some((program, package)) = PROGRAMS.iter().find(|(program, _)| !is_there(program)) {
        return Some(format!("{program} is missing: apt-get install {package}"));
    }
    let bridge = Path::new(images::CNI).join("bridge");
    if !bridge.exists() {
        let bridge = bridge.display();
        return Some(format!(
            "{bridge} is missing: apt-get install containernetworking-plugins"
        ));
    }
    let helm = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/helm/bin/helm");
    let programs = ["kube", "csi-provisioner", "crd", "upstream.test"].map(built);
    if let Some(missing) = programs.iter().chain([&helm]).find(|path| !path.exists()) {
        let missing = missing.display();
        return Some(format!(
            "{missing} is not built: scripts/setup cluster builds it, or prints the reason"
        ));
    }
    let image = images::driver();
    let reason = format!("{} is not built: tests/e2e/image builds it", image.display());
    (!image.exists()).then_some(reason)
}

fn machine() -> Option<String> {
    // Missing modules are reported below.
    for module in FILESYSTEMS.iter().chain(&["loop", "bridge", "veth"]) {
        Start::of("modprobe").args(["-q", module]).run_blocking();
    }
    let filesystems = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let lacks = |name: &&str| !filesystems.split_whitespace().any(|known| known == *name);
    if let Some(name) = FILESYSTEMS.iter().find(|name| lacks(name)) {
        return Some(format!("this kernel does not support {name}"));
    }
    if !Path::new("/dev/loop-control").exists() {
        return Some("this machine has no loop devices".to_owned());
    }
    let command = "--mount --net --pid --fork --mount-proc ip link add name b type bridge";
    let created = Start::of("unshare").args(command.split(' ')).run_blocking();
    (!created).then(|| "namespaces with a bridge cannot be created".to_owned())
}

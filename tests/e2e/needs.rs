//! What a machine must have for a kubelet.

use std::path::Path;

use crate::common::process::Start;
use crate::images;
use crate::program::built;

/// What is started, by whom it is packed in Debian.
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

/// Why there can be no kubelet.
#[derive(Debug)]
pub(crate) enum Lack {
    /// Somebody has to install, build or allow it.
    SetUp(String),
    /// The machine's kernel does not have it, or whoever made the machine keeps it to himself.
    Machine(String),
}

/// The first thing that is not there, and how to have it.
pub(crate) fn missing() -> Option<Lack> {
    set_up().map(Lack::SetUp).or_else(|| machine().map(Lack::Machine))
}

fn set_up() -> Option<String> {
    if !nix::unistd::geteuid().is_root() {
        return Some("it needs root, for namespaces, mounts and loop devices".to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |program: &str| std::env::split_paths(&path).any(|dir| dir.join(program).exists());
    if let Some((program, package)) = PROGRAMS.iter().find(|(program, _)| !is_there(program)) {
        return Some(format!("there is no {program}: apt-get install {package}"));
    }
    let bridge = Path::new(images::CNI).join("bridge");
    if !bridge.exists() {
        return Some(format!(
            "there is no {}: apt-get install containernetworking-plugins",
            bridge.display()
        ));
    }
    let helm = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/helm/bin/helm");
    let wanted = [
        built("kube"),
        built("csi-provisioner"),
        built("crd"),
        built("upstream.test"),
        helm,
    ];
    if let Some(missing) = wanted.iter().find(|path| !path.exists()) {
        return Some(format!(
            "{} is not built: scripts/setup cluster builds it, or says why not",
            missing.display()
        ));
    }
    let image = images::driver();
    if !image.exists() {
        return Some(format!("{} is not built: tests/e2e/image builds it", image.display()));
    }
    None
}

fn machine() -> Option<String> {
    // What is a module comes when it is asked for. One that does not is missed below.
    for module in FILESYSTEMS.iter().chain(&["loop", "bridge", "veth"]) {
        Start::of("modprobe").args(["-q", module]).run_blocking();
    }
    let filesystems = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let lacks = |name: &&str| !filesystems.split_whitespace().any(|known| known == *name);
    if let Some(name) = FILESYSTEMS.iter().find(|name| lacks(name)) {
        return Some(format!("this kernel has no {name}, also not as a module"));
    }
    if !Path::new("/dev/loop-control").exists() {
        return Some("this machine has no loop devices".to_owned());
    }
    let namespaces = [
        "--mount",
        "--net",
        "--pid",
        "--fork",
        "--mount-proc",
        "ip",
        "link",
        "add",
        "name",
        "b",
        "type",
        "bridge",
    ];
    let made = Start::of("unshare").args(namespaces).run_blocking();
    (!made).then(|| "it may not make namespaces with a bridge in them".to_owned())
}

//! The saved state of a guest that has booted with a root from Debian packages and the program under test. It is kept
//! below the target directory and rebuilt only if its inputs have changed.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use serde_json::json;
use tokio::sync::OnceCell;

use super::machine::{BOOT_TIMEOUT, Guest, StartFrom, hardware};
use crate::common::process::Start;
use crate::common::shell::skip;
use crate::common::wait::until;

#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) kernel: PathBuf,
    pub(crate) initrd: PathBuf,
    /// Kernel parameters in addition to those of every guest.
    pub(crate) parameters: String,
}

/// The state of a guest that has booted.
#[derive(Debug, Clone)]
pub(crate) struct Saved {
    pub(crate) path: PathBuf,
}

static STATE: OnceCell<Result<Saved, String>> = OnceCell::const_new();

/// The state that each test restores; none with a message if guests are not supported.
pub(crate) async fn state() -> Option<Saved> {
    match STATE.get_or_init(make).await {
        Ok(saved) => Some(saved.clone()),
        Err(reason) => {
            skip(std::thread::current().name().expect("tests have names"), reason);
            None
        }
    }
}

/// The exit code of `tests/guest/build` if guests are not supported.
const UNSUPPORTED: i32 = 2;

async fn make() -> Result<Saved, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guest");
    let program = Path::new(env!("CARGO_BIN_EXE_diskplugin"));
    let target = program.parent().and_then(Path::parent);
    let target = target.expect("cargo puts programs into a profile's folder");
    let mut build = Start::of(&source.join("build").display().to_string());
    build = build.env("CARGO_TARGET_DIR", target);
    for suite in ["GUEST_KERNEL", "GUEST_TOOLS"] {
        if let Some(value) = std::env::var_os(suite) {
            build = build.env(suite, value);
        }
    }
    let built = build.ended().await;
    match built.code {
        Some(0) => {}
        Some(UNSUPPORTED) => return Err(format!("guests are not supported: {}", built.stderr)),
        _ => panic!("building the guest's root failed: {}", built.stderr),
    }
    let home = PathBuf::from(built.stdout.trim_end());
    // Parallel test processes share one boot. The kernel releases the lock when the process exits.
    let lock = File::create(home.join("state.lock")).expect("a file of this test");
    lock.lock().expect("a file can be locked");
    let path = home.join(format!("state-{:016x}", fingerprint(&home, program).await));
    if !path.exists() {
        for old in old_states(&home) {
            std::fs::remove_file(old).expect("a file of this test");
        }
        boot(&home, program, &path).await;
    }
    Ok(Saved { path })
}

fn old_states(home: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(home).expect("made by the build").flatten();
    let is_state = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("state-"))
    };
    entries.map(|entry| entry.path()).filter(is_state).collect()
}

/// A hash of all inputs of the state.
async fn fingerprint(home: &Path, program: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    std::fs::read(home.join("made-of"))
        .expect("made by the build")
        .hash(&mut hasher);
    let file = std::fs::metadata(program).expect("cargo has built it");
    (file.len(), file.modified().expect("available on Linux")).hash(&mut hasher);
    let version = Start::of("qemu-system-x86_64").args(["--version"]).ended().await;
    (version.stdout, hardware()).hash(&mut hasher);
    hasher.finish()
}

/// Boots a guest from the root in this folder.
pub(super) async fn booted(home: &Path, parameters: &str) -> Guest {
    let mut guest = Guest::start(StartFrom::Boot(&Root::new(home, parameters))).await;
    guest.wait_booted().await;
    guest
}

impl Root {
    pub(super) fn new(home: &Path, parameters: &str) -> Self {
        Self {
            kernel: home.join("vmlinuz"),
            initrd: home.join("initrd.cpio"),
            parameters: parameters.to_owned(),
        }
    }
}

impl Guest {
    pub(super) async fn wait_booted(&mut self) {
        until("the guest has booted", BOOT_TIMEOUT, async || {
            self.check();
            self.console().contains("guest: ready").then_some(())
        })
        .await;
        self.sh("udevadm settle").await;
    }
}

/// Boots a guest and saves it.
async fn boot(home: &Path, program: &Path, path: &Path) {
    let initrd = home.join("initrd.cpio");
    let folder = tempfile::tempdir_in(home).expect("a writable directory");
    // The kernel unpacks concatenated archives. Debug information is stripped to save memory of the guest.
    let script = "set -euo pipefail; mkdir -p \"$1/usr/bin\"; strip -o \"$1/usr/bin/diskplugin\" \"$2\"; \
         cd \"$1\"; { cat \"$3\"; find . -print | cpio --create --format=newc --owner=0:0 --quiet; } > \"$4\"";
    let text = |path: &Path| path.display().to_string();
    let packed = Start::of("bash")
        .args(["-c", script, "bash"])
        .args([folder.path(), program, &home.join("root.cpio"), &initrd].map(text))
        .ended();
    let packed = packed.await;
    assert_eq!(packed.code, Some(0), "packing the initrd failed: {}", packed.stderr);
    let guest = booted(home, "").await;
    let part = path.with_extension("part");
    guest.qmp.run("stop", json!({})).await;
    let to = json!({ "uri": format!("exec:cat > '{}'", part.display()) });
    // The default bandwidth limit is that of a slow network.
    let fast = json!({ "max-bandwidth": 1u64 << 40 });
    guest.qmp.run("migrate-set-parameters", fast).await;
    guest.qmp.run("migrate", to).await;
    until("the guest is saved", BOOT_TIMEOUT, async || {
        let status = guest.qmp.run("query-migrate", json!({})).await;
        assert_ne!(status["status"], "failed", "{status}");
        (status["status"] == "completed").then_some(())
    })
    .await;
    std::fs::rename(part, path).expect("the same directory");
}

//! What guests are made of: the root from Debian's packages, the program under test, and the state of
//! a guest that has booted with both. All is kept below the target directory and made anew only when
//! what it is made of has changed.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tokio::sync::OnceCell;

use super::machine::{Begin, Guest, hardware};
use crate::common::process::Start;
use crate::common::shell::skip;
use crate::common::wait::until;

/// Longer than a boot takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a guest boots with.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) kernel: PathBuf,
    pub(crate) initrd: PathBuf,
    /// Parameters of the kernel beside those of every guest.
    pub(crate) parameters: String,
}

/// The state of a guest that has booted.
#[derive(Debug, Clone)]
pub(crate) struct Saved {
    pub(crate) path: PathBuf,
}

static STATE: OnceCell<Result<Saved, String>> = OnceCell::const_new();

/// The state that each test's guest begins with; none, aloud, where guests cannot be.
pub(crate) async fn state(test: &str) -> Option<Saved> {
    match STATE.get_or_init(make).await {
        Ok(saved) => Some(saved.clone()),
        Err(reason) => {
            skip(test, reason);
            None
        }
    }
}

/// `tests/guest/build` says by this code that guests cannot be had here.
const CANNOT: i32 = 2;

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
        Some(CANNOT) => return Err(format!("there can be no guest: {}", built.stderr)),
        _ => panic!("the guest's root cannot be made: {}", built.stderr),
    }
    let home = PathBuf::from(built.stdout.trim_end());
    // Two test processes at once boot once. The kernel lets go of it at the end.
    let lock = File::create(home.join("state.lock")).expect("a file of ours");
    lock.lock().expect("a file can be locked");
    let path = home.join(format!("state-{:016x}", fingerprint(&home, program).await));
    if !path.exists() {
        for old in old_states(&home) {
            std::fs::remove_file(old).expect("a file of ours");
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

/// Of everything that a state depends on.
async fn fingerprint(home: &Path, program: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    std::fs::read(home.join("made-of"))
        .expect("made by the build")
        .hash(&mut hasher);
    let file = std::fs::metadata(program).expect("cargo has built it");
    (file.len(), file.modified().expect("known on Linux")).hash(&mut hasher);
    let version = Start::of("qemu-system-x86_64").args(["--version"]).ended().await;
    (version.stdout, hardware()).hash(&mut hasher);
    hasher.finish()
}

/// Boots a guest from the root in this folder.
pub(super) async fn booted(home: &Path, parameters: &str) -> Guest {
    let root = Root {
        kernel: home.join("vmlinuz"),
        initrd: home.join("initrd.cpio"),
        parameters: parameters.to_owned(),
    };
    let mut guest = Guest::start(Begin::Boot(&root)).await;
    until("the guest has booted", PATIENCE, async || {
        guest.check();
        guest.console().contains("guest: ready").then_some(())
    })
    .await;
    guest.sh("udevadm settle").await;
    guest
}

/// Boots a guest and saves it.
async fn boot(home: &Path, program: &Path, path: &Path) {
    let initrd = home.join("initrd.cpio");
    let folder = tempfile::tempdir_in(home).expect("a folder of ours");
    // The kernel unpacks one archive after the other. What debuggers want is left out: it would fill
    // the guest's memory.
    let script = "set -euo pipefail; mkdir -p \"$1/usr/bin\"; strip -o \"$1/usr/bin/diskplugin\" \"$2\"; \
         cd \"$1\"; { cat \"$3\"; find . -print | cpio --create --format=newc --owner=0:0 --quiet; } > \"$4\"";
    let text = |path: &Path| path.display().to_string();
    let packed = Start::of("bash")
        .args(["-c", script, "bash"])
        .args([folder.path(), program, &home.join("root.cpio"), &initrd].map(text))
        .ended();
    let packed = packed.await;
    assert_eq!(packed.code, Some(0), "no initrd: {}", packed.stderr);
    let guest = booted(home, "").await;
    let part = path.with_extension("part");
    guest.qmp.run("stop", json!({})).await;
    let to = json!({ "uri": format!("exec:cat > '{}'", part.display()) });
    // The default is what a network of long ago could take.
    let fast = json!({ "max-bandwidth": 1u64 << 40 });
    guest.qmp.run("migrate-set-parameters", fast).await;
    guest.qmp.run("migrate", to).await;
    until("the guest is saved", PATIENCE, async || {
        let status = guest.qmp.run("query-migrate", json!({})).await;
        assert_ne!(status["status"], "failed", "{status}");
        (status["status"] == "completed").then_some(())
    })
    .await;
    std::fs::rename(part, path).expect("beside it");
}

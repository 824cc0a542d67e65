//! Loop devices, read from sysfs and set up with `losetup`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::fcntl::OFlag;

use super::command::RunCommand;
use super::dir::LoopError;

/// Timeout of a command; the slowest one copies a full disk.
const COMMAND_TIME: Duration = Duration::from_mins(5);

pub(super) async fn run(
    commands: &Arc<dyn RunCommand>,
    program: &str,
    arguments: &[&OsStr],
) -> Result<String, LoopError> {
    let output = tokio::time::timeout(COMMAND_TIME, commands.run(program, arguments)).await;
    let late = |_| LoopError::Command(format!("{program} has not ended after {COMMAND_TIME:?}").into());
    output.map_err(late)?.map_err(LoopError::Command)
}

/// The loop devices whose backing file is accepted.
pub(super) async fn find(accept: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>, LoopError> {
    let sys = Path::new("/sys/block");
    let at = |error| LoopError::io("read", sys, error);
    let mut found = Vec::new();
    let mut entries = tokio::fs::read_dir(sys).await.map_err(at)?;
    while let Some(entry) = entries.next_entry().await.map_err(at)? {
        let name = entry.file_name();
        if !name.as_encoded_bytes().starts_with(b"loop") {
            continue;
        }
        if let Some(file) = backing_file(&entry.path()).await
            && accept(&file)
        {
            found.push(Path::new("/dev").join(name));
        }
    }
    Ok(found)
}

/// The backing file of a loop device, by its directory in sysfs; none if it is free.
async fn backing_file(sys: &Path) -> Option<PathBuf> {
    let text = tokio::fs::read_to_string(sys.join("loop/backing_file")).await;
    // A free device has no such attribute; reading it while the device is being freed may fail.
    let text = text.ok()?;
    let text = text.trim_end_matches('\n');
    let text = text.strip_suffix(" (deleted)").unwrap_or(text);
    (!text.is_empty()).then(|| PathBuf::from(text))
}

/// Sets up a loop device, or returns the existing one of the file.
pub(super) async fn attach(commands: &Arc<dyn RunCommand>, file: &Path) -> Result<PathBuf, LoopError> {
    // losetup determines a free device and then opens it exclusively. Two at the same time may choose the same device,
    // and the slower one would make the other's mkfs fail.
    let arguments = ["/dev", "losetup", "--find", "--show", "--nooverlap"].map(OsStr::new);
    let arguments = [&arguments[..], &[file.as_os_str()]].concat();
    let device = PathBuf::from(run(commands, "flock", &arguments).await?.trim());
    if find(|backing| backing == file).await?.contains(&device) {
        Ok(device)
    } else {
        Err(LoopError::WrongDevice {
            device,
            file: file.to_owned(),
        })
    }
}

/// Whether the device is open exclusively, such as by a mount.
pub(super) async fn is_busy(device: &Path) -> bool {
    let mut options = tokio::fs::OpenOptions::new();
    let opened = options.read(true).custom_flags(OFlag::O_EXCL.bits()).open(device).await;
    let busy = nix::errno::Errno::EBUSY as i32;
    opened.is_err_and(|error| error.raw_os_error() == Some(busy))
}

/// Frees the device. `losetup` also succeeds if the device is open, which is then freed on last
/// close: the caller must check.
pub(super) async fn detach(commands: &Arc<dyn RunCommand>, device: &Path) -> Result<(), LoopError> {
    let arguments = [OsStr::new("--detach"), device.as_os_str()];
    run(commands, "losetup", &arguments).await.map(drop)
}

/// Updates the device's size after its file has grown.
pub(super) async fn grow(commands: &Arc<dyn RunCommand>, device: &Path) -> Result<(), LoopError> {
    let arguments = [OsStr::new("--set-capacity"), device.as_os_str()];
    run(commands, "losetup", &arguments).await.map(drop)
}

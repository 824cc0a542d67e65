//! Attributes and directories of sysfs.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{fs, io};

use nix::errno::Errno::{ENODEV, ENOENT, ENXIO};

use super::error::{HostError, IoResult, Result, errno};

/// Whether devices with this name never have a serial. A machine can have hundreds of them.
pub(super) fn is_virtual(name: &str) -> bool {
    ["loop", "ram", "zram", "dm-", "md", "nbd", "sr", "fd"]
        .iter()
        .filter_map(|prefix| name.strip_prefix(prefix))
        .any(|number| number.parse::<u32>().is_ok())
}

/// The trimmed text of an attribute, if it exists. Reading an attribute while its device is removed
/// fails with `ENODEV` or `ENXIO`.
pub(super) fn attribute(path: &Path) -> Result<Option<String>> {
    let Some(bytes) = unless_removed(fs::read(path)).io_context("read", path)? else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    Ok(Some(text.to_owned()))
}

pub(super) fn parsed_attribute<T: FromStr>(path: &Path) -> Result<Option<T>> {
    let Some(text) = attribute(path)? else {
        return Ok(None);
    };
    let value = text.parse().map_err(|_| {
        let reason = format!("{text:?} does not match the format that the kernel documents");
        HostError::unexpected_format(path, reason)
    })?;
    Ok(Some(value))
}

/// The directory of block devices. If it is missing, the absence of a device proves nothing.
pub(super) fn block_dir(sys: &Path) -> Result<PathBuf> {
    let block = sys.join("block");
    let found = block.is_dir().then_some(()).ok_or(io::ErrorKind::NotFound);
    found.io_context("list", &block).map(|()| block)
}

/// The sorted names in a directory; empty if it does not exist.
pub(super) fn names(dir: &Path) -> Result<Vec<String>> {
    let entries = unless_removed(fs::read_dir(dir)).io_context("list", dir)?;
    let mut names = Vec::new();
    for entry in entries.into_iter().flatten() {
        let entry = entry.io_context("list", dir)?;
        names.extend(entry.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

fn unless_removed<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read.as_ref().err().and_then(errno) {
        Some(ENOENT | ENODEV | ENXIO) => Ok(None),
        _ => read.map(Some),
    }
}

/// The value of a setting, such as `queue/scheduler`; of several choices the selected one. `None` if the kernel does
/// not have the setting.
pub(super) fn read_setting(path: &Path) -> io::Result<Option<String>> {
    // InvalidInput: wbt_lat_usec cannot be read without writeback throttling.
    let text = fs::read_to_string(path).none_if(&[io::ErrorKind::NotFound, io::ErrorKind::InvalidInput])?;
    Ok(text.map(|text| selected(text.trim()).to_owned()))
}

/// `none [mq-deadline] kyber` selects `mq-deadline`.
pub(super) fn selected(text: &str) -> &str {
    let mut words = text.split_whitespace();
    let selected = words.find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    selected.unwrap_or(text)
}

/// Sets an existing setting. The kernel rejects values that the device does not support.
pub(super) fn write_setting(path: &Path, value: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).open(path)?;
    io::Write::write_all(&mut file, value.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selected_choice_is_read_and_an_unknown_setting_is_not_created() {
        let sys = tempfile::tempdir().unwrap();
        let queue = sys.path().join("block/vdb/queue");
        fs::create_dir_all(&queue).unwrap();
        for (text, value) in [
            ("none [mq-deadline] kyber\n", "mq-deadline"),
            ("[none]\n", "none"),
            ("128\n", "128"),
        ] {
            fs::write(queue.join("x"), text).unwrap();
            let read = read_setting(&queue.join("x")).unwrap();
            assert_eq!(read.as_deref(), Some(value));
        }
        assert_eq!(read_setting(&queue.join("y")).unwrap(), None);
        write_setting(&queue.join("x"), "4").unwrap();
        write_setting(&queue.join("y"), "4").unwrap_err();
        assert!(!queue.join("y").exists());
    }
}

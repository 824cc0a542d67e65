//! Attributes and directories of sysfs.

use std::path::Path;
use std::str::FromStr;
use std::{fs, io};

use super::error::{HostError, IoResult, Result};

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
    let bytes = match fs::read(path) {
        Err(error) if is_not_found(&error) => return Ok(None),
        read => read.io_context("read", path)?,
    };
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    Ok(Some(text.to_owned()))
}

/// The value of an attribute, if it exists.
pub(super) fn parsed_attribute<T: FromStr>(path: &Path) -> Result<Option<T>> {
    let Some(text) = attribute(path)? else {
        return Ok(None);
    };
    let value = text.parse().map_err(|_| HostError::UnexpectedFormat {
        path: path.to_owned(),
        reason: format!("{text:?} does not match the format that the kernel documents"),
    })?;
    Ok(Some(value))
}

/// The sorted names in a directory; empty if it does not exist.
pub(super) fn names(dir: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if is_not_found(&error) => return Ok(Vec::new()),
        listed => listed.io_context("list", dir)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.io_context("list", dir)?;
        names.extend(entry.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

fn is_not_found(error: &io::Error) -> bool {
    use nix::errno::Errno::{ENODEV, ENOENT, ENXIO};
    let code = error.raw_os_error();
    [ENOENT, ENODEV, ENXIO].iter().any(|errno| code == Some(*errno as i32))
}

//! Reads and writes settings of block devices in sysfs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::device::Device;
use super::error::{HostError, Result};

fn path(sys: &Path, device: &Device, name: &str) -> PathBuf {
    sys.join("block").join(device.whole_name()).join(name)
}

/// The value of a setting, such as `queue/scheduler`; of several choices the selected one. `None` if the kernel does not
/// have the setting.
pub(super) fn read(sys: &Path, device: &Device, name: &str) -> Result<Option<String>> {
    let path = path(sys, device, name);
    match fs::read_to_string(&path) {
        Ok(text) => Ok(Some(selected(text.trim()).to_owned())),
        // wbt_lat_usec cannot be read without writeback throttling.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::InvalidInput
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(HostError::io("read", &path, error)),
    }
}

/// `none [mq-deadline] kyber` selects `mq-deadline`.
fn selected(text: &str) -> &str {
    let inner = |word: &'_ str| word.starts_with('[') && word.ends_with(']');
    let word = text.split_whitespace().find(|word| inner(word));
    word.map_or(text, |word| word.trim_matches(['[', ']']))
}

/// Sets an existing setting. The kernel rejects values that the device does not support.
pub(super) fn write(sys: &Path, device: &Device, name: &str, value: &str) -> Result<()> {
    let path = path(sys, device, name);
    let written = fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .and_then(|mut file| io::Write::write_all(&mut file, value.as_bytes()));
    written.map_err(|error| HostError::io("set", &path, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::disk;

    #[test]
    fn the_selected_choice_is_read_and_an_unknown_setting_is_not_created() {
        let sys = tempfile::tempdir().unwrap();
        let queue = sys.path().join("block/vdb/queue");
        fs::create_dir_all(&queue).unwrap();
        let device = disk("vdb", 16, "bp1");
        for (text, value) in [
            ("none [mq-deadline] kyber\n", "mq-deadline"),
            ("[none]\n", "none"),
            ("128\n", "128"),
        ] {
            fs::write(queue.join("x"), text).unwrap();
            let read = read(sys.path(), &device, "queue/x").unwrap();
            assert_eq!(read.as_deref(), Some(value));
        }
        assert_eq!(read(sys.path(), &device, "queue/y").unwrap(), None);
        write(sys.path(), &device, "queue/x", "4").unwrap();
        write(sys.path(), &device, "queue/y", "4").unwrap_err();
        assert!(!queue.join("y").exists());
    }
}

//! Reads and writes settings of block devices in sysfs.

use std::fs;
use std::io;
use std::path::Path;

use super::error::{IoResult, Result};

/// The value of a setting, such as `queue/scheduler`; of several choices the selected one. `None` if the kernel does
/// not have the setting.
pub(super) fn read(path: &Path) -> Result<Option<String>> {
    let text = fs::read_to_string(path)
        // InvalidInput: wbt_lat_usec cannot be read without writeback throttling.
        .none_if(&[io::ErrorKind::NotFound, io::ErrorKind::InvalidInput])
        .io_context("read", path)?;
    Ok(text.map(|text| selected(text.trim()).to_owned()))
}

/// `none [mq-deadline] kyber` selects `mq-deadline`.
fn selected(text: &str) -> &str {
    let inner = |word: &'_ str| word.starts_with('[') && word.ends_with(']');
    let word = text.split_whitespace().find(|word| inner(word));
    word.map_or(text, |word| word.trim_matches(['[', ']']))
}

/// Sets an existing setting. The kernel rejects values that the device does not support.
pub(super) fn write(path: &Path, value: &str) -> Result<()> {
    let written = fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| io::Write::write_all(&mut file, value.as_bytes()));
    written.io_context("set", path)
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
            let read = read(&queue.join("x")).unwrap();
            assert_eq!(read.as_deref(), Some(value));
        }
        assert_eq!(read(&queue.join("y")).unwrap(), None);
        write(&queue.join("x"), "4").unwrap();
        write(&queue.join("y"), "4").unwrap_err();
        assert!(!queue.join("y").exists());
    }
}

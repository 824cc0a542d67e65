//! Serials of devices. virtio requests the serial from the disk each time its attribute is read, so a disk that does
//! not respond would block every search for another one. Serials are therefore read by a call per device, before the
//! search, once per incarnation, and callers wait for it only briefly.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use super::blocking::blocking;
use super::device_sequence::DeviceSequence;
use super::error::{HostError, Result};
use super::sysfs::{attribute, is_virtual, names};
use crate::base::{Deadline, join_all, lock};
use crate::model::Serial;

/// How long callers wait for the serial; a working disk reports it within a millisecond.
const TIMEOUT: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SerialState {
    Known(Serial),
    None,
    /// The device has not responded, or reading failed: it may have any serial.
    Pending,
}

impl SerialState {
    pub(super) fn known(self) -> Option<Serial> {
        match self {
            Self::Known(serial) => Some(serial),
            Self::None | Self::Pending => None,
        }
    }
}

/// The last reads, by the name of the device. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Serials(Arc<Mutex<HashMap<String, LastRead>>>);

#[derive(Debug)]
struct LastRead {
    sequence: Option<DeviceSequence>,
    serial: Option<Serial>,
    at: Instant,
}

impl Serials {
    /// Reads the serials that are not known yet, of the named device or of all, so that the following listing does not
    /// access the disks. `path` is the key of the listing.
    pub(super) async fn refresh(&self, deadline: Deadline, sys: &Path, path: &Path, only: Option<&str>) -> Result<()> {
        let (serials, block) = (self.clone(), sys.join("block"));
        let (dir, only) = (block.clone(), only.map(str::to_owned));
        let unknown = blocking(deadline, "list the devices for", path, move |_| {
            serials.unknown(&dir, only.as_deref())
        });
        let unknown = unknown.await?;
        self.read_all(deadline, &block, unknown).await;
        Ok(())
    }

    /// The named device, or all devices in the directory, whose serials are not known. This blocks only for their names
    /// and incarnations, which the kernel has in memory.
    fn unknown(&self, block: &Path, only: Option<&str>) -> Result<Vec<String>> {
        let listed = match only {
            Some(name) => vec![name.to_owned()],
            None => {
                let sorted = names(block)?;
                let is_listed = |name: &String| sorted.binary_search(name).is_ok();
                lock(&self.0).retain(|name, _| is_listed(name));
                sorted
            }
        };
        let mut unknown = Vec::new();
        for name in listed.into_iter().filter(|name| !is_virtual(name)) {
            let sequence = DeviceSequence::read(&block.join(&name), &name)?;
            if !matches!(self.state(&name, sequence), SerialState::Known(_)) {
                unknown.push(name);
            }
        }
        Ok(unknown)
    }

    /// Reads the serials of these devices. One that is not reported in time is pending, and is not read again until its
    /// read has returned.
    async fn read_all(&self, deadline: Deadline, block: &Path, devices: Vec<String>) {
        join_all(devices.into_iter().map(async |name| {
            let dir = block.join(&name);
            let path = dir.join("serial");
            let (serials, device, requested) = (self.clone(), name.clone(), Instant::now());
            let deadline = deadline.at_most(TIMEOUT);
            let read = blocking(deadline, "read", &path, move |_| serials.read(&dir, &device, requested));
            let read = read.await;
            if let Err(HostError::TimedOut { .. }) = read {
                tracing::warn!(device = name, "the disk does not report its serial");
            }
        }))
        .await;
    }

    /// Reads the serial of the device in this directory of sysfs, unless another call has done so since `requested`.
    fn read(&self, dir: &Path, name: &str, requested: Instant) -> Result<()> {
        let sequence = DeviceSequence::read(dir, name)?;
        let is_new = |last: &LastRead| last.at >= requested && last.sequence == sequence;
        if lock(&self.0).get(name).is_some_and(is_new) {
            return Ok(());
        }
        let at = Instant::now();
        let serial = match dir.join("serial").exists() {
            true => serial_in(dir)?,
            false => at_controller(dir, name)?,
        };
        // Another device may have the name by now.
        if DeviceSequence::read(dir, name)? == sequence {
            let read = LastRead { sequence, serial, at };
            lock(&self.0).insert(name.to_owned(), read);
        }
        Ok(())
    }

    /// The serial that was read last of this incarnation of a device.
    pub(super) fn state(&self, name: &str, sequence: Option<DeviceSequence>) -> SerialState {
        if is_virtual(name) {
            return SerialState::None;
        }
        match lock(&self.0).get(name) {
            Some(last) if last.sequence == sequence => {
                let serial = last.serial.clone();
                serial.map_or(SerialState::None, SerialState::Known)
            }
            _ => SerialState::Pending,
        }
    }

    /// For tests in which every disk responds.
    #[cfg(test)]
    pub(super) fn of(sys: &Path) -> Self {
        let (serials, block) = (Self::default(), sys.join("block"));
        for name in serials.unknown(&block, None).unwrap() {
            let read = serials.read(&block.join(&name), &name, Instant::now());
            read.unwrap();
        }
        serials
    }
}

/// The serial of an NVMe device is an attribute of its controller or, with multipath, of its subsystem. Reading it does
/// not access the disk.
fn at_controller(dir: &Path, name: &str) -> Result<Option<Serial>> {
    if !name.starts_with("nvme") {
        return Ok(None);
    }
    if let Some(serial) = serial_in(&dir.join("device"))? {
        return Ok(Some(serial));
    }
    // The number in the name may be that of another subsystem; only the path in sysfs shows which one it is.
    let Ok(path) = dir.canonicalize() else {
        return Ok(None);
    };
    let is_subsystem = |dir: &&Path| {
        let name = dir.file_name().and_then(|name| name.to_str());
        name.and_then(|name| name.strip_prefix("nvme-subsys"))
            .is_some_and(|number| number.parse::<u32>().is_ok())
    };
    match path.ancestors().find(is_subsystem) {
        Some(subsystem) => serial_in(subsystem),
        None => Ok(None),
    }
}

fn serial_in(dir: &Path) -> Result<Option<Serial>> {
    Ok(attribute(&dir.join("serial"))?.as_deref().and_then(Serial::new))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    fn file(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn serial(text: &str) -> SerialState {
        SerialState::Known(Serial::new(text).unwrap())
    }

    /// Reads what is unknown, and returns the state of vdb.
    async fn refreshed_state(serials: &Serials, block: &Path, sequence: u64) -> SerialState {
        let deadline = Deadline::after(Duration::from_secs(60));
        let unknown = serials.unknown(block, None).unwrap();
        serials.read_all(deadline, block, unknown).await;
        serials.state("vdb", Some(DeviceSequence::Diskseq(sequence)))
    }

    #[tokio::test]
    async fn a_reported_serial_is_read_once_in_each_incarnation() {
        let sys = tempfile::tempdir().unwrap();
        let (serials, block) = (Serials::default(), sys.path());
        for (sequence, text, reported) in [
            ("7", "", SerialState::None),
            ("7", "bp1", serial("bp1")),
            ("7", "bp2", serial("bp1")),
            ("8", "bp2", serial("bp2")),
        ] {
            file(&block.join("vdb/diskseq"), sequence);
            file(&block.join("vdb/serial"), text);
            let sequence = sequence.parse().unwrap();
            assert_eq!(refreshed_state(&serials, block, sequence).await, reported);
        }
        assert_eq!(refreshed_state(&serials, block, 7).await, SerialState::Pending);
        fs::remove_dir_all(block.join("vdb")).unwrap();
        assert_eq!(refreshed_state(&serials, block, 8).await, SerialState::Pending);
    }

    #[tokio::test]
    async fn a_disk_that_does_not_respond_delays_only_the_first_call() {
        let sys = tempfile::tempdir().unwrap();
        let (serials, block) = (Serials::default(), sys.path());
        file(&block.join("vdb/diskseq"), "7");
        file(&block.join("vdc/diskseq"), "8");
        file(&block.join("vdc/serial"), "bp2");
        // Opening it blocks until a writer opens it.
        let fifo = block.join("vdb/serial");
        mkfifo(&fifo, Mode::S_IRWXU).unwrap();
        assert_eq!(refreshed_state(&serials, block, 7).await, SerialState::Pending);
        for _ in 0..20 {
            let start = Instant::now();
            assert_eq!(refreshed_state(&serials, block, 7).await, SerialState::Pending);
            if start.elapsed() < TIMEOUT {
                break;
            }
        }
        let other = serials.state("vdc", Some(DeviceSequence::Diskseq(8)));
        assert_eq!(other, serial("bp2"));
        fs::write(&fifo, "bp1").unwrap();
        let state = || serials.state("vdb", Some(DeviceSequence::Diskseq(7)));
        while state() == SerialState::Pending {
            tokio::task::yield_now().await;
        }
        assert_eq!(state(), serial("bp1"));
    }

    #[test]
    fn an_nvme_serial_is_at_the_controller_or_at_the_subsystem_above_it() {
        let sys = tempfile::tempdir().unwrap();
        let of = |dir: &Path, name| at_controller(dir, name).unwrap();
        let plain = sys.path().join("devices/pci/nvme/nvme1/nvme1n1");
        file(&plain.join("device/serial"), "bp18um4r4f2fve24k7qz    \n");
        assert_eq!(of(&plain, "nvme1n1"), Serial::new("bp18um4r4f2fve24k7qz"));

        let subsystem = sys.path().join("devices/virtual/nvme-subsystem/nvme-subsys2");
        file(&subsystem.join("serial"), "bp2\n");
        let head = subsystem.join("nvme2n1");
        fs::create_dir(&head).unwrap();
        let link = sys.path().join("nvme2n1");
        symlink(&head, &link).unwrap();
        assert_eq!(of(&link, "nvme2n1"), Serial::new("bp2"));

        // Outside a subsystem, the number in the name has no meaning.
        let alone = sys.path().join("devices/pci/nvme/nvme7/nvme2n1");
        fs::create_dir_all(&alone).unwrap();
        assert_eq!(of(&alone, "nvme2n1"), None);
    }
}

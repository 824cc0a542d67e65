//! Serials of devices. virtio requests the serial from the disk each time its attribute is read, so a disk that does not
//! respond would block every search for another one. Each serial is therefore read once per incarnation of its device,
//! on a thread of its own, and callers wait for it only briefly.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::blocking_pool::BlockingPool;
use super::device::attribute;
use super::device_incarnation::DeviceSequence;
use super::error::{HostError, Result};
use crate::model::Serial;

/// How long callers wait for the serial; a working disk reports it within a millisecond.
const TIMEOUT: Duration = Duration::from_millis(200);

/// The serial of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SerialState {
    Known(Serial),
    /// The device reports none.
    None,
    /// The device has not answered, or reading failed: it may have any serial.
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

impl From<Option<Serial>> for SerialState {
    fn from(serial: Option<Serial>) -> Self {
        serial.map_or(Self::None, Self::Known)
    }
}

/// Cached serials. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Serials(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    known: Mutex<HashMap<String, Known>>,
    answered: Condvar,
    pool: BlockingPool,
    timeout: Duration,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
            answered: Condvar::default(),
            pool: BlockingPool::default(),
            timeout: TIMEOUT,
        }
    }
}

/// The serial of the device that has a name.
#[derive(Debug, Clone)]
struct Known {
    /// The incarnation of the device.
    sequence: Option<DeviceSequence>,
    answer: Answer,
}

#[derive(Debug, Clone)]
enum Answer {
    /// Callers wait for the read.
    Awaited,
    /// The read takes too long; callers no longer wait for it.
    Late,
    Told(Serial),
    /// The device reports no serial. It is read again by the next call.
    Absent,
    /// The read failed. It is repeated by the next call.
    Failed,
}

impl Serials {
    /// For tests in which every disk responds, however busy the machine is.
    #[cfg(test)]
    pub(super) fn without_timeout() -> Self {
        Self(Arc::new(Shared {
            timeout: Duration::from_mins(5),
            ..Shared::default()
        }))
    }

    /// The serial of the device in this directory of sysfs.
    pub(super) fn of(
        &self,
        dir: &Path,
        name: &str,
        sequence: Option<DeviceSequence>,
    ) -> Result<SerialState> {
        if let Some(serial) = self.told(name, sequence) {
            return Ok(SerialState::Known(serial));
        }
        let own = dir.join("serial");
        let serial = if own.exists() {
            self.ask(&own, name, sequence)?
        } else {
            at_controller(dir, name)?.into()
        };
        if let SerialState::Known(serial) = &serial {
            let answer = Answer::Told(serial.clone());
            self.lock()
                .insert(name.to_owned(), Known { sequence, answer });
        }
        Ok(serial)
    }

    /// Forgets devices that are not among these, a list that may be older than a question that is out.
    pub(super) fn keep(&self, names: &[String]) {
        let mut known = self.lock();
        // Names are sorted.
        known.retain(|name, known| known.is_awaited() || names.binary_search(name).is_ok());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn told(&self, name: &str, sequence: Option<DeviceSequence>) -> Option<Serial> {
        // Otherwise the name may belong to another disk.
        sequence?;
        match self.lock().get(name)? {
            Known {
                sequence: of,
                answer: Answer::Told(serial),
            } if *of == sequence => Some(serial.clone()),
            _ => None,
        }
    }

    /// Asks the disk on a thread of its own, if nobody has: a system call cannot be taken back. Only the
    /// first who ask wait for it.
    fn ask(&self, own: &Path, name: &str, sequence: Option<DeviceSequence>) -> Result<SerialState> {
        let mut known = self.lock();
        let asked = known.get(name).filter(|known| known.sequence == sequence);
        match asked.map(|known| &known.answer) {
            Some(Answer::Late) => return Ok(SerialState::Pending),
            Some(Answer::Awaited) => {}
            Some(Answer::Told(_) | Answer::Absent | Answer::Failed) | None => {
                self.clone()
                    .listen(own.to_owned(), name.to_owned(), sequence)?;
                let answer = Answer::Awaited;
                known.insert(name.to_owned(), Known { sequence, answer });
            }
        }
        let is_awaited = |known: &mut HashMap<String, Known>| {
            let known = known.get(name);
            known.is_some_and(|known| known.sequence == sequence && known.is_awaited())
        };
        let waiting = self
            .0
            .answered
            .wait_timeout_while(known, self.0.timeout, is_awaited);
        let (mut known, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        let Some(known) = known
            .get_mut(name)
            .filter(|known| known.sequence == sequence)
        else {
            // Another device has the name by now.
            return Ok(SerialState::Pending);
        };
        Ok(match &known.answer {
            Answer::Told(serial) => SerialState::Known(serial.clone()),
            Answer::Absent => SerialState::None,
            Answer::Late | Answer::Failed => SerialState::Pending,
            Answer::Awaited => {
                tracing::warn!(device = name, "the disk does not report its serial");
                known.answer = Answer::Late;
                SerialState::Pending
            }
        })
    }

    fn listen(self, own: PathBuf, name: String, sequence: Option<DeviceSequence>) -> Result<()> {
        let path = own.clone();
        let pool = self.0.pool.clone();
        let question = move || {
            let answer = match attribute(&own) {
                Ok(text) => match text.as_deref().and_then(Serial::new) {
                    Some(serial) => Answer::Told(serial),
                    None => Answer::Absent,
                },
                Err(_) => Answer::Failed,
            };
            let mut known = self.lock();
            // Another device may have the name by now.
            if known
                .get(&name)
                .is_some_and(|known| known.sequence == sequence)
            {
                known.insert(name, Known { sequence, answer });
            }
            self.0.answered.notify_all();
        };
        pool.spawn(question)
            .map_err(|error| HostError::io("read", &path, error))
    }
}

impl Known {
    fn is_awaited(&self) -> bool {
        matches!(self.answer, Answer::Awaited)
    }
}

/// NVMe has the serial at the controller, and where several controllers lead to the device, at the
/// subsystem. The kernel has both in its memory.
fn at_controller(dir: &Path, name: &str) -> Result<Option<Serial>> {
    let serial = |path: PathBuf| Ok(attribute(&path)?.as_deref().and_then(Serial::new));
    if !name.starts_with("nvme") {
        return Ok(None);
    }
    if let Some(serial) = serial(dir.join("device/serial"))? {
        return Ok(Some(serial));
    }
    // The number in the name may be that of another subsystem: only the place in the tree tells.
    let Ok(place) = dir.canonicalize() else {
        return Ok(None);
    };
    let is_subsystem = |dir: &&Path| {
        let name = dir.file_name().and_then(|name| name.to_str());
        name.and_then(|name| name.strip_prefix("nvme-subsys"))
            .is_some_and(|number| number.parse::<u32>().is_ok())
    };
    match place.ancestors().find(is_subsystem) {
        Some(subsystem) => serial(subsystem.join("serial")),
        None => Ok(None),
    }
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

    fn sequence(number: u64) -> Option<DeviceSequence> {
        Some(DeviceSequence::Diskseq(number))
    }

    fn serial(text: &str) -> SerialState {
        Serial::new(text).into()
    }

    #[test]
    fn a_disk_is_asked_once_in_each_appearance() {
        let sys = tempfile::tempdir().unwrap();
        let (serials, dir) = (Serials::default(), sys.path().join("vdb"));
        file(&dir.join("serial"), "bp1");
        let of = |incarnation| serials.of(&dir, "vdb", incarnation).unwrap();
        assert_eq!(of(sequence(7)), serial("bp1"));
        file(&dir.join("serial"), "bp2");
        assert_eq!(of(sequence(7)), serial("bp1"));
        assert_eq!(of(sequence(8)), serial("bp2"));
        serials.keep(&[]);
        file(&dir.join("serial"), "bp3");
        assert_eq!(of(sequence(8)), serial("bp3"));
    }

    #[test]
    fn where_appearances_are_not_counted_a_disk_is_asked_every_time() {
        let sys = tempfile::tempdir().unwrap();
        let (serials, dir) = (Serials::default(), sys.path().join("vdb"));
        for text in ["bp1", "bp2"] {
            file(&dir.join("serial"), text);
            assert_eq!(serials.of(&dir, "vdb", None).unwrap(), serial(text));
        }
    }

    #[test]
    fn a_serial_that_comes_late_is_not_taken_for_none() {
        let sys = tempfile::tempdir().unwrap();
        let (serials, dir) = (Serials::default(), sys.path().join("vdb"));
        fs::create_dir(&dir).unwrap();
        let of = || serials.of(&dir, "vdb", sequence(7)).unwrap();
        assert_eq!(of(), SerialState::None);
        file(&dir.join("serial"), "");
        assert_eq!(of(), SerialState::None);
        file(&dir.join("serial"), "bp1");
        assert_eq!(of(), serial("bp1"));
    }

    #[test]
    fn a_disk_that_does_not_answer_is_not_waited_for() {
        let sys = tempfile::tempdir().unwrap();
        let (serials, dir) = (Serials::default(), sys.path().join("vdb"));
        fs::create_dir(&dir).unwrap();
        // To open it takes until somebody writes.
        let fifo = dir.join("serial");
        mkfifo(&fifo, Mode::S_IRWXU).unwrap();
        for _ in 0..2 {
            let state = serials.of(&dir, "vdb", sequence(7)).unwrap();
            assert_eq!(state, SerialState::Pending);
            // Who comes later does not wait at all.
            assert!(matches!(serials.lock()["vdb"].answer, Answer::Late));
        }
        fs::write(&fifo, "bp1").unwrap();
        let known = serials.lock();
        let is_late =
            |known: &mut HashMap<String, Known>| matches!(known["vdb"].answer, Answer::Late);
        drop(serials.0.answered.wait_while(known, is_late).unwrap());
        assert_eq!(serials.told("vdb", sequence(7)), Serial::new("bp1"));
    }

    #[test]
    fn a_question_that_is_out_is_not_forgotten_by_a_list_of_before() {
        let sys = tempfile::tempdir().unwrap();
        let (serials, dir) = (Serials::default(), sys.path().join("vdb"));
        fs::create_dir(&dir).unwrap();
        // To open it takes until somebody writes.
        let fifo = dir.join("serial");
        mkfifo(&fifo, Mode::S_IRWXU).unwrap();
        let asks = serials.clone();
        let asked = std::thread::spawn(move || asks.of(&dir, "vdb", sequence(7)).unwrap());
        while !serials.lock().contains_key("vdb") {
            std::thread::yield_now();
        }
        serials.keep(&[]);
        assert!(serials.lock().contains_key("vdb"));
        fs::write(&fifo, "bp1").unwrap();
        asked.join().unwrap();
        assert_eq!(serials.told("vdb", sequence(7)), Serial::new("bp1"));
    }

    #[test]
    fn an_nvme_serial_is_at_the_controller_or_at_the_subsystem_above_it() {
        let sys = tempfile::tempdir().unwrap();
        let of = |dir: &Path, name| Serials::default().of(dir, name, sequence(1)).unwrap();
        let plain = sys.path().join("devices/pci/nvme/nvme1/nvme1n1");
        file(&plain.join("device/serial"), "bp18um4r4f2fve24k7qz    \n");
        assert_eq!(of(&plain, "nvme1n1"), serial("bp18um4r4f2fve24k7qz"));

        let subsystem = sys
            .path()
            .join("devices/virtual/nvme-subsystem/nvme-subsys2");
        file(&subsystem.join("serial"), "bp2\n");
        let head = subsystem.join("nvme2n1");
        fs::create_dir(&head).unwrap();
        let link = sys.path().join("nvme2n1");
        symlink(&head, &link).unwrap();
        assert_eq!(of(&link, "nvme2n1"), serial("bp2"));

        // Not below it: the number in its name says nothing of a subsystem.
        let alone = sys.path().join("devices/pci/nvme/nvme7/nvme2n1");
        fs::create_dir_all(&alone).unwrap();
        assert_eq!(of(&alone, "nvme2n1"), SerialState::None);
    }
}

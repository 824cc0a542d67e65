//! Recognizes a device that does not respond by the kernel's I/O statistics. A read from the device would block in the
//! kernel, where even SIGKILL does not end it: the container of the node plugin could not be replaced.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Period in which the statistics are read.
const INTERVAL: Duration = Duration::from_millis(10);

/// Returns when no I/O of the whole device with this name is in flight, or one has completed; never if the device does not
/// respond.
#[expect(
    clippy::disallowed_methods,
    reason = "the kernel reports no event, and the thread is not one of the runtime"
)]
pub(super) fn wait(sys: &Path, name: &str) {
    let path = sys.join("block").join(name).join(IoCounts::FILE);
    let Some(start) = IoCounts::read(&path) else {
        return;
    };
    let mut now = Some(start);
    while now.is_some_and(|now| now.in_flight > 0 && now.completed == start.completed) {
        thread::sleep(INTERVAL);
        now = IoCounts::read(&path);
    }
}

/// Counts of the I/O of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IoCounts {
    pub completed: u64,
    pub in_flight: u64,
}

impl IoCounts {
    /// The name of the file below `/sys/block/NAME`.
    pub const FILE: &str = "stat";

    /// `None` if the device was removed.
    fn read(path: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(path).ok()?)
    }

    /// Documentation/block/stat.rst: completed reads, writes, discards and flushes are the fields 1, 5, 12 and 16, and I/O
    /// in flight is field 9.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let fields: Vec<u64> = text
            .split_whitespace()
            .map_while(|field| field.parse().ok())
            .collect();
        let completed = [0, 4, 11, 15].iter().filter_map(|index| fields.get(*index));
        Some(Self {
            completed: completed.sum(),
            in_flight: *fields.get(8)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    #[test]
    fn it_waits_only_while_io_is_in_flight_and_none_completes() {
        let sys = tempfile::tempdir().unwrap();
        let dir = sys.path().join("block/vdb");
        fs::create_dir_all(&dir).unwrap();
        // Moved into place, so that no half-written file is read.
        let set = |text: &str| {
            fs::write(dir.join("new"), text).unwrap();
            fs::rename(dir.join("new"), dir.join(IoCounts::FILE)).unwrap();
        };
        // Without the file, and without I/O in flight.
        wait(sys.path(), "vdb");
        set("5 0 40 1 7 0 56 2 0 3 3 1 0 8 0 2 0");
        wait(sys.path(), "vdb");
        for completed in [
            "6 0 40 1 7 0 56 2 1 3 3 1 0 8 0 2 0",
            "5 0 40 1 8 0 56 2 1 3 3 1 0 8 0 2 0",
            "5 0 40 1 7 0 56 2 1 3 3 2 0 8 0 2 0",
            "5 0 40 1 7 0 56 2 1 3 3 1 0 8 0 3 0",
            "5 0 40 1 7 0 56 2 0 3 3 1 0 8 0 2 0",
        ] {
            set("5 0 40 1 7 0 56 2 1 3 3 1 0 8 0 2 0");
            let (sender, receiver) = mpsc::channel();
            let path = sys.path().to_owned();
            let waiting = thread::spawn(move || {
                wait(&path, "vdb");
                sender.send(()).unwrap();
            });
            receiver.recv_timeout(10 * INTERVAL).unwrap_err();
            set(completed);
            receiver.recv_timeout(PATIENCE).unwrap();
            waiting.join().unwrap();
        }
    }
}

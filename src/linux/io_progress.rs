//! Recognizes a device that does not respond by the kernel's I/O statistics. A read from the device would block in the
//! kernel, where even SIGKILL does not end it: the container of the node plugin could not be replaced.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_millis(10);

/// Returns when no I/O of the whole device with this name is in flight, or one has completed; never if the device does
/// not respond.
#[expect(
    clippy::disallowed_methods,
    reason = "the kernel reports no event, and the thread is not one of the runtime"
)]
pub(super) fn wait(sys: &Path, name: &str) {
    let path = sys.join("block").join(name).join(IoStatistics::FILE);
    let Some(start) = IoStatistics::read(&path) else {
        return;
    };
    let mut now = Some(start);
    while now.is_some_and(|now| now.in_flight > 0 && now.completed == start.completed) {
        thread::sleep(INTERVAL);
        now = IoStatistics::read(&path);
    }
}

/// The size of a sector in the kernel's statistics, regardless of the device (Documentation/block/stat.rst).
const SECTOR: u64 = 512;

/// I/O of a device since it was attached (Documentation/block/stat.rst).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IoStatistics {
    pub reads: u64,
    pub read_bytes: u64,
    pub read_milliseconds: u64,
    pub writes: u64,
    pub written_bytes: u64,
    pub write_milliseconds: u64,
    /// Reads, writes, discards and flushes. Old kernels do not count the latter two.
    pub completed: u64,
    pub in_flight: u64,
    /// Time during which I/O was in flight.
    pub busy_milliseconds: u64,
}

impl IoStatistics {
    /// The name of the file below `/sys/block/NAME`.
    pub const FILE: &str = "stat";

    /// `None` if the device was removed.
    fn read(path: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(path).ok()?)
    }

    pub fn parse(text: &str) -> Option<Self> {
        let fields = text.split_whitespace().map_while(|field| field.parse().ok());
        let fields: Vec<u64> = fields.collect();
        let field = |index: usize| fields.get(index).copied();
        let completed = [field(0)?, field(4)?, field(11).unwrap_or(0), field(15).unwrap_or(0)];
        Some(Self {
            reads: field(0)?,
            read_bytes: field(2)?.saturating_mul(SECTOR),
            read_milliseconds: field(3)?,
            writes: field(4)?,
            written_bytes: field(6)?.saturating_mul(SECTOR),
            write_milliseconds: field(7)?,
            completed: completed.into_iter().fold(0, u64::saturating_add),
            in_flight: field(8)?,
            busy_milliseconds: field(9)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::time::Instant;

    use super::*;

    const HUNG: &str = "5 0 40 1 7 0 56 2 1 3 3 1 0 8 0 2 0";

    const TIMEOUT: Duration = Duration::from_secs(30);

    #[test]
    fn a_wait_ends_when_no_io_is_in_flight_or_some_completes() {
        let sys = tempfile::tempdir().unwrap();
        let dir = sys.path().join("block/vdb");
        fs::create_dir_all(&dir).unwrap();
        // Moved into place, so that no half-written file is read.
        let set = |text: &str| {
            fs::write(dir.join("new"), text).unwrap();
            fs::rename(dir.join("new"), dir.join(IoStatistics::FILE)).unwrap();
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
            set(HUNG);
            let (sender, receiver) = mpsc::channel();
            let path = sys.path().to_owned();
            let waiting = thread::spawn(move || {
                wait(&path, "vdb");
                sender.send(()).unwrap();
            });
            receiver.recv_timeout(10 * INTERVAL).unwrap_err();
            let begun = Instant::now();
            set(completed);
            // On a busy machine the thread may have read this first.
            while receiver.recv_timeout(10 * INTERVAL).is_err() {
                assert!(begun.elapsed() < TIMEOUT);
                set(HUNG);
                set(completed);
            }
            waiting.join().unwrap();
        }
    }

    #[test]
    fn fields_are_those_of_the_kernels_documentation() {
        let text = "     101        2     4096       50      200        3     8192      70        1      90      120 \
                    0 0 0 0 5 6\n";
        let expected = IoStatistics {
            reads: 101,
            read_bytes: 4096 * 512,
            read_milliseconds: 50,
            writes: 200,
            written_bytes: 8192 * 512,
            write_milliseconds: 70,
            completed: 306,
            in_flight: 1,
            busy_milliseconds: 90,
        };
        assert_eq!(IoStatistics::parse(text), Some(expected));
        assert_eq!(IoStatistics::parse("1 2 3"), None);
        let large = format!("{} 0 0 0 1 0 0 0 0 0", u64::MAX);
        assert_eq!(IoStatistics::parse(&large).unwrap().completed, u64::MAX);
    }
}

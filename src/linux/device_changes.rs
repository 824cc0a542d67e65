//! Waits for changes of block devices: by uevents, and by polling for changes that cause none.

use std::path::Path;
use std::sync::Once;
use std::time::Duration;

use tokio::time::timeout;

use super::uevent::{self, Uevents};

/// Maximum interval between two reads without a uevent. Some relevant changes cause none: the kernel sends no uevent
/// when a device gets its first capacity (`set_capacity_and_notify`).
const MAX_INTERVAL: Duration = Duration::from_secs(2);

/// Interval between two reads if this process receives no uevents.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Interval between two reads if the fake cloud links devices in a directory, which causes no uevents.
const DIRECTORY_INTERVAL: Duration = Duration::from_millis(10);

/// Delay of a second read after a uevent: kernels before 4.20 send the uevent of a virtio
/// disk before its serial is readable.
const SECOND_READ_DELAY: Duration = Duration::from_millis(100);

/// A subscription to changes of block devices. Changes after its creation are not missed.
#[derive(Debug)]
pub struct DeviceChanges {
    events: Option<Events>,
    interval: Duration,
    /// Whether the last read followed a uevent.
    needs_second_read: bool,
}

#[derive(Debug)]
enum Events {
    Kernel(Uevents),
    #[cfg(test)]
    Fake(tokio::sync::watch::Receiver<()>),
}

impl Events {
    async fn next(&mut self) -> std::io::Result<()> {
        match self {
            Self::Kernel(events) => events.next().await,
            #[cfg(test)]
            Self::Fake(events) => events.changed().await.map_err(std::io::Error::other),
        }
    }
}

impl DeviceChanges {
    /// Must be called in a runtime.
    pub(super) fn subscribe(proc: &Path, polls_directory: bool) -> Self {
        let opened = if uevent::is_unavailable(proc) {
            Err("the kernel sends no uevents to a separate user namespace".to_owned())
        } else {
            Uevents::open().map_err(|error| format!("the netlink socket cannot be opened: {error}"))
        };
        let events = opened.inspect_err(|reason| warn(reason)).ok();
        let mut changes = Self::new(events.map(Events::Kernel));
        if polls_directory {
            changes.interval = DIRECTORY_INTERVAL;
        }
        changes
    }

    #[cfg(test)]
    pub(crate) fn fake(events: tokio::sync::watch::Receiver<()>) -> Self {
        Self::new(Some(Events::Fake(events)))
    }

    fn new(events: Option<Events>) -> Self {
        Self {
            interval: match events {
                Some(_) => MAX_INTERVAL,
                None => POLL_INTERVAL,
            },
            events,
            needs_second_read: false,
        }
    }

    /// Returns when devices may have changed since the previous call or the creation, but after a
    /// maximum interval at the latest.
    pub async fn next(&mut self) {
        let interval = match self.needs_second_read {
            true => SECOND_READ_DELAY.min(self.interval),
            false => self.interval,
        };
        let event = async {
            match &mut self.events {
                Some(events) => events.next().await,
                None => std::future::pending().await,
            }
        };
        let event = timeout(interval, event).await;
        self.needs_second_read = event.is_ok();
        if let Ok(Err(error)) = event {
            warn(&error.to_string());
            self.events = None;
            self.interval = self.interval.min(POLL_INTERVAL);
        }
    }
}

/// Warns once per process: the cause does not change.
fn warn(reason: &str) {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        tracing::warn!("block devices are polled every {POLL_INTERVAL:?}, because {reason}");
    });
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;
    use tokio::time::Instant;

    use super::*;
    use crate::base::Deadline;
    use crate::linux::{Command, Exec, ProcessExec};

    /// How long some calls take, in milliseconds.
    async fn waits(changes: &mut DeviceChanges) -> Vec<u128> {
        let mut waits = Vec::new();
        for _ in 0..4 {
            let start = Instant::now();
            changes.next().await;
            waits.push(start.elapsed().as_millis());
        }
        waits
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_before_the_wait_is_not_missed_and_followed_by_a_second_read() {
        let (sender, receiver) = watch::channel(());
        let mut changes = DeviceChanges::fake(receiver);
        sender.send_replace(());
        assert_eq!(waits(&mut changes).await, [0, 100, 2000, 2000]);
        // A source that fails is replaced by polling.
        drop(sender);
        assert_eq!(waits(&mut changes).await, [0, 100, 500, 500]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_directory_of_the_fake_cloud_is_polled() {
        let mut changes = DeviceChanges::subscribe(Path::new("/proc"), true);
        changes.events = None;
        assert_eq!(waits(&mut changes).await, [10; 4]);
        // Also after a uevent.
        let (sender, receiver) = watch::channel(());
        changes.events = Some(Events::Fake(receiver));
        sender.send_replace(());
        assert_eq!(waits(&mut changes).await, [0, 10, 10, 10]);
    }

    #[tokio::test]
    async fn a_new_device_causes_a_uevent() {
        let sh = async |line: &str| {
            let command = Command::new("sh").args(["-ec", line]);
            let deadline = Deadline::after(Duration::from_secs(30));
            let output = ProcessExec.run(&command, deadline).await.unwrap();
            command.check_exit_code(output)
        };
        let home = tempfile::tempdir().unwrap();
        let image = home.path().join("disk.img");
        std::fs::File::create(&image).unwrap().set_len(1 << 20).unwrap();
        let image = image.display();
        let mut changes = DeviceChanges::subscribe(Path::new("/proc"), false);
        let bound = sh(&format!("test $(id -u) = 0 && flock /dev losetup -f --show {image}")).await;
        let (Ok(device), Some(events)) = (&bound, &mut changes.events) else {
            let ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
            assert!(!ci, "tests must not be skipped in CI: {bound:?}, {changes:?}");
            eprintln!("SKIPPED: uevents: root, loop devices and netlink are required");
            return;
        };
        // Only a uevent completes this; there is no polling.
        let changed = timeout(Duration::from_secs(30), events.next()).await;
        sh(&format!("losetup -d {}", device.stdout)).await.unwrap();
        changed.unwrap().unwrap();
    }
}

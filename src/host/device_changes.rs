//! Waits for changes of block devices. All waiting calls share one netlink socket, which is open while any of them waits.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use super::directory_watch::DirectoryWatch;
use super::uevent::{self, Uevents};
use crate::base::Tasks;

/// Maximum interval between two reads without a notification. Some relevant changes cause none: the kernel sends no uevent
/// when a device gets its first capacity (`set_capacity_and_notify`), or when an operator maps a device.
const MAX_INTERVAL: Duration = Duration::from_secs(2);

/// Interval between two reads if notifications are not available.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Delay of a second read after a notification: kernels before 4.20 send the uevent of a virtio
/// disk before its serial is readable.
const SECOND_READ_DELAY: Duration = Duration::from_millis(100);

/// Whether changes are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notifications {
    Available,
    /// This process receives no uevents, or cannot watch the directory.
    UeventsUnavailable,
}

/// A subscription to changes of block devices. Changes after its creation are not missed.
#[derive(Debug)]
pub struct DeviceChanges {
    receiver: watch::Receiver<Notifications>,
    /// Whether the last read followed a notification.
    needs_second_read: bool,
}

impl DeviceChanges {
    pub(crate) fn new(receiver: watch::Receiver<Notifications>) -> Self {
        Self {
            receiver,
            needs_second_read: false,
        }
    }

    /// Returns when devices may have changed since the previous call or the creation, but after a
    /// maximum interval at the latest.
    pub async fn next(&mut self) {
        let mut interval = match *self.receiver.borrow() {
            Notifications::Available => MAX_INTERVAL,
            Notifications::UeventsUnavailable => POLL_INTERVAL,
        };
        if self.needs_second_read {
            interval = SECOND_READ_DELAY;
        }
        self.needs_second_read = match timeout(interval, self.receiver.changed()).await {
            Ok(Ok(())) => true,
            // The sender was dropped: the runtime is shutting down.
            Ok(Err(_)) => {
                tokio::time::sleep(POLL_INTERVAL).await;
                false
            }
            Err(_) => false,
        };
    }
}

/// Forwards uevents and directory events to the subscriptions.
#[derive(Debug, Clone, Default)]
pub(super) struct ChangeNotifier {
    channels: Arc<Mutex<Vec<Channel>>>,
    warned: Arc<AtomicBool>,
    tasks: Tasks,
}

/// The channel shared by all subscriptions to devices and the same directory.
#[derive(Debug)]
struct Channel {
    directory: Option<PathBuf>,
    /// Owned by the forwarding task.
    sender: Weak<watch::Sender<Notifications>>,
}

impl ChangeNotifier {
    /// Subscribes to changes of devices, and to new entries of the directory. Must be called in a runtime.
    pub(super) fn subscribe(&self, proc: &Path, directory: Option<&Path>) -> DeviceChanges {
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        channels.retain(|channel| channel.sender.strong_count() > 0);
        let open = channels
            .iter()
            .filter(|channel| channel.directory.as_deref() == directory)
            .find_map(|channel| channel.sender.upgrade());
        if let Some(sender) = open {
            return DeviceChanges::new(sender.subscribe());
        }
        let sources = self.open(proc, directory);
        let (sender, receiver) = watch::channel(sources.notifications());
        let sender = Arc::new(sender);
        channels.push(Channel {
            directory: directory.map(Path::to_owned),
            sender: Arc::downgrade(&sender),
        });
        self.tasks.spawn(self.clone().forward(sender, sources));
        DeviceChanges::new(receiver)
    }

    fn open(&self, proc: &Path, directory: Option<&Path>) -> Sources {
        let mut sources = Sources::default();
        if uevent::is_deaf(proc) {
            self.warn("the kernel sends no uevents to a separate user namespace");
        } else {
            match Uevents::open() {
                Ok(uevents) => sources.uevents = Some(uevents),
                Err(error) => self.warn(&format!("the netlink socket cannot be opened: {error}")),
            }
        }
        match directory.map(DirectoryWatch::open).transpose() {
            Ok(directory) => sources.directory = directory,
            Err(error) => {
                self.warn(&format!("the device directory cannot be watched: {error}"));
                sources.directory_failed = true;
            }
        }
        sources
    }

    /// Warns once per process: the cause does not change.
    fn warn(&self, reason: &str) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!("block devices are polled every {POLL_INTERVAL:?}, because {reason}");
        }
    }

    /// Forwards events until the last subscription is dropped.
    async fn forward(self, sender: Arc<watch::Sender<Notifications>>, mut sources: Sources) {
        loop {
            tokio::select! {
                () = sender.closed() => {
                    // New subscriptions are created under the lock.
                    let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
                    if sender.receiver_count() == 0 {
                        let own = Arc::downgrade(&sender);
                        channels.retain(|channel| !Weak::ptr_eq(&channel.sender, &own));
                        return;
                    }
                }
                event = sources.next() => {
                    if let Err(error) = event {
                        self.warn(&error.to_string());
                    }
                    tracing::debug!("a block device was added, removed or changed");
                    sender.send_replace(sources.notifications());
                }
            }
        }
    }
}

#[derive(Debug, Default)]
struct Sources {
    uevents: Option<Uevents>,
    directory: Option<DirectoryWatch>,
    /// Whether the directory cannot be watched.
    directory_failed: bool,
}

impl Sources {
    fn notifications(&self) -> Notifications {
        if self.uevents.is_some() && !self.directory_failed {
            Notifications::Available
        } else {
            Notifications::UeventsUnavailable
        }
    }

    /// Waits for the next event. A source that fails is closed.
    async fn next(&mut self) -> std::io::Result<()> {
        let kernel = async {
            match &self.uevents {
                Some(uevents) => uevents.next().await,
                None => std::future::pending().await,
            }
        };
        let entries = async {
            match &mut self.directory {
                Some(directory) => directory.next().await,
                None => std::future::pending().await,
            }
        };
        let (source, event) = tokio::select! {
            event = kernel => (Source::Uevents, event),
            event = entries => (Source::Directory, event),
        };
        if event.is_err() {
            match source {
                Source::Uevents => self.uevents = None,
                Source::Directory => {
                    self.directory = None;
                    self.directory_failed = true;
                }
            }
        }
        event
    }
}

#[derive(Debug, Clone, Copy)]
enum Source {
    Uevents,
    Directory,
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::base::Deadline;
    use crate::host::{Command, Exec, ProcessExec};

    #[tokio::test(start_paused = true)]
    async fn a_change_before_the_wait_is_not_missed() {
        let (sender, receiver) = watch::channel(Notifications::Available);
        let mut changes = DeviceChanges::new(receiver);
        sender.send_replace(Notifications::Available);
        let start = Instant::now();
        changes.next().await;
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_notification_is_followed_by_a_second_read() {
        let (sender, receiver) = watch::channel(Notifications::Available);
        let mut changes = DeviceChanges::new(receiver);
        sender.send_replace(Notifications::Available);
        let mut waited = Vec::new();
        for _ in 0..4 {
            let start = Instant::now();
            changes.next().await;
            waited.push(start.elapsed().as_millis());
        }
        assert_eq!(waited, [0, 100, 2000, 2000]);
    }

    #[tokio::test(start_paused = true)]
    async fn devices_are_polled_if_uevents_are_unavailable() {
        let (sender, receiver) = watch::channel(Notifications::UeventsUnavailable);
        let mut changes = DeviceChanges::new(receiver);
        for _ in 0..2 {
            let start = Instant::now();
            changes.next().await;
            assert_eq!(start.elapsed(), POLL_INTERVAL);
        }
        drop(sender);
        let start = Instant::now();
        changes.next().await;
        assert_eq!(start.elapsed(), POLL_INTERVAL);
    }

    #[tokio::test]
    async fn subscriptions_share_one_channel_that_closes_with_the_last() {
        let home = tempfile::tempdir().unwrap();
        let notifier = ChangeNotifier::default();
        let subscribe = || notifier.subscribe(Path::new("/proc"), Some(home.path()));
        let mut first = subscribe();
        let mut second = subscribe();
        assert_eq!(notifier.tasks.running(), 1);
        std::fs::write(home.path().join("bp1"), "").unwrap();
        let both = async {
            first.receiver.changed().await.unwrap();
            second.receiver.changed().await.unwrap();
        };
        timeout(Duration::from_secs(30), both).await.unwrap();
        drop(first);
        assert_eq!(notifier.tasks.running(), 1);
        drop(second);
        let ended = notifier.tasks.wait();
        timeout(Duration::from_secs(30), ended).await.unwrap();
        assert!(notifier.channels.lock().unwrap().is_empty());
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
        std::fs::File::create(&image)
            .unwrap()
            .set_len(1 << 20)
            .unwrap();
        let image = image.display();
        let mut changes = ChangeNotifier::default().subscribe(Path::new("/proc"), None);
        let notifications = *changes.receiver.borrow();
        let bound = sh(&format!(
            "test $(id -u) = 0 && flock /dev losetup -f --show {image}"
        ))
        .await;
        let (Ok(device), Notifications::Available) = (&bound, notifications) else {
            let ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
            assert!(
                !ci,
                "tests must not be skipped in CI: {bound:?}, {notifications:?}"
            );
            eprintln!("SKIPPED: uevents: root, loop devices and netlink are required");
            return;
        };
        // Only a uevent completes this; there is no polling.
        let changed = timeout(Duration::from_secs(30), changes.receiver.changed()).await;
        sh(&format!("losetup -d {}", device.stdout)).await.unwrap();
        changed.unwrap().unwrap();
        assert_eq!(*changes.receiver.borrow(), Notifications::Available);
    }
}

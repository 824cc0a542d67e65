//! Waiting for devices: all who wait share one socket, which is open while anybody waits.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use super::directory::Directory;
use super::uevent::{self, Uevents};
use crate::base::Tasks;

/// How long nobody looks when nothing is told. Not all that matters is told: the kernel is silent when
/// a device gets its first capacity (`set_capacity_and_notify`), and a person's mark is no device.
const QUIET: Duration = Duration::from_secs(2);

/// The same where the kernel's word does not reach this process.
const DEAF: Duration = Duration::from_millis(500);

/// A look after what was told is followed by one more: kernels before 4.20 tell of a virtio disk
/// before its serial is there.
const AGAIN: Duration = Duration::from_millis(100);

/// Whether the kernel tells of its devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hearing {
    /// It does.
    Good,
    /// It does not, or not to this process.
    Deaf,
}

/// Something about the machine's devices may have changed. Made before looking, it misses nothing.
#[derive(Debug)]
pub struct Changes {
    told: watch::Receiver<Hearing>,
    /// Whether the last look was due to what was told.
    once_more: bool,
}

impl Changes {
    pub(crate) fn new(told: watch::Receiver<Hearing>) -> Self {
        Self {
            told,
            once_more: false,
        }
    }

    /// Returns when it is time to look: when something may have changed since the last time or since
    /// this was made, and after some time at the latest.
    pub async fn next(&mut self) {
        let mut most = match *self.told.borrow() {
            Hearing::Good => QUIET,
            Hearing::Deaf => DEAF,
        };
        if self.once_more {
            most = AGAIN;
        }
        self.once_more = match timeout(most, self.told.changed()).await {
            Ok(Ok(())) => true,
            // Nobody tells any more: a runtime that goes down.
            Ok(Err(_)) => {
                tokio::time::sleep(DEAF).await;
                false
            }
            Err(_) => false,
        };
    }
}

/// Who tells those who wait.
#[derive(Debug, Clone, Default)]
pub(super) struct Announcer {
    lines: Arc<Mutex<Vec<Line>>>,
    warned: Arc<AtomicBool>,
    tasks: Tasks,
}

/// What those share who wait for devices, and for entries of the same directory.
#[derive(Debug)]
struct Line {
    directory: Option<PathBuf>,
    /// Held by the task that tells.
    sender: Weak<watch::Sender<Hearing>>,
}

impl Announcer {
    /// From now on, no change of a device is missed, nor a new entry of the directory. To be called
    /// in a runtime.
    pub(super) fn changes(&self, proc: &Path, directory: Option<&Path>) -> Changes {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.retain(|line| line.sender.strong_count() > 0);
        let open = lines
            .iter()
            .filter(|line| line.directory.as_deref() == directory)
            .find_map(|line| line.sender.upgrade());
        if let Some(sender) = open {
            return Changes::new(sender.subscribe());
        }
        let sources = self.open(proc, directory);
        let (sender, receiver) = watch::channel(sources.hearing());
        let sender = Arc::new(sender);
        lines.push(Line {
            directory: directory.map(Path::to_owned),
            sender: Arc::downgrade(&sender),
        });
        self.tasks.start(self.clone().tell(sender, sources));
        Changes::new(receiver)
    }

    fn open(&self, proc: &Path, directory: Option<&Path>) -> Sources {
        let mut sources = Sources::default();
        if uevent::is_deaf(proc) {
            self.warn("the kernel tells a user namespace of its own nothing");
        } else {
            match Uevents::open() {
                Ok(uevents) => sources.uevents = Some(uevents),
                Err(error) => self.warn(&format!("no netlink socket: {error}")),
            }
        }
        match directory.map(Directory::open).transpose() {
            Ok(directory) => sources.directory = directory,
            Err(error) => {
                self.warn(&format!("the device directory cannot be watched: {error}"));
                sources.is_blind = true;
            }
        }
        sources
    }

    /// Once for a process: it will not change.
    fn warn(&self, reason: &str) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!("devices are looked for every {DEAF:?}, because {reason}");
        }
    }

    /// Tells until nobody listens.
    async fn tell(self, sender: Arc<watch::Sender<Hearing>>, mut sources: Sources) {
        loop {
            tokio::select! {
                () = sender.closed() => {
                    // Who comes to listen holds the lock.
                    let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
                    if sender.receiver_count() == 0 {
                        let own = Arc::downgrade(&sender);
                        lines.retain(|line| !Weak::ptr_eq(&line.sender, &own));
                        return;
                    }
                }
                told = sources.next() => {
                    if let Err(error) = told {
                        self.warn(&error.to_string());
                    }
                    tracing::debug!("told that a device came, went or changed");
                    sender.send_replace(sources.hearing());
                }
            }
        }
    }
}

/// Where the word comes from.
#[derive(Debug, Default)]
struct Sources {
    uevents: Option<Uevents>,
    directory: Option<Directory>,
    /// Whether there is a directory that cannot be watched.
    is_blind: bool,
}

impl Sources {
    fn hearing(&self) -> Hearing {
        if self.uevents.is_some() && !self.is_blind {
            Hearing::Good
        } else {
            Hearing::Deaf
        }
    }

    /// Returns when something has changed. A source that fails is given up.
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
        let (failed, told) = tokio::select! {
            told = kernel => (Failed::Uevents, told),
            told = entries => (Failed::Directory, told),
        };
        if told.is_err() {
            match failed {
                Failed::Uevents => self.uevents = None,
                Failed::Directory => {
                    self.directory = None;
                    self.is_blind = true;
                }
            }
        }
        told
    }
}

/// The source that an answer is of.
#[derive(Debug, Clone, Copy)]
enum Failed {
    Uevents,
    Directory,
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::base::Deadline;
    use crate::host::{Command, Exec, Processes};

    #[tokio::test(start_paused = true)]
    async fn what_is_told_before_the_wait_is_not_missed() {
        let (sender, receiver) = watch::channel(Hearing::Good);
        let mut changes = Changes::new(receiver);
        sender.send_replace(Hearing::Good);
        let start = Instant::now();
        changes.next().await;
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn after_what_was_told_comes_one_more_look_and_then_quiet() {
        let (sender, receiver) = watch::channel(Hearing::Good);
        let mut changes = Changes::new(receiver);
        sender.send_replace(Hearing::Good);
        let mut waited = Vec::new();
        for _ in 0..4 {
            let start = Instant::now();
            changes.next().await;
            waited.push(start.elapsed().as_millis());
        }
        assert_eq!(waited, [0, 100, 2000, 2000]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_hears_nothing_looks_by_the_clock() {
        let (sender, receiver) = watch::channel(Hearing::Deaf);
        let mut changes = Changes::new(receiver);
        for _ in 0..2 {
            let start = Instant::now();
            changes.next().await;
            assert_eq!(start.elapsed(), DEAF);
            // At the end nobody is left who could tell.
        }
        drop(sender);
        let start = Instant::now();
        changes.next().await;
        assert_eq!(start.elapsed(), DEAF);
    }

    #[tokio::test]
    async fn all_who_wait_share_one_line_and_it_ends_with_the_last_of_them() {
        let home = tempfile::tempdir().unwrap();
        let announcer = Announcer::default();
        let listen = || announcer.changes(Path::new("/proc"), Some(home.path()));
        let mut first = listen();
        let mut second = listen();
        assert_eq!(announcer.tasks.running(), 1);
        std::fs::write(home.path().join("bp1"), "").unwrap();
        let both = async {
            first.told.changed().await.unwrap();
            second.told.changed().await.unwrap();
        };
        timeout(Duration::from_secs(30), both).await.unwrap();
        drop(first);
        assert_eq!(announcer.tasks.running(), 1);
        drop(second);
        let ended = announcer.tasks.finish();
        timeout(Duration::from_secs(30), ended).await.unwrap();
        assert!(announcer.lines.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn the_kernel_tells_of_a_device_that_comes() {
        let sh = async |line: &str| {
            let command = Command::new("sh").args(["-ec", line]);
            let deadline = Deadline::after(Duration::from_secs(30));
            let output = Processes.run(&command, deadline).await.unwrap();
            command.success(output)
        };
        let home = tempfile::tempdir().unwrap();
        let image = home.path().join("disk.img");
        std::fs::File::create(&image)
            .unwrap()
            .set_len(1 << 20)
            .unwrap();
        let image = image.display();
        let mut changes = Announcer::default().changes(Path::new("/proc"), None);
        let hearing = *changes.told.borrow();
        let bound = sh(&format!("test $(id -u) = 0 && losetup -f --show {image}")).await;
        let (Ok(device), Hearing::Good) = (&bound, hearing) else {
            let ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
            assert!(!ci, "nothing is skipped in CI: {bound:?}, {hearing:?}");
            eprintln!("SKIPPED: the kernel tells: root, loop devices and netlink are needed");
            return;
        };
        // Nothing else raises it: no time would.
        let told = timeout(Duration::from_secs(30), changes.told.changed()).await;
        sh(&format!("losetup -d {}", device.stdout)).await.unwrap();
        told.unwrap().unwrap();
        assert_eq!(*changes.told.borrow(), Hearing::Good);
    }
}

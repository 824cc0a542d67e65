//! How many filesystem tools run at once: as many as fit into the memory that is set apart for them. Twenty volumes that come at once
//! after a restart of the node would otherwise have twenty checks in memory, and the container killed.
//!
//! What a tool needs is estimated from the size of the disk. Measured (e2fsprogs 1.47, xfsprogs 6.1, btrfs-progs 6.2, on empty
//! filesystems): every mkfs stays below 10 MiB up to 4 TiB; a full e2fsck takes 23 MiB at 1 TiB and 85 MiB at 4 TiB, and more the
//! fuller the disk: its bitmaps have a bit for each block and each inode, several times over (e2fsck(8),
//! `scratch_files`).

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::plan::Step;
use super::request::Volume;
use super::{Error, Result};
use crate::base::Deadline;
use crate::model::{Bytes, Fsck};

const MIB: u64 = 1 << 20;

/// What every tool takes, whatever the disk.
const BASE: u64 = 16;

/// What a full check takes for each TiB, in MiB: one bit for each of 2^28 blocks is 32 MiB, and it keeps three such maps where
/// they are full of changes.
const CHECK_PER_TIB: u64 = 96;

/// Where nobody says how much there is.
pub(super) const DEFAULT: Bytes = Bytes(256 * MIB);

/// Memory for tools, in MiB. Those who wait are served in the order in which they came.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    free: Arc<Semaphore>,
    all: u32,
}

/// Room for one tool; dropping it gives it back.
pub(super) type Room = Option<OwnedSemaphorePermit>;

impl Budget {
    /// So much memory, at least enough for one small tool.
    pub(super) fn new(memory: Bytes) -> Self {
        let most = u64::try_from(Semaphore::MAX_PERMITS).unwrap_or(u64::MAX);
        let mib = (memory.0 / MIB).clamp(BASE, most.min(u64::from(u32::MAX)));
        let all = u32::try_from(mib).unwrap_or(u32::MAX);
        Self {
            free: Arc::new(Semaphore::new(
                usize::try_from(all).unwrap_or(Semaphore::MAX_PERMITS),
            )),
            all,
        }
    }

    /// What the largest of the tools takes that the steps run, in MiB, and all there is at most; none where they run none to
    /// speak of.
    fn most(&self, size: Bytes, steps: &[Step]) -> Option<u32> {
        let need = steps.iter().filter_map(|step| need(step, size)).max()?;
        Some(u32::try_from(need).unwrap_or(u32::MAX).min(self.all))
    }

    /// Room for the tools that the steps run, if there is room now.
    pub(super) fn room_now(&self, size: Bytes, steps: &[Step]) -> Option<Room> {
        let Some(mib) = self.most(size, steps) else {
            return Some(None);
        };
        let room = Arc::clone(&self.free).try_acquire_many_owned(mib);
        room.ok().map(Some)
    }

    /// Waits until there is room for the largest of the tools that the steps run. One that is larger than all there is runs
    /// alone.
    ///
    /// # Errors
    /// When the deadline comes first.
    pub(super) async fn room(
        &self,
        volume: &Volume,
        size: Bytes,
        steps: &[Step],
        deadline: Deadline,
    ) -> Result<Room> {
        if let Some(room) = self.room_now(size, steps) {
            return Ok(room);
        }
        let Some(mib) = self.most(size, steps) else {
            return Ok(None);
        };
        tracing::info!(
            disk.id = %volume.id,
            "waiting for memory: the filesystem tool needs about {mib} MiB of {} MiB (--tool-memory), and others have it",
            self.all,
        );
        let room = Arc::clone(&self.free).acquire_many_owned(mib);
        match deadline.bound(room).await {
            // It is never closed.
            Ok(room) => Ok(room.ok()),
            Err(_) => Err(Error::NoRoom {
                volume: volume.id.clone(),
                need: mib,
                all: self.all,
            }),
        }
    }
}

/// The memory that a step's tool takes on a disk of this size, in MiB; none where it runs none to speak of.
fn need(step: &Step, size: Bytes) -> Option<u64> {
    let full_check = BASE + (size.0 >> 20).saturating_mul(CHECK_PER_TIB) / MIB;
    match step {
        Step::Format { .. } => Some(BASE),
        // It checks all where the filesystem was not unmounted in order, or it is its turn.
        Step::Check(_, Fsck::Preen) | Step::GrowUnmounted(..) => Some(full_check),
        Step::Check(_, Fsck::Journal | Fsck::None)
        | Step::SetDeviceReadOnly(_)
        | Step::Wipe
        | Step::ForgetFormat
        | Step::MakeDirectory(_)
        | Step::MakeFile(_)
        | Step::Mount { .. }
        | Step::GrowMounted { .. }
        | Step::Bind { .. }
        | Step::BindDevice(_)
        | Step::RemountReadOnly(_)
        | Step::Restrict { .. }
        | Step::Unmount(_)
        | Step::Detach(_)
        | Step::Flush
        | Step::Release
        | Step::Remove(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::{Filesystem, Tuning};

    const TIB: Bytes = Bytes(1 << 40);

    fn volume() -> Volume {
        Volume::new("d-bp1".parse().unwrap(), None)
    }

    fn check() -> [Step; 1] {
        [Step::Check(Filesystem::Ext4, Fsck::Preen)]
    }

    fn format() -> [Step; 1] {
        [Step::Format {
            filesystem: Filesystem::Xfs,
            tuning: Tuning::default(),
        }]
    }

    fn soon() -> Deadline {
        Deadline::after(Duration::from_secs(5))
    }

    #[test]
    fn a_check_grows_with_its_disk_and_a_mkfs_does_not() {
        assert_eq!(need(&check()[0], TIB), Some(112));
        assert_eq!(need(&check()[0], Bytes(20 << 30)), Some(17));
        assert_eq!(need(&format()[0], TIB), Some(16));
        assert_eq!(
            need(&Step::Check(Filesystem::Ext4, Fsck::Journal), TIB),
            None
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_does_not_fit_waits_and_what_is_too_large_runs_alone() {
        let budget = Budget::new(Bytes(64 * MIB));
        let volume = volume();
        let large = budget.room(&volume, TIB, &check(), soon()).await.unwrap();
        assert!(large.is_some());
        let error = budget
            .room(&volume, TIB, &format(), soon())
            .await
            .unwrap_err();
        let text = error.to_string();
        assert!(text.contains("16 MiB") && text.contains("64 MiB"), "{text}");
        // Steps without a tool need none.
        assert!(
            budget
                .room(&volume, TIB, &[Step::Wipe], soon())
                .await
                .is_ok()
        );
        drop(large);
        let mut rooms = Vec::new();
        for _ in 0..4 {
            rooms.push(budget.room(&volume, TIB, &format(), soon()).await.unwrap());
        }
        assert!(budget.room(&volume, TIB, &format(), soon()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_small_one_that_came_later_does_not_overtake_a_large_one() {
        let budget = Budget::new(Bytes(64 * MIB));
        let volume = volume();
        let first = budget.room(&volume, TIB, &format(), soon()).await.unwrap();
        let order = std::sync::Mutex::new(Vec::new());
        let wait = async |steps: &[Step], name| {
            let room = budget.room(&volume, TIB, steps, soon()).await.unwrap();
            order.lock().unwrap().push(name);
            drop(room);
        };
        let end = async {
            tokio::task::yield_now().await;
            drop(first);
        };
        let (check, format) = (check(), format());
        tokio::join!(wait(&check, "large"), wait(&format, "small"), end);
        assert_eq!(*order.lock().unwrap(), ["large", "small"]);
    }
}

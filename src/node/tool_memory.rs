//! Limits the memory of concurrent filesystem tools. Otherwise twenty volumes that are staged in parallel after a
//! restart of the node would run twenty checks, and the container would be OOM-killed.
//!
//! The memory of a tool is estimated from the size of the disk. Measured (e2fsprogs 1.47, xfsprogs 6.1, btrfs-progs
//! 6.2, on empty filesystems): every mkfs needs less than 10 MiB up to 4 TiB; a full e2fsck needs 23 MiB at 1 TiB and
//! 85 MiB at 4 TiB, and more on a fuller disk: it has several bitmaps with a bit for each block and inode (e2fsck(8),
//! `scratch_files`).

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::plan::{DeviceStep, Step};
use super::request::Volume;
use super::{Error, Result};
use crate::base::Deadline;
use crate::model::{Bytes, Fsck};

const MIB: u64 = 1 << 20;

/// Memory of every tool in MiB, independent of the disk.
const TOOL_BASE_MIB: u64 = 16;

/// Additional memory of a full check in MiB per TiB: a bitmap of 2^28 blocks is 32 MiB, and there
/// are up to three of them.
const CHECK_MIB_PER_TIB: u64 = 96;

/// Default of `--tool-memory` if the cgroup has no limit.
pub(super) const DEFAULT: Bytes = Bytes(256 * MIB);

/// Memory for tools, in MiB. Waiting tools are served in order.
#[derive(Debug, Clone)]
pub(super) struct ToolMemory {
    free: Arc<Semaphore>,
    total: u32,
}

/// Reserved memory of one tool, released when dropped.
pub(super) type Reservation = Option<OwnedSemaphorePermit>;

impl ToolMemory {
    /// A limit, raised to the memory of one small tool.
    pub(super) fn new(memory: Bytes) -> Self {
        let max_permits = u64::try_from(Semaphore::MAX_PERMITS).unwrap_or(u64::MAX);
        let mib = (memory.0 / MIB).clamp(TOOL_BASE_MIB, max_permits.min(u64::from(u32::MAX)));
        let total = u32::try_from(mib).unwrap_or(u32::MAX);
        Self {
            free: Arc::new(Semaphore::new(
                usize::try_from(total).unwrap_or(Semaphore::MAX_PERMITS),
            )),
            total,
        }
    }

    /// Memory of the largest tool that the steps run, in MiB, up to the total; none if they run no such tool.
    fn required_mib(&self, size: Bytes, steps: &[Step]) -> Option<u32> {
        let need = steps.iter().filter_map(|step| step_mib(step, size)).max()?;
        Some(u32::try_from(need).unwrap_or(u32::MAX).min(self.total))
    }

    /// Reserves the memory of the largest tool that the steps run, if it is available now.
    pub(super) fn try_reserve(&self, size: Bytes, steps: &[Step]) -> Option<Reservation> {
        let Some(mib) = self.required_mib(size, steps) else {
            return Some(None);
        };
        let permit = Arc::clone(&self.free).try_acquire_many_owned(mib);
        permit.ok().map(Some)
    }

    /// Waits until the memory of the largest tool that the steps run is available. A tool that
    /// needs more than the total runs alone.
    ///
    /// # Errors
    /// If the deadline passes first.
    pub(super) async fn reserve(
        &self,
        volume: &Volume,
        size: Bytes,
        steps: &[Step],
        deadline: Deadline,
    ) -> Result<Reservation> {
        if let Some(reservation) = self.try_reserve(size, steps) {
            return Ok(reservation);
        }
        let Some(mib) = self.required_mib(size, steps) else {
            return Ok(None);
        };
        tracing::info!(
            disk.id = %volume.id,
            "waiting for memory: the filesystem tool needs about {mib} MiB of {} MiB (--tool-memory), which other tools use",
            self.total,
        );
        let permit = Arc::clone(&self.free).acquire_many_owned(mib);
        match deadline.bound(permit).await {
            // The semaphore is never closed.
            Ok(permit) => Ok(permit.ok()),
            Err(_) => Err(Error::NoToolMemory {
                volume: volume.id.clone(),
                need: mib,
                total: self.total,
            }),
        }
    }
}

/// Memory of a step's tool on a disk of this size, in MiB; none if it runs no such tool.
fn step_mib(step: &Step, size: Bytes) -> Option<u64> {
    let full_check = TOOL_BASE_MIB + (size.0 >> 20).saturating_mul(CHECK_MIB_PER_TIB) / MIB;
    match step {
        Step::Device(DeviceStep::Format { .. }) => Some(TOOL_BASE_MIB),
        // A full check, if the filesystem was not unmounted cleanly or a periodic check is due.
        Step::Device(DeviceStep::Check(_, Fsck::Preen) | DeviceStep::GrowUnmounted(..)) => {
            Some(full_check)
        }
        Step::Path(_) | Step::Device(_) => None,
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
        [DeviceStep::Check(Filesystem::Ext4, Fsck::Preen).into()]
    }

    fn format() -> [Step; 1] {
        let format = DeviceStep::Format {
            filesystem: Filesystem::Xfs,
            tuning: Tuning::default(),
        };
        [format.into()]
    }

    fn soon() -> Deadline {
        Deadline::after(Duration::from_secs(5))
    }

    #[test]
    fn memory_of_a_check_grows_with_the_disk_and_that_of_mkfs_does_not() {
        assert_eq!(step_mib(&check()[0], TIB), Some(112));
        assert_eq!(step_mib(&check()[0], Bytes(20 << 30)), Some(17));
        assert_eq!(step_mib(&format()[0], TIB), Some(16));
        assert_eq!(
            step_mib(
                &DeviceStep::Check(Filesystem::Ext4, Fsck::Journal).into(),
                TIB
            ),
            None
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_waits_for_memory_and_an_oversized_one_runs_alone() {
        let tool_memory = ToolMemory::new(Bytes(64 * MIB));
        let volume = volume();
        let large = tool_memory
            .reserve(&volume, TIB, &check(), soon())
            .await
            .unwrap();
        assert!(large.is_some());
        let error = tool_memory
            .reserve(&volume, TIB, &format(), soon())
            .await
            .unwrap_err();
        let text = error.to_string();
        assert!(text.contains("16 MiB") && text.contains("64 MiB"), "{text}");
        // Steps without a tool need no memory.
        assert!(
            tool_memory
                .reserve(&volume, TIB, &[DeviceStep::Wipe.into()], soon())
                .await
                .is_ok()
        );
        drop(large);
        let mut reservations = Vec::new();
        for _ in 0..4 {
            reservations.push(
                tool_memory
                    .reserve(&volume, TIB, &format(), soon())
                    .await
                    .unwrap(),
            );
        }
        assert!(
            tool_memory
                .reserve(&volume, TIB, &format(), soon())
                .await
                .is_err()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_later_small_tool_does_not_overtake_a_large_one() {
        let tool_memory = ToolMemory::new(Bytes(64 * MIB));
        let volume = volume();
        let first = tool_memory
            .reserve(&volume, TIB, &format(), soon())
            .await
            .unwrap();
        let order = std::sync::Mutex::new(Vec::new());
        let wait = async |steps: &[Step], name| {
            let reservation = tool_memory
                .reserve(&volume, TIB, steps, soon())
                .await
                .unwrap();
            order.lock().unwrap().push(name);
            drop(reservation);
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

//! Allocated memory, if [`PeakAlloc`] is the allocator of the program; zero otherwise.

use peak_alloc::PeakAlloc;

const MIB: f64 = (1 << 20) as f64;

/// Allocated bytes.
pub(crate) fn live() -> usize {
    PeakAlloc.current_usage()
}

/// The peak since the last [`reset`].
pub(crate) fn peak() -> usize {
    PeakAlloc.peak_usage()
}

pub(crate) fn reset() {
    PeakAlloc.reset_peak_usage();
}

/// The difference in MiB.
pub(crate) fn mib(more: usize, less: usize) -> f64 {
    more.saturating_sub(less) as f64 / MIB
}

//! Sizes carry their unit. The only file that converts between bytes and GiB.

use std::fmt;

const BYTES_PER_GIB: u64 = 1 << 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

/// A number of GiB (2^30 bytes), the unit of the cloud's disk API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Gib(pub u32);

impl Gib {
    /// The same size in bytes; no `u32` of GiB overflows.
    #[must_use]
    pub fn bytes(self) -> Bytes {
        Bytes(u64::from(self.0) * BYTES_PER_GIB)
    }
}

impl Bytes {
    /// These bytes, rounded up to whole GiB; none if the result does not fit `u32`.
    #[must_use]
    pub fn gib_ceil(self) -> Option<Gib> {
        u32::try_from(self.0.div_ceil(BYTES_PER_GIB)).ok().map(Gib)
    }

    /// As a signed number, which many protocols use. No disk exceeds its range.
    #[must_use]
    pub fn to_i64(self) -> i64 {
        i64::try_from(self.0).unwrap_or(i64::MAX)
    }
}

impl fmt::Display for Gib {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} GiB", self.0)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0)
    }
}

//! Sizes carry their unit. The only file that converts between bytes and GiB.

use std::fmt;
use std::ops::RangeInclusive;

const BYTES_PER_GIB: u64 = 1 << 30;

/// A number of bytes.
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
    /// The smallest whole number of GiB that holds these bytes; none when it does not fit `u32`.
    #[must_use]
    pub fn gib_ceil(self) -> Option<Gib> {
        u32::try_from(self.0.div_ceil(BYTES_PER_GIB)).ok().map(Gib)
    }

    /// The largest whole number of GiB within these bytes.
    #[must_use]
    pub fn gib_floor(self) -> Gib {
        Gib(u32::try_from(self.0 / BYTES_PER_GIB).unwrap_or(u32::MAX))
    }

    /// As CSI carries sizes (`int64`); a size beyond that cannot exist on a disk.
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

/// What a caller asks for: at least `required`, at most `limit` (CSI `CapacityRange`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SizeRange {
    /// Lower bound; none means any size.
    pub required: Option<Bytes>,
    /// Upper bound; none means no bound.
    pub limit: Option<Bytes>,
}

/// No whole GiB size satisfies the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no size from {} to {} satisfies {range}", allowed.start(), allowed.end())]
pub struct OutOfRange {
    range: SizeRange,
    allowed: RangeInclusive<Gib>,
}

impl fmt::Display for SizeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.required, self.limit) {
            (None, None) => f.write_str("any size"),
            (Some(required), None) => write!(f, "required_bytes {}", required.0),
            (None, Some(limit)) => write!(f, "limit_bytes {}", limit.0),
            (Some(required), Some(limit)) => {
                write!(f, "required_bytes {} with limit_bytes {}", required.0, limit.0)
            }
        }
    }
}

impl SizeRange {
    /// The smallest GiB size within both the request and `allowed`.
    ///
    /// # Errors
    /// When the two do not meet, or only between two whole GiB.
    pub fn resolve(self, allowed: RangeInclusive<Gib>) -> Result<Gib, OutOfRange> {
        let refuse = || OutOfRange {
            range: self,
            allowed: allowed.clone(),
        };
        let wanted = self.required.unwrap_or_default().gib_ceil().ok_or_else(refuse)?;
        let size = wanted.max(*allowed.start());
        if size > *allowed.end() || !self.admits(size) {
            return Err(refuse());
        }
        Ok(size)
    }

    /// Whether a disk of this size satisfies the request.
    #[must_use]
    pub fn admits(self, size: Gib) -> bool {
        self.required.is_none_or(|required| size.bytes() >= required)
            && self.limit.is_none_or(|limit| size.bytes() <= limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: RangeInclusive<Gib> = Gib(20)..=Gib(100);

    fn range(required: Option<u64>, limit: Option<u64>) -> SizeRange {
        SizeRange {
            required: required.map(Bytes),
            limit: limit.map(Bytes),
        }
    }

    #[test]
    fn a_size_is_rounded_up_to_whole_gib_and_to_the_minimum() {
        assert_eq!(range(None, None).resolve(ALLOWED), Ok(Gib(20)));
        assert_eq!(range(Some(1), None).resolve(ALLOWED), Ok(Gib(20)));
        assert_eq!(range(Some((30 << 30) + 1), None).resolve(ALLOWED), Ok(Gib(31)));
    }

    #[test]
    fn a_limit_below_the_next_gib_is_out_of_range() {
        let refused = range(Some((30 << 30) + 1), Some((31 << 30) - 1)).resolve(ALLOWED);
        assert_eq!(
            refused.unwrap_err().to_string(),
            "no size from 20 GiB to 100 GiB satisfies required_bytes 32212254721 with limit_bytes 33285996543"
        );
    }

    #[test]
    fn beyond_the_maximum_is_out_of_range() {
        assert!(range(Some(101 << 30), None).resolve(ALLOWED).is_err());
        assert!(range(Some(u64::MAX), None).resolve(ALLOWED).is_err());
    }
}

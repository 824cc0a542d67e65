//! The size that a caller requests.

use std::fmt;
use std::ops::RangeInclusive;

use ecs::model::{Bytes, Gib};

/// The requested size: at least `required`, at most `limit` (CSI `CapacityRange`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SizeRange {
    pub required: Option<Bytes>,
    pub limit: Option<Bytes>,
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
    /// The request and the allowed sizes.
    pub fn resolve(self, allowed: RangeInclusive<Gib>) -> Result<Gib, String> {
        let (least, most) = allowed.into_inner();
        let wanted = self.required.unwrap_or_default().gib_ceil();
        let size = wanted.map(|wanted| wanted.max(least));
        size.filter(|size| *size <= most && self.admits(*size))
            .ok_or_else(|| format!("no size from {least} to {most} satisfies {self}"))
    }

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
            refused.unwrap_err(),
            "no size from 20 GiB to 100 GiB satisfies required_bytes 32212254721 with limit_bytes 33285996543"
        );
    }

    #[test]
    fn a_size_above_the_maximum_is_out_of_range() {
        assert!(range(Some(101 << 30), None).resolve(ALLOWED).is_err());
        assert!(range(Some(u64::MAX), None).resolve(ALLOWED).is_err());
    }
}

//! Which category in which zone to try, in what order, at what size.

use super::error::Error;
use super::{NewDisk, Result};
use crate::model::{Category, Gib, ZoneId};

/// One pair that may hold the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) zone: ZoneId,
    pub(super) category: Category,
    pub(super) size: Gib,
}

impl Candidate {
    /// Whether it is the same category in the same zone.
    pub(super) fn is_as(&self, other: &Self) -> bool {
        self.zone == other.zone && self.category == other.category
    }
}

/// The pairs to try: the first zone with each category in order, then the next zone, each at the
/// smallest size that the category sells and the request admits.
pub(super) fn candidates(new: &NewDisk) -> Result<Vec<Candidate>> {
    let mut reasons = Vec::new();
    let mut sized = Vec::new();
    for category in &new.categories {
        match category.sizes().map(|allowed| new.size.resolve(allowed)) {
            Some(Ok(size)) => sized.push((category, size)),
            Some(Err(refused)) => reasons.push(format!("{category}: {refused}")),
            None => reasons.push(format!("{category}: not created by this driver")),
        }
    }
    if sized.is_empty() {
        return Err(Error::OutOfRange {
            name: new.name.clone(),
            reasons: reasons.join("; "),
        });
    }
    let of_zone = |zone: &ZoneId| {
        let zone = zone.clone();
        sized.iter().map(move |(category, size)| Candidate {
            zone: zone.clone(),
            category: (*category).clone(),
            size: *size,
        })
    };
    Ok(new.zones.iter().flat_map(of_zone).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Bytes, SizeRange};

    fn new_disk(categories: &[Category], required: u64, limit: Option<u64>) -> NewDisk {
        NewDisk {
            name: "pvc-1".to_owned(),
            size: SizeRange {
                required: Some(Bytes(required)),
                limit: limit.map(Bytes),
            },
            categories: categories.to_vec(),
            zones: vec!["cn-a".parse().unwrap(), "cn-b".parse().unwrap()],
            snapshot: None,
            encrypted: false,
            kms_key: None,
        }
    }

    #[test]
    fn all_categories_of_the_first_zone_come_before_the_next_zone() {
        let new = new_disk(&[Category::CloudSsd, Category::CloudAuto], 1, None);
        let pairs: Vec<String> = candidates(&new)
            .unwrap()
            .iter()
            .map(|c| format!("{} {} {}", c.zone, c.category, c.size))
            .collect();
        assert_eq!(
            pairs,
            [
                "cn-a cloud_ssd 20 GiB",
                "cn-a cloud_auto 1 GiB",
                "cn-b cloud_ssd 20 GiB",
                "cn-b cloud_auto 1 GiB"
            ]
        );
    }

    #[test]
    fn a_category_that_has_no_such_size_is_left_out() {
        let new = new_disk(
            &[Category::CloudSsd, Category::Cloud],
            10 << 30,
            Some(10 << 30),
        );
        assert!(
            candidates(&new)
                .unwrap()
                .iter()
                .all(|c| c.category == Category::Cloud)
        );
    }

    #[test]
    fn no_category_with_such_a_size_is_out_of_range_with_every_reason() {
        let error = candidates(&new_disk(&[Category::CloudSsd], 1, Some(5 << 30))).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no size satisfies the request for \"pvc-1\": cloud_ssd: no size from 20 GiB \
             to 32768 GiB satisfies required_bytes 1 with limit_bytes 5368709120"
        );
    }
}

//! Quotas of the account for the size of its disks.

use serde::{Deserialize, Serialize};

use super::api_error::ApiError;
use super::disk::{DiskRow, Disks};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct Quotas {
    /// GiB of one category in one zone (`QuotaExceed.DiskCapacity`).
    pub zone_category_gib: Option<u64>,
    /// GiB of all disks (`QuotaExceeded.PostpaidDataDiskCapacity`).
    pub total_gib: Option<u64>,
    /// The account has no balance (`InvalidAccountStatus.NotEnoughBalance`).
    pub no_balance: bool,
}

impl Quotas {
    /// Whether a disk of this size in GiB can be created.
    pub(crate) fn check(&self, disks: &Disks, zone: &str, category: &str, size: u32) -> Result<(), ApiError> {
        if self.no_balance {
            return Err(ApiError::new(403, "InvalidAccountStatus.NotEnoughBalance"));
        }
        let total = |matches: &dyn Fn(&DiskRow) -> bool| -> u64 {
            let rows = disks.rows().values().filter(|row| matches(row));
            rows.map(|row| u64::from(row.size)).sum::<u64>() + u64::from(size)
        };
        let same = |row: &DiskRow| row.zone == zone && row.category == category;
        if self.zone_category_gib.is_some_and(|most| total(&same) > most) {
            return Err(ApiError::new(400, "QuotaExceed.DiskCapacity"));
        }
        if self.total_gib.is_some_and(|most| total(&|_| true) > most) {
            return Err(ApiError::new(403, "QuotaExceeded.PostpaidDataDiskCapacity"));
        }
        Ok(())
    }
}

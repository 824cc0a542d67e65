//! What can be bought where (`DescribeAvailableResource`). A hint, not a promise: it lags.

use super::category::Category;
use super::id::ZoneId;

/// Whether a category can be had in a zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stock {
    pub category: Category,
    /// Whether the cloud says that there is stock.
    pub available: bool,
}

/// What one zone sells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneStock {
    /// The zone; none is the region as a whole.
    pub zone: Option<ZoneId>,
    pub categories: Vec<Stock>,
}

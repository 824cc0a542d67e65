//! Available categories by zone (`DescribeAvailableResource`). The response lags, so it is only a hint.

use super::category::Category;
use super::id::ZoneId;

/// Whether a category is in stock in a zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stock {
    pub category: Category,
    /// Whether the cloud reports stock.
    pub available: bool,
}

/// The stock of a zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneStock {
    /// None for the region as a whole.
    pub zone: Option<ZoneId>,
    pub categories: Vec<Stock>,
}

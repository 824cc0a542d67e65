//! Stock of disk categories.

use std::collections::VecDeque;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use jiff::Timestamp;

use super::invalid_text::InvalidText;
use super::size;

const EXPECTED: &str = "ZONE/CATEGORY; either can be *";

/// Stock keys besides categories: performance levels, multi-attach disks and, in
/// place of a zone, the regional category.
const STOCK_KEYS: [&str; 6] = ["PL0", "PL1", "PL2", "PL3", MULTI_ATTACH, size::REGIONAL];

pub(crate) const MULTI_ATTACH: &str = "multi-attach";

/// The zone name of regional disks.
pub(crate) const REGION: &str = "region";

/// Maximum number of earlier lists to keep.
const MAX_HISTORY: usize = 1000;

/// A category that is out of stock: `ZONE/CATEGORY`, either of them `*` for all.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OutOfStock {
    zone: String,
    category: String,
}

impl FromStr for OutOfStock {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, InvalidText> {
        let invalid = || InvalidText(text.to_owned(), EXPECTED);
        let (zone, category) = text.trim().split_once('/').ok_or_else(invalid)?;
        let known = category == "*" || size::CATEGORIES.contains(&category) || STOCK_KEYS.contains(&category);
        if zone.is_empty() || !known {
            return Err(invalid());
        }
        Ok(Self {
            zone: zone.to_owned(),
            category: category.to_owned(),
        })
    }
}

impl TryFrom<String> for OutOfStock {
    type Error = InvalidText;

    fn try_from(text: String) -> Result<Self, InvalidText> {
        text.parse()
    }
}

impl From<OutOfStock> for String {
    fn from(out_of_stock: OutOfStock) -> Self {
        out_of_stock.to_string()
    }
}

impl fmt::Display for OutOfStock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.zone, self.category)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct ZoneAvailability {
    pub(crate) zone: String,
    pub(crate) offers: Vec<CategoryAvailability>,
}

#[derive(Debug, Clone)]
pub(crate) struct CategoryAvailability {
    pub(crate) category: &'static str,
    pub(crate) available: bool,
    pub(crate) sizes: RangeInclusive<u32>,
}

/// Earlier lists of stock-outs.
#[derive(Debug, Default)]
pub(crate) struct StockHistory(VecDeque<(Timestamp, Vec<OutOfStock>)>);

impl StockHistory {
    /// Records that the list was replaced at this time.
    pub(crate) fn record(&mut self, now: Timestamp, replaced: Vec<OutOfStock>) {
        self.0.push_back((now, replaced));
        if self.0.len() > MAX_HISTORY {
            self.0.pop_front();
        }
    }

    /// The list that applied at a time.
    pub(super) fn at<'a>(&'a self, time: Timestamp, current: &'a [OutOfStock]) -> &'a [OutOfStock] {
        let old = self.0.iter().find(|(until, _)| *until > time);
        old.map_or(current, |(_, list)| list)
    }
}

/// Whether the category, or without one the entire zone, is out of stock.
pub(crate) fn is_out_of_stock(out_of_stock: &[OutOfStock], zone: &str, category: Option<&str>) -> bool {
    out_of_stock.iter().any(|sold| {
        let here = sold.zone == "*" || sold.zone == zone;
        here && match category {
            None => sold.category == "*",
            Some(category) => sold.category == "*" || sold.category == category,
        }
    })
}

/// The zone name for stock: the zone, or `region` for regional disks.
pub(crate) fn place(zone: &str) -> &str {
    if zone.is_empty() { REGION } else { zone }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn out_of_stock_entries_name_a_zone_and_a_known_category() {
        let sold: OutOfStock = "cn-beijing-c/cloud_efficiency".parse().unwrap();
        assert_eq!(sold.to_string(), "cn-beijing-c/cloud_efficiency");
        for text in ["*/*", "cn-beijing-c/PL0", "*/multi-attach"] {
            assert!(text.parse::<OutOfStock>().is_ok(), "{text}");
        }
        assert!("cn-beijing-c".parse::<OutOfStock>().is_err());
        assert!("cn-beijing-c/cloud_gold".parse::<OutOfStock>().is_err());
    }
}

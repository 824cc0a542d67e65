//! Stock of disk categories and `DescribeAvailableResource`.

use std::collections::VecDeque;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use jiff::Timestamp;

use super::distribution::before;
use super::instance_type::InstanceTypeSpec;
use super::params::Params;
use super::response::{ApiError, ApiResponse, ApiResult};
use super::size;
use super::world::World;

/// What can be out of stock besides categories: performance levels, multi-attach disks and, in
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

/// The text is not an [`OutOfStock`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not ZONE/CATEGORY; either can be *")]
pub struct InvalidOutOfStock(String);

impl FromStr for OutOfStock {
    type Err = InvalidOutOfStock;

    fn from_str(text: &str) -> Result<Self, InvalidOutOfStock> {
        let refuse = || InvalidOutOfStock(text.to_owned());
        let (zone, category) = text.trim().split_once('/').ok_or_else(refuse)?;
        let known = category == "*"
            || size::CATEGORIES.contains(&category)
            || STOCK_KEYS.contains(&category);
        if zone.is_empty() || !known {
            return Err(refuse());
        }
        Ok(Self {
            zone: zone.to_owned(),
            category: category.to_owned(),
        })
    }
}

impl TryFrom<String> for OutOfStock {
    type Error = InvalidOutOfStock;

    fn try_from(text: String) -> Result<Self, InvalidOutOfStock> {
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

/// The availability of categories in a zone.
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

/// What was out of stock earlier.
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
    fn at<'a>(&'a self, time: Timestamp, current: &'a [OutOfStock]) -> &'a [OutOfStock] {
        let old = self.0.iter().find(|(until, _)| *until > time);
        old.map_or(current, |(_, list)| list)
    }
}

pub(crate) fn describe_stock(world: &mut World, params: &Params) -> ApiResult {
    if params.required("RegionId")? != world.region {
        return Err(ApiError::new(404, "Invalid.RegionId"));
    }
    if params.required("DestinationResource")? != "DataDisk" {
        return Err(ApiError::new(404, "Invalid.DestinationResource"));
    }
    if !matches!(params.get("ResourceType"), None | Some("disk" | "instance")) {
        return Err(ApiError::new(404, "Invalid.ResourceType"));
    }
    let zone = params.get("ZoneId");
    let category = params.get("DataDiskCategory");
    let machine = params.get("InstanceType").map(InstanceTypeSpec::named);
    let lags = world.config.rules.hide_stockouts;
    let out_of_stock = world.stock.at(
        before(world.now, world.config.rules.stock_lag),
        &world.config.out_of_stock,
    );
    let region = [String::new()];
    let (zones, categories): (&[String], &[&'static str]) = match params.get("Scope") {
        None => (&world.zones, &size::CATEGORIES),
        Some("region") => (&region, &[size::REGIONAL]),
        Some(_) => return Err(ApiError::new(403, "InvalidParameter.Scope")),
    };
    let zones = zones
        .iter()
        .filter(|z| zone.is_none_or(|zone| z.is_empty() || *z == zone));
    let offers = zones.map(|zone| ZoneAvailability {
        zone: zone.clone(),
        offers: categories
            .iter()
            .copied()
            .filter(|c| category.is_none_or(|category| *c == category))
            .filter(|c| machine.as_ref().is_none_or(|machine| machine.supports(c)))
            .map(|category| CategoryAvailability {
                category,
                available: lags || !is_out_of_stock(out_of_stock, place(zone), Some(category)),
                sizes: size::sizes(category, None).unwrap_or(0..=0),
            })
            .collect(),
    });
    Ok(ApiResponse::Stock(offers.collect()))
}

/// Whether the category, or without one the entire zone, is out of stock.
pub(crate) fn is_out_of_stock(
    out_of_stock: &[OutOfStock],
    zone: &str,
    category: Option<&str>,
) -> bool {
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

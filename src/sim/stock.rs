//! What is sold where, and `DescribeAvailableResource`.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::machine::MachineType;
use super::params::Params;
use super::reply::{Answer, Refusal, Reply};
use super::size;
use super::world::World;

/// Something that cannot be bought: `ZONE/CATEGORY`, either of them `*` for every one.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SoldOut {
    zone: String,
    category: String,
}

/// A text that is no [`SoldOut`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not ZONE/CATEGORY; either may be *")]
pub struct InvalidSoldOut(String);

impl FromStr for SoldOut {
    type Err = InvalidSoldOut;

    fn from_str(text: &str) -> Result<Self, InvalidSoldOut> {
        let refuse = || InvalidSoldOut(text.to_owned());
        let (zone, category) = text.trim().split_once('/').ok_or_else(refuse)?;
        let known = category == "*" || size::CATEGORIES.contains(&category);
        if zone.is_empty() || !known {
            return Err(refuse());
        }
        Ok(Self {
            zone: zone.to_owned(),
            category: category.to_owned(),
        })
    }
}

impl TryFrom<String> for SoldOut {
    type Error = InvalidSoldOut;

    fn try_from(text: String) -> Result<Self, InvalidSoldOut> {
        text.parse()
    }
}

impl From<SoldOut> for String {
    fn from(sold_out: SoldOut) -> Self {
        sold_out.to_string()
    }
}

impl fmt::Display for SoldOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.zone, self.category)
    }
}

/// What one zone offers.
#[derive(Debug, Clone)]
pub(crate) struct ZoneOffer {
    pub(crate) zone: String,
    pub(crate) offers: Vec<Offer>,
}

/// What of one category is offered.
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    pub(crate) category: &'static str,
    pub(crate) available: bool,
    pub(crate) sizes: RangeInclusive<u32>,
}

impl World {
    /// Whether the category, or with none the whole zone, is sold out.
    pub(crate) fn is_sold_out(&self, zone: &str, category: Option<&str>) -> bool {
        self.config.sold_out.iter().any(|sold| {
            let here = sold.zone == "*" || sold.zone == zone;
            here && match category {
                None => sold.category == "*",
                Some(category) => sold.category == "*" || sold.category == category,
            }
        })
    }

    pub(crate) fn describe_stock(&mut self, params: &Params) -> Reply {
        if params.required("RegionId")? != self.region {
            return Err(Refusal::new(404, "Invalid.RegionId"));
        }
        if params.required("DestinationResource")? != "DataDisk" {
            return Err(Refusal::new(404, "Invalid.DestinationResource"));
        }
        if !matches!(params.get("ResourceType"), None | Some("disk" | "instance")) {
            return Err(Refusal::new(404, "Invalid.ResourceType"));
        }
        let zone = params.get("ZoneId");
        let category = params.get("DataDiskCategory");
        let machine = params.get("InstanceType").map(MachineType::named);
        let lags = self.config.rules.stock_lags;
        let zones = self
            .zones
            .iter()
            .filter(|z| zone.is_none_or(|zone| *z == zone));
        let offers = zones.map(|zone| ZoneOffer {
            zone: zone.clone(),
            offers: size::CATEGORIES
                .into_iter()
                .filter(|c| category.is_none_or(|category| *c == category))
                .filter(|c| machine.as_ref().is_none_or(|machine| machine.takes(c)))
                .map(|category| Offer {
                    category,
                    available: lags || !self.is_sold_out(zone, Some(category)),
                    sizes: size::sizes(category, None).unwrap_or(0..=0),
                })
                .collect(),
        });
        Ok(Answer::Stock(offers.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sold_out_names_a_zone_and_a_known_category() {
        let sold: SoldOut = "cn-beijing-c/cloud_efficiency".parse().unwrap();
        assert_eq!(sold.to_string(), "cn-beijing-c/cloud_efficiency");
        assert!("*/*".parse::<SoldOut>().is_ok());
        assert!("cn-beijing-c".parse::<SoldOut>().is_err());
        assert!("cn-beijing-c/cloud_gold".parse::<SoldOut>().is_err());
    }
}

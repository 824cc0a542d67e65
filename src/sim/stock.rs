//! What is sold where, and `DescribeAvailableResource`.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::machine::MachineType;
use super::params::Params;
use super::reply::{Answer, Refusal, Reply};
use super::size;
use super::spread::before;
use super::world::World;

/// What a zone may lack beside categories: a performance level, and disks for several instances. And
/// what the region sells, under the zone's name `region`.
const BESIDE: [&str; 6] = ["PL0", "PL1", "PL2", "PL3", MULTI_ATTACH, size::REGIONAL];

/// Disks for several instances.
pub(crate) const MULTI_ATTACH: &str = "multi-attach";

/// Where disks are that are bound to no zone.
pub(crate) const REGION: &str = "region";

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
        let known =
            category == "*" || size::CATEGORIES.contains(&category) || BESIDE.contains(&category);
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
        is_among(&self.config.sold_out, zone, category)
    }

    /// What stock answers take for sold out.
    fn shown_sold_out(&self) -> &[SoldOut] {
        let shown = before(self.now, self.config.rules.stock_lag);
        // The first list that was replaced after the moment that is shown.
        let old = self.sold_before.iter().find(|(until, _)| *until > shown);
        old.map_or(&self.config.sold_out, |(_, list)| list)
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
        let sold_out = self.shown_sold_out();
        let region = [String::new()];
        let (zones, categories): (&[String], &[&'static str]) = match params.get("Scope") {
            None => (&self.zones, &size::CATEGORIES),
            Some("region") => (&region, &[size::REGIONAL]),
            Some(_) => return Err(Refusal::new(403, "InvalidParameter.Scope")),
        };
        let zones = zones
            .iter()
            .filter(|z| zone.is_none_or(|zone| z.is_empty() || *z == zone));
        let offers = zones.map(|zone| ZoneOffer {
            zone: zone.clone(),
            offers: categories
                .iter()
                .copied()
                .filter(|c| category.is_none_or(|category| *c == category))
                .filter(|c| machine.as_ref().is_none_or(|machine| machine.takes(c)))
                .map(|category| Offer {
                    category,
                    available: lags || !is_among(sold_out, place(zone), Some(category)),
                    sizes: size::sizes(category, None).unwrap_or(0..=0),
                })
                .collect(),
        });
        Ok(Answer::Stock(offers.collect()))
    }
}

fn is_among(sold_out: &[SoldOut], zone: &str, category: Option<&str>) -> bool {
    sold_out.iter().any(|sold| {
        let here = sold.zone == "*" || sold.zone == zone;
        here && match category {
            None => sold.category == "*",
            Some(category) => sold.category == "*" || sold.category == category,
        }
    })
}

/// Where disks of this zone, or of none, are on sale.
pub(crate) fn place(zone: &str) -> &str {
    if zone.is_empty() { REGION } else { zone }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sold_out_names_a_zone_and_a_known_category() {
        let sold: SoldOut = "cn-beijing-c/cloud_efficiency".parse().unwrap();
        assert_eq!(sold.to_string(), "cn-beijing-c/cloud_efficiency");
        for text in ["*/*", "cn-beijing-c/PL0", "*/multi-attach"] {
            assert!(text.parse::<SoldOut>().is_ok(), "{text}");
        }
        assert!("cn-beijing-c".parse::<SoldOut>().is_err());
        assert!("cn-beijing-c/cloud_gold".parse::<SoldOut>().is_err());
    }
}

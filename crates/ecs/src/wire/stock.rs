//! Parameters and rows of the stock of disks per zone.

use serde::Deserialize;

use super::params::Params;
use super::{Enum, List};
use crate::action::DescribeStock;
use crate::model::{Category, Stock, ZoneId, ZoneStock};

/// `DescribeAvailableResource` for data disks without an instance.
pub fn describe(query: &DescribeStock) -> Params {
    Params::default()
        .set("DestinationResource", "DataDisk")
        .set("ResourceType", "disk")
        .set_some("ZoneId", query.zone.as_ref())
        .set_some("DataDiskCategory", query.category.as_ref())
        .set_some("InstanceType", query.instance_type.as_ref())
        .set_some("Scope", query.regional.then_some("region"))
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Described {
    available_zones: List<Zone>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Zone {
    zone_id: Option<ZoneId>,
    available_resources: List<Resource>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Resource {
    #[serde(rename = "Type")]
    kind: String,
    supported_resources: List<Offer>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Offer {
    value: Enum<Category>,
    status: Option<String>,
}

impl Described {
    pub fn zones(self) -> Vec<ZoneStock> {
        let zones = self.available_zones.0.into_iter();
        zones.map(Zone::into_model).collect()
    }
}

impl Zone {
    fn into_model(self) -> ZoneStock {
        let resources = self.available_resources.0.into_iter();
        let disks = resources.filter(|resource| resource.kind == "DataDisk");
        let offers = disks.flat_map(|resource| resource.supported_resources.0);
        let categories = offers.map(|offer| Stock {
            category: offer.value.0,
            available: offer.status.as_deref() == Some("Available"),
        });
        ZoneStock {
            zone: self.zone_id,
            categories: categories.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_out_of_stock_category_is_not_available() {
        let json = r#"{"AvailableZones":{"AvailableZone":[{"ZoneId":"cn-a","Status":"Available",
            "AvailableResources":{"AvailableResource":[{"Type":"DataDisk","SupportedResources":
            {"SupportedResource":[{"Value":"cloud_ssd","Status":"SoldOut","StatusCategory":"WithoutStock"},
            {"Value":"cloud_essd","Status":"Available","Min":20,"Max":65536}]}}]}}]}}"#;
        let zones: Vec<ZoneStock> = crate::wire::read::<Described>(json.as_bytes()).unwrap().zones();
        let available: Vec<bool> = zones[0].categories.iter().map(|s| s.available).collect();
        assert_eq!(available, [false, true]);
    }
}

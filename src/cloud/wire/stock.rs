//! What can be bought where, on the wire.

use serde::Deserialize;

use super::params::Params;
use super::{List, Malformed, filled};
use crate::cloud::action::DescribeStock;
use crate::model::{Category, Stock, ZoneStock};

/// `DescribeAvailableResource` for free-standing data disks.
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
    #[serde(default)]
    available_zones: List<Zone>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Zone {
    #[serde(default, deserialize_with = "filled")]
    zone_id: Option<String>,
    #[serde(default)]
    available_resources: List<Resource>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Resource {
    #[serde(rename = "Type")]
    kind: String,
    #[serde(default)]
    supported_resources: List<Offer>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Offer {
    value: String,
    #[serde(default, deserialize_with = "filled")]
    status: Option<String>,
}

impl Described {
    /// The zones in the model's terms.
    pub fn zones(self) -> Result<Vec<ZoneStock>, Malformed> {
        self.available_zones
            .0
            .into_iter()
            .map(Zone::stock)
            .collect()
    }
}

impl Zone {
    fn stock(self) -> Result<ZoneStock, Malformed> {
        let disks = self
            .available_resources
            .0
            .into_iter()
            .filter(|resource| resource.kind == "DataDisk")
            .flat_map(|resource| resource.supported_resources.0);
        let categories = disks
            .map(|offer| {
                let Ok(category): Result<Category, _> = offer.value.parse();
                Stock {
                    category,
                    available: offer.status.as_deref() == Some("Available"),
                }
            })
            .collect();
        let zone = self
            .zone_id
            .map(|zone| zone.parse().map_err(Malformed::Id))
            .transpose()?;
        Ok(ZoneStock { zone, categories })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sold_out_category_is_not_available() {
        let json = r#"{"AvailableZones":{"AvailableZone":[{"ZoneId":"cn-a","Status":"Available",
            "AvailableResources":{"AvailableResource":[{"Type":"DataDisk","SupportedResources":
            {"SupportedResource":[{"Value":"cloud_ssd","Status":"SoldOut","StatusCategory":"WithoutStock"},
            {"Value":"cloud_essd","Status":"Available","Min":20,"Max":65536}]}}]}}]}}"#;
        let zones = serde_json::from_str::<Described>(json)
            .unwrap()
            .zones()
            .unwrap();
        let available: Vec<bool> = zones[0].categories.iter().map(|s| s.available).collect();
        assert_eq!(available, [false, true]);
    }
}

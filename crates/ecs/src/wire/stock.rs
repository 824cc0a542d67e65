//! Parameters and rows of the stock of disks per zone.

use serde::Deserialize;

use super::params::Params;
use crate::action::DescribeStock;
use crate::model::ZoneStock;
use crate::model::read::list;

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
    #[serde(default, deserialize_with = "list")]
    pub available_zones: Vec<ZoneStock>,
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
        let zones = crate::wire::read::<Described>(json.as_bytes()).unwrap().available_zones;
        let available: Vec<bool> = zones[0].categories.iter().map(|s| s.available).collect();
        assert_eq!(available, [false, true]);
    }
}

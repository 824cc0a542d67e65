//! Available categories by zone (`DescribeAvailableResource`). The response lags, so it is only a hint.

use serde::{Deserialize, Deserializer};

use super::category::Category;
use super::id::ZoneId;
use super::read;

/// Whether a category is in stock in a zone.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Stock {
    #[serde(rename = "Value")]
    pub category: Category,
    /// Whether the cloud reports stock.
    #[serde(default, rename = "Status", deserialize_with = "is_available")]
    pub available: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ZoneStock {
    /// None for the region as a whole.
    #[serde(rename = "ZoneId")]
    pub zone: Option<ZoneId>,
    #[serde(default, rename = "AvailableResources", deserialize_with = "disks")]
    pub categories: Vec<Stock>,
}

fn is_available<'de, D: Deserializer<'de>>(json: D) -> Result<bool, D::Error> {
    Ok(String::deserialize(json)? == "Available")
}

fn disks<'de, D: Deserializer<'de>>(json: D) -> Result<Vec<Stock>, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Resource {
        r#type: String,
        #[serde(default, deserialize_with = "read::list")]
        supported_resources: Vec<Stock>,
    }
    let resources: Vec<Resource> = read::list(json)?;
    let disks = resources.into_iter().filter(|resource| resource.r#type == "DataDisk");
    Ok(disks.flat_map(|resource| resource.supported_resources).collect())
}

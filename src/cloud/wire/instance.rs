//! Instances and instance types on the wire.

use serde::Deserialize;

use super::disk::TagRows;
use super::params::Params;
use super::{List, Malformed, filled};
use crate::cloud::action::{DescribeInstances, Page};
use crate::model::{Instance, InstanceStatus, InstanceType};

pub fn describe(query: &DescribeInstances) -> Params {
    let params = Params::default()
        .set("MaxResults", 100)
        .set_some("NextToken", query.next.as_ref());
    match &query.ids {
        Some(ids) => params.ids("InstanceIds", ids),
        None => params,
    }
}

/// `DescribeInstanceTypes`. Attributes come back only when `MaxResults` is sent.
pub fn describe_types(names: &[String]) -> Params {
    Params::default()
        .set("MaxResults", 100)
        .list("InstanceTypes", names)
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Described {
    #[serde(default, deserialize_with = "filled")]
    next_token: Option<String>,
    instances: List<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Row {
    instance_id: String,
    instance_type: String,
    zone_id: String,
    status: String,
    #[serde(default)]
    tags: Option<TagRows>,
}

impl Described {
    /// The page in the model's terms.
    pub fn page(self) -> Result<Page<Instance>, Malformed> {
        let rows = self.instances.0.into_iter().map(|row| {
            let Ok(status): Result<InstanceStatus, _> = row.status.parse();
            Ok(Instance {
                id: row.instance_id.parse().map_err(Malformed::Id)?,
                instance_type: row.instance_type,
                zone: row.zone_id.parse().map_err(Malformed::Id)?,
                status,
                tags: row.tags.unwrap_or_default().into(),
            })
        });
        let rows = rows.collect::<Result<_, _>>()?;
        Ok(Page::new(rows, self.next_token))
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DescribedTypes {
    instance_types: List<TypeRow>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TypeRow {
    instance_type_id: String,
    #[serde(default)]
    disk_quantity: u32,
    #[serde(default, deserialize_with = "filled")]
    nvme_support: Option<String>,
}

impl From<DescribedTypes> for Vec<InstanceType> {
    fn from(described: DescribedTypes) -> Self {
        let rows = described.instance_types.0.into_iter();
        rows.map(|row| InstanceType {
            name: row.instance_type_id,
            disk_quantity: row.disk_quantity,
            nvme_support: row.nvme_support.unwrap_or_default(),
        })
        .collect()
    }
}

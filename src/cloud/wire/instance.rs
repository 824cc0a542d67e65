//! Instances and instance types on the wire.

use serde::Deserialize;

use super::params::Params;
use super::tag::TagRow;
use super::{List, word};
use crate::cloud::action::DescribeInstances;
use crate::model::{Instance, InstanceId, InstanceStatus, InstanceType, ZoneId};

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
pub struct Row {
    instance_id: InstanceId,
    instance_type: String,
    zone_id: ZoneId,
    #[serde(deserialize_with = "word")]
    status: InstanceStatus,
    #[serde(default)]
    tags: List<TagRow>,
}

impl super::Row for Row {
    type Model = Instance;
    const LIST: &'static str = "Instances";
    const ID: &'static str = "InstanceId";
}

impl From<Row> for Instance {
    fn from(row: Row) -> Self {
        Self {
            id: row.instance_id,
            instance_type: row.instance_type,
            zone: row.zone_id,
            status: row.status,
            tags: row.tags.into(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct TypeRow {
    instance_type_id: String,
    #[serde(default)]
    disk_quantity: u32,
    nvme_support: Option<String>,
}

impl super::Row for TypeRow {
    type Model = InstanceType;
    const LIST: &'static str = "InstanceTypes";
    const ID: &'static str = "InstanceTypeId";
}

impl From<TypeRow> for InstanceType {
    fn from(row: TypeRow) -> Self {
        Self {
            name: row.instance_type_id,
            disk_quantity: row.disk_quantity,
            nvme_support: row.nvme_support.unwrap_or_default(),
        }
    }
}

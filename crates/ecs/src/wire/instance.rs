//! Parameters and rows of instances and instance types.

use serde::Deserialize;

use super::params::Params;
use super::tag::TagRow;
use super::{Enum, List};
use crate::action::DescribeInstances;
use crate::model::{Instance, InstanceId, InstanceStatus, InstanceType, ZoneId};

pub fn describe(query: &DescribeInstances) -> Params {
    Params::page(None, query.next.as_ref()).ids("InstanceIds", query.ids.as_deref())
}

/// `DescribeInstanceTypes`. Attributes are returned only with `MaxResults`.
pub fn describe_types(names: &[String]) -> Params {
    Params::page(None, None).list("InstanceTypes", names)
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Row {
    instance_id: InstanceId,
    instance_type: String,
    zone_id: ZoneId,
    status: Enum<InstanceStatus>,
    tags: List<TagRow>,
}

impl super::Row for Row {
    type Model = Instance;
    const LIST: &'static str = "Instances";
    const ID: &'static str = "InstanceId";

    fn into_model(self) -> Instance {
        Instance {
            id: self.instance_id,
            instance_type: self.instance_type,
            zone: self.zone_id,
            status: self.status.0,
            tags: self.tags.into(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct TypeRow {
    instance_type_id: String,
    #[serde(default)]
    disk_quantity: u32,
}

impl super::Row for TypeRow {
    type Model = InstanceType;
    const LIST: &'static str = "InstanceTypes";
    const ID: &'static str = "InstanceTypeId";

    fn into_model(self) -> InstanceType {
        InstanceType {
            name: self.instance_type_id,
            disk_quantity: self.disk_quantity,
        }
    }
}

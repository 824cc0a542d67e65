//! Parameters and rows of instances and instance types.

use super::Row;
use super::params::Params;
use crate::action::DescribeInstances;
use crate::model::{Instance, InstanceType};

pub fn describe(query: &DescribeInstances) -> Params {
    Params::page(None, query.next.as_ref()).ids("InstanceIds", query.ids.as_deref())
}

/// `DescribeInstanceTypes`. Attributes are returned only with `MaxResults`.
pub fn describe_types(names: &[String]) -> Params {
    Params::page(None, None).list("InstanceTypes", names)
}

impl Row for Instance {
    const LIST: &'static str = "Instances";
    const ID: &'static str = "InstanceId";
}

impl Row for InstanceType {
    const LIST: &'static str = "InstanceTypes";
    const ID: &'static str = "InstanceTypeId";
}

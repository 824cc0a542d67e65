//! Changes of an existing disk: the mutable parameters of CSI.

use ecs::model::category::{Category, PerformanceLevel};
use ecs::model::tag::Tags;

/// A requested change. Unset and empty fields are unchanged. Level and IOPS are valid for the category, if that is set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Change {
    pub category: Option<Category>,
    /// Another level, of a `cloud_essd`.
    pub level: Option<PerformanceLevel>,
    /// Provisioned IOPS of a `cloud_auto` in addition to the baseline; 0 removes them.
    pub provisioned_iops: Option<u32>,
    /// Whether a `cloud_auto` may exceed its baseline.
    pub bursting: Option<bool>,
    /// Tags to set; none of the driver's own.
    pub tags: Tags,
}

impl Change {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

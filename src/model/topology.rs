//! Topology segments: the standard zone key, and a key for each disk category that a node supports.
//!
//! Each category has its own key, all with the same value, because the scheduler compares labels individually: a volume
//! has the key of its category, a node those of all categories that it supports.

use ecs::model::category::Category;

/// The well-known label of Kubernetes nodes that holds the zone.
pub const ZONE_KEY: &str = "topology.kubernetes.io/zone";

/// Before the category in the key of a category.
pub const CATEGORY_PREFIX: &str = "disk.diskplugin.csi.example/";

/// The value of a category's key. Nodes have no keys of unsupported categories.
pub const TAKEN: &str = "available";

/// The key of a category.
#[must_use]
pub fn category_key(category: &Category) -> String {
    format!("{CATEGORY_PREFIX}{category}")
}

/// The category of a key; none when the key is of something else.
#[must_use]
pub fn category_of(key: &str) -> Option<Category> {
    let Ok(category) = key.strip_prefix(CATEGORY_PREFIX)?.parse();
    Some(category)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_category_has_its_key_and_a_zone_is_none() {
        for category in Category::KNOWN {
            assert_eq!(category_of(&category_key(&category)), Some(category));
        }
        assert_eq!(category_of(ZONE_KEY), None);
    }
}

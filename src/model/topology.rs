//! Topology segments: the standard zone key, and a key for each disk category that a node supports.
//!
//! Each category has its own key, all with the same value, because the scheduler compares labels individually: a volume
//! has the key of its category, a node those of all categories that it supports.

use ecs::model::category::Category;

/// The well-known zone label of Kubernetes nodes.
pub const ZONE_KEY: &str = "topology.kubernetes.io/zone";

/// Followed by the category, in the key of a category.
pub const CATEGORY_PREFIX: &str = "disk.diskplugin.csi.example/";

/// The value of a category's key. Nodes have no keys of unsupported categories.
pub const SUPPORTED: &str = "available";

pub fn category_key(category: &Category) -> String {
    format!("{CATEGORY_PREFIX}{category}")
}

/// The category of a key; none for other keys.
pub fn category_of(key: &str) -> Option<Category> {
    let Ok(category) = key.strip_prefix(CATEGORY_PREFIX)?.parse();
    Some(category)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_category_has_its_own_key() {
        for category in Category::KNOWN {
            assert_eq!(category_of(&category_key(category)).as_ref(), Some(category));
        }
        assert_eq!(category_of(ZONE_KEY), None);
    }
}

//! Tag rules (ECS API, common name rules).

use std::collections::BTreeMap;

use super::api_error::ApiError;

/// Maximum number of tags of a resource.
pub(super) const MAX: usize = 20;
/// Maximum length of a key or value, in characters.
const MAX_LENGTH: usize = 128;

/// A row of `ListTagResources`.
#[derive(Debug, Clone)]
pub(crate) struct TaggedRow {
    pub(crate) id: String,
    pub(crate) kind: &'static str,
    pub(crate) key: String,
    pub(crate) value: String,
}

pub(crate) fn check(key: &str, value: &str) -> Result<(), ApiError> {
    let has_link = |text: &str| text.contains("http://") || text.contains("https://");
    let reserved = key.starts_with("aliyun") || key.starts_with("acs:");
    if key.chars().count() > MAX_LENGTH || reserved || has_link(key) {
        return Err(ApiError::new(400, "InvalidTagKey.Malformed"));
    }
    if value.chars().count() > MAX_LENGTH || has_link(value) {
        return Err(ApiError::new(400, "InvalidTagValue.Malformed"));
    }
    Ok(())
}

pub(crate) fn check_count(tags: &BTreeMap<String, String>) -> Result<(), ApiError> {
    if tags.len() > MAX {
        return Err(ApiError::new(403, "QuotaExceed.Tags"));
    }
    Ok(())
}

/// Whether a resource carries all of the wanted tags.
pub(crate) fn carries(tags: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>) -> bool {
    wanted.iter().all(|(key, value)| tags.get(key) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_tags_and_links_are_rejected() {
        assert_eq!(check("aliyun-x", "").unwrap_err().code, "InvalidTagKey.Malformed");
        assert_eq!(check("acs:x", "").unwrap_err().code, "InvalidTagKey.Malformed");
        assert_eq!(check("k", "http://x").unwrap_err().code, "InvalidTagValue.Malformed");
        assert_eq!(
            check("k", &"v".repeat(129)).unwrap_err().code,
            "InvalidTagValue.Malformed"
        );
        assert_eq!(check("diskplugin.csi.example/name", "pvc-1"), Ok(()));
    }

    #[test]
    fn a_filter_requires_all_tags() {
        let of = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let own = |(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned());
            pairs.iter().map(own).collect()
        };
        let tags = of(&[("a", "1"), ("b", "2")]);
        assert!(carries(&tags, &of(&[("a", "1")])));
        assert!(!carries(&tags, &of(&[("a", "1"), ("b", "3")])));
    }
}

//! The parameters of a call, flat as in the wire format: `DiskId`, `Tag.1.Key`, …

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use super::api_error::ApiError;
use super::tag;

/// Parameters by name. An empty value counts as absent, except for tag values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Params(BTreeMap<String, String>);

impl From<BTreeMap<String, String>> for Params {
    fn from(params: BTreeMap<String, String>) -> Self {
        Self(params)
    }
}

impl Params {
    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    pub(crate) fn map(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|v| !v.is_empty())
    }

    /// Whether the parameter is present with an empty value.
    pub(crate) fn is_empty(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(String::is_empty)
    }

    pub(crate) fn required(&self, name: &str) -> Result<&str, ApiError> {
        self.get(name).ok_or_else(|| ApiError::missing(name))
    }

    /// A value that must be valid if present.
    pub(crate) fn parsed<T: FromStr>(&self, name: &str) -> Result<Option<T>, ApiError> {
        self.get(name)
            .map(|text| text.parse().map_err(|_| ApiError::invalid(name)))
            .transpose()
    }

    /// `true` or `false` in any case: the vendor's SDK for Python sends `True`.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, ApiError> {
        match self.get(name).map(str::to_ascii_lowercase).as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(ApiError::invalid(name)),
        }
    }

    /// A JSON array of IDs; none if absent.
    pub(crate) fn ids(&self, name: &str, malformed: ApiError) -> Result<Option<BTreeSet<String>>, ApiError> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        let ids: Vec<String> =
            serde_json::from_str(text).map_err(|_| ApiError::new(400, format!("InvalidParameter.{name}")))?;
        if ids.len() > 100 {
            return Err(malformed);
        }
        Ok(Some(ids.into_iter().collect()))
    }

    /// `Name.1`, `Name.2`, … up to the first gap.
    pub(crate) fn list(&self, name: &str) -> Vec<&str> {
        (1..).map_while(|n| self.get(&format!("{name}.{n}"))).collect()
    }

    /// `Tag.N.Key` and `Tag.N.Value`, validated.
    pub(crate) fn tags(&self) -> Result<BTreeMap<String, String>, ApiError> {
        let mut tags = BTreeMap::new();
        for n in 1.. {
            let Some(key) = self.get(&format!("Tag.{n}.Key")) else {
                break;
            };
            let value = self.0.get(&format!("Tag.{n}.Value"));
            let value = value.cloned().unwrap_or_default();
            tag::check(key, &value)?;
            if tags.insert(key.to_owned(), value).is_some() {
                return Err(ApiError::new(400, "Duplicate.TagKey"));
            }
        }
        Ok(tags)
    }

    /// Identifies a request for `ClientToken`: all parameters except the token. The order of tags
    /// matters, because the index is part of the name.
    pub(crate) fn fingerprint(&self) -> String {
        let parts = self.0.iter().filter(|(name, _)| *name != "ClientToken");
        parts
            .map(|(name, value)| format!("{}:{name}={}:{value};", name.len(), value.len()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_value_counts_as_absent() {
        let params = Params::default().with("DiskId", "");
        assert_eq!(params.get("DiskId"), None);
        assert_eq!(params.required("DiskId").unwrap_err().code, "MissingParameter");
    }

    #[test]
    fn a_flag_is_true_or_false_in_any_case() {
        let flag = |text: &str| Params::default().with("Force", text).flag("Force");
        assert_eq!((flag("true"), flag("True")), (Ok(true), Ok(true)));
        assert_eq!((flag("FALSE"), flag("")), (Ok(false), Ok(false)));
        assert_eq!(flag("1").unwrap_err().code, "InvalidParameter");
    }

    #[test]
    fn a_list_ends_at_its_first_gap() {
        let params = Params::default()
            .with("ResourceId.1", "a")
            .with("ResourceId.2", "b")
            .with("ResourceId.4", "d");
        assert_eq!(params.list("ResourceId"), ["a", "b"]);
    }

    #[test]
    fn ids_are_a_json_array_of_at_most_a_hundred() {
        let error = || ApiError::new(403, "InvalidDiskIds.Malformed");
        let ids = |text: &str| Params::default().with("DiskIds", text).ids("DiskIds", error());
        assert_eq!(ids("[]").unwrap().unwrap().len(), 0);
        assert_eq!(ids("oops").unwrap_err().code, "InvalidParameter.DiskIds");
        let many: Vec<String> = (0..101).map(|n| format!("d-{n}")).collect();
        let many = serde_json::to_string(&many).unwrap();
        assert_eq!(ids(&many).unwrap_err().code, "InvalidDiskIds.Malformed");
        assert_eq!(Params::default().ids("DiskIds", error()), Ok(None));
    }

    #[test]
    fn the_order_of_tags_is_part_of_the_fingerprint() {
        let one = Params::default().with("Tag.1.Key", "a").with("Tag.2.Key", "b");
        let other = Params::default().with("Tag.1.Key", "b").with("Tag.2.Key", "a");
        assert_ne!(one.fingerprint(), other.fingerprint());
        let again = one.clone().with("ClientToken", "x");
        assert_eq!(one.fingerprint(), again.fingerprint());
    }
}

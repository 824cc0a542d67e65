//! Request parameters of a call: flattened, with 1-based indexes, never empty.

use std::collections::BTreeMap;
use std::fmt::Display;

use serde_json::Value;

use crate::model::Tags;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Params(BTreeMap<String, String>);

impl Params {
    pub fn set(mut self, name: &str, value: impl Display) -> Self {
        self.0.insert(name.to_owned(), value.to_string());
        self
    }

    /// Sets the parameter if it has a value: the API rejects some empty ones.
    pub fn set_some(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.set(name, value),
            None => self,
        }
    }

    /// Sets the parameter to `true` if `is_set`.
    pub fn flag(self, name: &str, is_set: bool) -> Self {
        self.set_some(name, is_set.then_some("true"))
    }

    /// The parameters of a page with token-based pagination. The default size is 100.
    pub fn page(size: Option<u32>, token: Option<&String>) -> Self {
        Self::default()
            .set("MaxResults", size.unwrap_or(100))
            .set_some("NextToken", token)
    }

    /// The parameters of the first page with number-based pagination.
    pub fn numbered_page() -> Self {
        Self::default().set("PageSize", 100).set("PageNumber", 1)
    }

    /// Sets a list as `Name.1`, `Name.2` …
    pub fn list<V: Display>(self, name: &str, values: impl IntoIterator<Item = V>) -> Self {
        let numbered = values.into_iter().zip(1..);
        numbered.fold(self, |params, (value, n)| params.set(&format!("{name}.{n}"), value))
    }

    /// Sets ids as a JSON array in one string, the format of `DiskIds`, `SnapshotIds` and `InstanceIds`.
    pub fn ids<V: Display>(self, name: &str, ids: Option<&[V]>) -> Self {
        let ids = ids.map(|ids| ids.iter().map(V::to_string).collect::<Value>());
        self.set_some(name, ids)
    }

    /// Sets tags as `Tag.1.Key`, `Tag.1.Value` …, in the order of their keys: a repeated request with the same client
    /// token must be identical.
    pub fn tags(self, tags: &Tags) -> Self {
        tags.iter().zip(1..).fold(self, |params, ((key, value), n)| {
            let params = params.set(&format!("Tag.{n}.Key"), key);
            params.set(&format!("Tag.{n}.Value"), value)
        })
    }

    pub fn as_map(&self) -> &BTreeMap<String, String> {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_tags_are_numbered_from_one() {
        let tags = Tags::from([("b".to_owned(), "2".to_owned()), ("a".to_owned(), String::new())]);
        let params = Params::default().list("ResourceId", ["x", "y"]).tags(&tags);
        let flat: Vec<_> = params.as_map().iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(
            flat,
            [
                "ResourceId.1=x",
                "ResourceId.2=y",
                "Tag.1.Key=a",
                "Tag.1.Value=",
                "Tag.2.Key=b",
                "Tag.2.Value=2"
            ]
        );
    }

    #[test]
    fn ids_are_a_json_array_even_if_empty() {
        assert_eq!(
            Params::default().ids("DiskIds", Some(&["a", "b"])).as_map()["DiskIds"],
            r#"["a","b"]"#
        );
        assert_eq!(
            Params::default().ids::<&str>("DiskIds", Some(&[])).as_map()["DiskIds"],
            "[]"
        );
    }
}

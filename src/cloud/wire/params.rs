//! Business parameters of a call: flattened, 1-based, never empty.

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

    /// With a parameter, where there is a value: the API refuses some empty ones.
    pub fn set_some(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.set(name, value),
            None => self,
        }
    }

    /// With a flag where it is set.
    pub fn flag(self, name: &str, is_set: bool) -> Self {
        self.set_some(name, is_set.then_some("true"))
    }

    /// Of a page of a list, by its token; without a size, of all the ids that one query may name.
    pub fn page(size: Option<u32>, token: Option<&String>) -> Self {
        Self::default()
            .set("MaxResults", size.unwrap_or(100))
            .set_some("NextToken", token)
    }

    /// Of the first page of a list that numbers them.
    pub fn numbered_page() -> Self {
        Self::default().set("PageSize", 100).set("PageNumber", 1)
    }

    /// With a list as `Name.1`, `Name.2` …
    pub fn list<V: Display>(self, name: &str, values: impl IntoIterator<Item = V>) -> Self {
        let numbered = values.into_iter().zip(1..);
        numbered.fold(self, |params, (value, n)| {
            params.set(&format!("{name}.{n}"), value)
        })
    }

    /// With ids as a JSON array in one string, the form of `DiskIds`, `SnapshotIds`, `InstanceIds`.
    pub fn ids<V: Display>(self, name: &str, ids: Option<&[V]>) -> Self {
        let ids = ids.map(|ids| ids.iter().map(V::to_string).collect::<Value>());
        self.set_some(name, ids)
    }

    /// With tags as `Tag.1.Key`, `Tag.1.Value` …, in the order of their keys: a repeated create must
    /// send them in the same order.
    pub fn tags(self, tags: &Tags) -> Self {
        tags.iter()
            .zip(1..)
            .fold(self, |params, ((key, value), n)| {
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
        let tags = Tags::from([
            ("b".to_owned(), "2".to_owned()),
            ("a".to_owned(), String::new()),
        ]);
        let params = Params::default().list("ResourceId", ["x", "y"]).tags(&tags);
        let flat: Vec<_> = params
            .as_map()
            .iter()
            .map(|(k, v)| format!("{k}={v}"))
            .collect();
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
    fn ids_are_a_json_array_also_when_there_are_none() {
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

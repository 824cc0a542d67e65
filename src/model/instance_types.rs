//! The file of attach limits of instance types, which the controller writes and nodes, which have no credentials, read.
//!
//! `{"instanceTypes": {"ecs.g6.large": {"diskQuantity": 17, "categories": ["cloud_essd"]}}}`

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use ecs::model::category::Category;

const TYPES: &str = "instanceTypes";
const QUANTITY: &str = "diskQuantity";
const CATEGORIES: &str = "categories";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachLimits {
    /// Maximum number of cloud disks with the system disk (`DiskQuantity`); at least 1.
    pub disk_quantity: u32,
    /// Supported disk categories; empty if unknown.
    pub categories: Vec<Category>,
}

/// Attach limits by name of the instance type.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstanceTypes(pub BTreeMap<String, AttachLimits>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidTypes(String);

type Result<T> = std::result::Result<T, InvalidTypes>;

/// A file with its unknown entries: another version of the driver may have written it, with other categories and
/// fields.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Document {
    /// The fields besides the types.
    fields: Map<String, Value>,
    rows: Map<String, Value>,
    types: InstanceTypes,
    skipped: Vec<String>,
}

impl Document {
    /// Parses the file. Unknown fields and categories are skipped, and so are types that are
    /// unusable without them; [`Self::skipped`] lists them.
    ///
    /// # Errors
    /// It is not JSON, or has no object of types.
    pub fn read(text: &str) -> Result<Self> {
        let document: Value =
            serde_json::from_str(text).map_err(|error| InvalidTypes(format!("invalid JSON: {error}")))?;
        let mut fields = object("the document", document)?;
        let mut skipped = Vec::new();
        unknown("the document", &fields, &[TYPES], &mut skipped);
        let Some(rows) = fields.remove(TYPES) else {
            return wrong(TYPES, "is missing");
        };
        let rows = object(TYPES, rows)?;
        let mut types = InstanceTypes::default();
        for (name, value) in &rows {
            match attach_limits(&format!("{TYPES}.{name}"), value, &mut skipped) {
                Ok(limits) => drop(types.0.insert(name.clone(), limits)),
                Err(error) => skipped.push(error.to_string()),
            }
        }
        Ok(Self {
            fields,
            rows,
            types,
            skipped,
        })
    }

    pub fn types(&self) -> &InstanceTypes {
        &self.types
    }

    /// The ignored fields and values, each with the allowed ones.
    pub fn skipped(&self) -> &[String] {
        &self.skipped
    }

    /// Adds or updates these types. Other types, categories that an update lacks, and unknown entries are kept.
    pub fn with(&self, new: &InstanceTypes) -> Self {
        let mut all = self.clone();
        for (name, limits) in &new.0 {
            let mut merged = limits.clone();
            if let Some(before) = self.types.0.get(name).filter(|_| limits.categories.is_empty()) {
                merged.categories.clone_from(&before.categories);
            }
            let mut row = match all.rows.remove(name) {
                Some(Value::Object(row)) => row,
                _ => Map::new(),
            };
            fill(&mut row, &merged);
            all.rows.insert(name.clone(), row.into());
            all.types.0.insert(name.clone(), merged);
        }
        all
    }

    pub fn text(&self) -> String {
        let mut fields = self.fields.clone();
        fields.insert(TYPES.to_owned(), self.rows.clone().into());
        format!("{:#}\n", Value::Object(fields))
    }
}

fn wrong<T>(field: &str, reason: impl fmt::Display) -> Result<T> {
    Err(InvalidTypes(format!("{field} {reason}")))
}

/// Sets the limits of a type. Its unknown fields and categories are kept.
fn fill(row: &mut Map<String, Value>, limits: &AttachLimits) {
    row.insert(QUANTITY.to_owned(), limits.disk_quantity.into());
    let names = limits.categories.iter().map(Category::as_str);
    let mut names: Vec<Value> = names.map(Value::from).collect();
    if let Some(Value::Array(before)) = row.remove(CATEGORIES) {
        names.extend(before.into_iter().filter(|name| known(name).is_none()));
    }
    if !names.is_empty() {
        row.insert(CATEGORIES.to_owned(), Value::Array(names));
    }
}

fn attach_limits(field: &str, value: &Value, skipped: &mut Vec<String>) -> Result<AttachLimits> {
    let fields = object(field, value.clone())?;
    unknown(field, &fields, &[QUANTITY, CATEGORIES], skipped);
    let quantity = format!("{field}.{QUANTITY}");
    let Some(given) = fields.get(QUANTITY) else {
        return wrong(&quantity, "is missing");
    };
    let number = given.as_u64().and_then(|number| u32::try_from(number).ok());
    let Some(disk_quantity) = number.filter(|number| *number > 0) else {
        let reason = format!("is {given}; allowed: a whole number, 1 or more");
        return wrong(&quantity, reason);
    };
    let field = format!("{field}.{CATEGORIES}");
    let names = match fields.get(CATEGORIES) {
        None => &Vec::new(),
        Some(Value::Array(names)) => names,
        Some(other) => return wrong(&field, format!("is {other}; expected a list")),
    };
    let mut categories = Vec::new();
    for name in names {
        match known(name) {
            Some(category) => categories.push(category),
            None => {
                let allowed: Vec<_> = Category::KNOWN.iter().map(Category::as_str).collect();
                skipped.push(format!("{field} holds {name}; allowed: {}", allowed.join(", ")));
            }
        }
    }
    Ok(AttachLimits {
        disk_quantity,
        categories,
    })
}

fn known(name: &Value) -> Option<Category> {
    let mut known = Category::KNOWN.iter().cloned();
    known.find(|category| name.as_str() == Some(category.as_str()))
}

fn object(field: &str, value: Value) -> Result<Map<String, Value>> {
    match value {
        Value::Object(fields) => Ok(fields),
        value => wrong(field, format!("is {value}; expected an object")),
    }
}

fn unknown(field: &str, given: &Map<String, Value>, known: &[&str], skipped: &mut Vec<String>) {
    let given = given.keys().filter(|key| !known.contains(&key.as_str()));
    let known = known.join(", ");
    skipped.extend(given.map(|key| format!("{field} has a field {key:?}; allowed: {known}")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_types_are_parsed_again() {
        let mut types = InstanceTypes::default();
        for (name, categories) in [("ecs.g6.large", Vec::new()), ("ecs.g7.large", Category::KNOWN.to_vec())] {
            let limits = AttachLimits {
                disk_quantity: 17,
                categories,
            };
            types.0.insert(name.to_owned(), limits);
        }
        let text = Document::default().with(&types).text();
        assert_eq!(*Document::read(&text).unwrap().types(), types);
    }

    #[test]
    fn every_mistake_names_its_field() {
        for (text, expected) in [
            ("{", "invalid JSON: "),
            ("instanceTypes: {}", "invalid JSON: "),
            ("[]", "the document is []; expected an object"),
            ("{}", "instanceTypes is missing"),
            (r#"{"instanceTypes": []}"#, "instanceTypes is []; expected an object"),
        ] {
            let refused = Document::read(text).unwrap_err().to_string();
            assert!(refused.starts_with(expected), "{refused}");
        }
    }

    #[test]
    fn unknown_entries_are_skipped_and_reported() {
        for (row, skipped, quantity, categories) in [
            ("{}", "a.diskQuantity is missing", None, 0),
            (
                r#"{"diskQuantity": 0}"#,
                "a.diskQuantity is 0; allowed: a whole number, 1 or more",
                None,
                0,
            ),
            (
                r#"{"diskQuantity": 2, "categories": "x"}"#,
                "a.categories is \"x\"; expected a list",
                None,
                0,
            ),
            (
                r#"{"diskQuantity": 2, "categories": ["cloud_next", "cloud_essd"]}"#,
                "a.categories holds \"cloud_next\"; allowed: ",
                Some(2),
                1,
            ),
            (
                r#"{"diskQuantity": 2, "slots": 2}"#,
                "a has a field \"slots\"; allowed: diskQuantity, categories",
                Some(2),
                0,
            ),
            ("3", "a is 3; expected an object", None, 0),
        ] {
            let text = format!(r#"{{"instanceTypes": {{"a": {row}, "b": {{"diskQuantity": 9}}}}}}"#);
            let document = Document::read(&text).unwrap();
            let wanted = format!("instanceTypes.{skipped}");
            assert_eq!(document.skipped().len(), 1, "{document:?}");
            assert!(document.skipped()[0].starts_with(&wanted), "{document:?}");
            let types = &document.types().0;
            assert_eq!(types["b"].disk_quantity, 9);
            let found = types.get("a");
            assert_eq!(found.map(|limits| limits.disk_quantity), quantity);
            assert_eq!(found.map_or(0, |limits| limits.categories.len()), categories);
        }
        let more = Document::read(r#"{"instanceTypes": {}, "x": 1}"#).unwrap();
        let expected = "the document has a field \"x\"; allowed: instanceTypes";
        assert_eq!(more.skipped(), [expected]);
    }

    fn limits_of(disk_quantity: u32, categories: &[&str]) -> AttachLimits {
        let categories = categories.iter().map(|name| name.parse().unwrap());
        AttachLimits {
            disk_quantity,
            categories: categories.collect(),
        }
    }

    fn types(rows: &[(&str, AttachLimits)]) -> InstanceTypes {
        let rows = rows.iter().cloned();
        InstanceTypes(rows.map(|(name, limits)| (name.to_owned(), limits)).collect())
    }

    #[test]
    fn new_types_are_added_and_none_is_removed() {
        let there = types(&[
            ("ecs.a", limits_of(9, &["cloud_essd"])),
            ("ecs.b", limits_of(9, &["cloud_essd"])),
        ]);
        let new = types(&[("ecs.b", limits_of(17, &[])), ("ecs.c", limits_of(5, &["cloud_auto"]))]);
        let wanted = types(&[
            ("ecs.a", limits_of(9, &["cloud_essd"])),
            ("ecs.b", limits_of(17, &["cloud_essd"])),
            ("ecs.c", limits_of(5, &["cloud_auto"])),
        ]);
        let merged = Document::default().with(&there).with(&new);
        assert_eq!(*merged.types(), wanted);
        assert_eq!(merged.with(&new), merged);
        assert_eq!(*Document::read(&merged.text()).unwrap().types(), wanted);
    }

    #[test]
    fn entries_of_another_version_are_kept() {
        let text = r#"{"format": 2, "instanceTypes": {
            "ecs.a": {"diskQuantity": 9, "slots": 3, "categories": ["cloud_next", "cloud_essd"]},
            "ecs.b": {"quantity": 4}}}"#;
        let document = Document::read(text).unwrap();
        let new = types(&[("ecs.a", limits_of(17, &["cloud_auto"]))]);
        let written: Value = serde_json::from_str(&document.with(&new).text()).unwrap();
        let wanted: Value = serde_json::from_str(
            r#"{"format": 2, "instanceTypes": {
                "ecs.a": {"diskQuantity": 17, "slots": 3, "categories": ["cloud_auto", "cloud_next"]},
                "ecs.b": {"quantity": 4}}}"#,
        )
        .unwrap();
        assert_eq!(written, wanted);
    }
}

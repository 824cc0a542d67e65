//! What instance types take, as a file tells it: the controller asks the cloud and writes it, nodes
//! read it, which have no credentials.
//!
//! `{"instanceTypes": {"ecs.g6.large": {"diskQuantity": 17, "categories": ["cloud_essd"]}}}`

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::category::Category;

const TYPES: &str = "instanceTypes";
const QUANTITY: &str = "diskQuantity";
const CATEGORIES: &str = "categories";

/// What one type takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Takes {
    /// How many cloud disks, the system disk included (`DiskQuantity`); 1 or more.
    pub disk_quantity: u32,
    /// Disks of which categories; empty where that is not known.
    pub categories: Vec<Category>,
}

/// What each type takes, by its name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstanceTypes(pub BTreeMap<String, Takes>);

/// Why a text is no such file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTypes {
    /// It is no JSON.
    #[error("it is no JSON: {0}")]
    Json(String),
    /// A field is missing, unknown or wrong.
    #[error("{field} {reason}")]
    Field {
        /// Where.
        field: String,
        /// What is wrong, and what is allowed.
        reason: String,
    },
}

type Result<T> = std::result::Result<T, InvalidTypes>;

fn wrong<T>(field: impl Into<String>, reason: impl Into<String>) -> Result<T> {
    Err(InvalidTypes::Field {
        field: field.into(),
        reason: reason.into(),
    })
}

impl InstanceTypes {
    /// Reads the file's text.
    ///
    /// # Errors
    /// On the first field that is missing, unknown or wrong.
    pub fn parse(text: &str) -> Result<Self> {
        let document: Value =
            serde_json::from_str(text).map_err(|error| InvalidTypes::Json(error.to_string()))?;
        let document = object("the document", &document, &[TYPES])?;
        let types = match document.get(TYPES) {
            Some(Value::Object(types)) => types,
            Some(other) => return wrong(TYPES, format!("is {other}; wanted is an object")),
            None => return wrong(TYPES, "is missing"),
        };
        let types = types.iter().map(|(name, value)| {
            let takes = takes(&format!("{TYPES}.{name}"), value)?;
            Ok((name.clone(), takes))
        });
        types.collect::<Result<_>>().map(Self)
    }

    /// The file's text; a type of which no category is known has no such field.
    #[must_use]
    pub fn text(&self) -> String {
        let types = self.0.iter().map(|(name, takes)| {
            let mut fields = Map::new();
            fields.insert(QUANTITY.to_owned(), takes.disk_quantity.into());
            if !takes.categories.is_empty() {
                let names = takes.categories.iter().map(Category::as_str);
                fields.insert(CATEGORIES.to_owned(), names.collect());
            }
            (name.clone(), Value::Object(fields))
        });
        let types: Map<String, Value> = types.collect();
        format!("{:#}\n", json!({ TYPES: types }))
    }
}

fn takes(field: &str, value: &Value) -> Result<Takes> {
    let fields = object(field, value, &[QUANTITY, CATEGORIES])?;
    let quantity = format!("{field}.{QUANTITY}");
    let disk_quantity = match fields.get(QUANTITY) {
        None => return wrong(quantity, "is missing"),
        Some(given) => match given.as_u64().and_then(|number| u32::try_from(number).ok()) {
            Some(number) if number > 0 => number,
            _ => {
                let reason = format!("is {given}; allowed is a whole number, 1 or more");
                return wrong(quantity, reason);
            }
        },
    };
    let field = format!("{field}.{CATEGORIES}");
    let categories = match fields.get(CATEGORIES) {
        None => Vec::new(),
        Some(Value::Array(names)) => names
            .iter()
            .map(|name| category(&field, name))
            .collect::<Result<_>>()?,
        Some(other) => return wrong(field, format!("is {other}; wanted is a list")),
    };
    Ok(Takes {
        disk_quantity,
        categories,
    })
}

fn category(field: &str, name: &Value) -> Result<Category> {
    let mut known = Category::KNOWN.into_iter();
    match known.find(|category| name.as_str() == Some(category.as_str())) {
        Some(category) => Ok(category),
        None => {
            let names: Vec<_> = Category::KNOWN.iter().map(Category::as_str).collect();
            let allowed = names.join(", ");
            wrong(field, format!("holds {name}; allowed are {allowed}"))
        }
    }
}

fn object<'a>(field: &str, value: &'a Value, known: &[&str]) -> Result<&'a Map<String, Value>> {
    let Value::Object(fields) = value else {
        return wrong(field, format!("is {value}; wanted is an object"));
    };
    match fields.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(fields),
        Some(key) => {
            let known = known.join(", ");
            wrong(field, format!("has a field {key:?}; known are {known}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut types = InstanceTypes::default();
        for (name, categories) in [
            ("ecs.g6.large", Vec::new()),
            ("ecs.g7.large", Category::KNOWN.to_vec()),
        ] {
            let takes = Takes {
                disk_quantity: 17,
                categories,
            };
            types.0.insert(name.to_owned(), takes);
        }
        assert_eq!(InstanceTypes::parse(&types.text()), Ok(types));
    }

    #[test]
    fn every_mistake_names_its_field() {
        for (text, told) in [
            ("{", "it is no JSON: "),
            ("[]", "the document is []; wanted is an object"),
            ("{}", "instanceTypes is missing"),
            (
                r#"{"instanceTypes": {}, "x": 1}"#,
                "the document has a field \"x\"; known are instanceTypes",
            ),
            (
                r#"{"instanceTypes": {"a": {}}}"#,
                "instanceTypes.a.diskQuantity is missing",
            ),
            (
                r#"{"instanceTypes": {"a": {"diskQuantity": 0}}}"#,
                "instanceTypes.a.diskQuantity is 0; allowed is a whole number, 1 or more",
            ),
            (
                r#"{"instanceTypes": {"a": {"diskQuantity": 2, "categories": ["essd"]}}}"#,
                "instanceTypes.a.categories holds \"essd\"; allowed are ",
            ),
            (
                r#"{"instanceTypes": {"a": {"diskQuantity": 2, "slots": 2}}}"#,
                "instanceTypes.a has a field \"slots\"; known are diskQuantity, categories",
            ),
        ] {
            let refused = InstanceTypes::parse(text).unwrap_err().to_string();
            assert!(refused.starts_with(told), "{refused}");
        }
    }
}

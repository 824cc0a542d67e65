//! Removes secrets from what goes into an archive: known values, values of fields with certain names, and values that are
//! recognized by their form. In doubt, a value is removed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

mod extent;
mod field;
mod form;
mod line;
mod name;

#[cfg(test)]
mod tests;

pub use self::name::is_sensitive;

/// Replacement for a secret.
const MASK: &str = "[redacted]";

/// Shorter values are words or numbers that occur anywhere.
const MIN_LITERAL: usize = 4;

#[derive(Debug, Default)]
pub struct Redactor {
    /// Values to remove wherever they occur, the longest first.
    literals: Vec<SecretString>,
}

impl Redactor {
    /// Removes this value wherever it occurs, also in its usual encodings.
    pub fn hide(&mut self, value: &str) {
        let value = value.trim();
        if value.len() < MIN_LITERAL || field::is_harmless(value) {
            return;
        }
        let json = Value::from(value).to_string();
        let forms = [
            value.to_owned(),
            json.trim_matches('"').to_owned(),
            utf8_percent_encode(value, NON_ALPHANUMERIC).to_string(),
            STANDARD.encode(value),
        ];
        self.literals.extend(forms.map(SecretString::from));
        let length = |literal: &SecretString| literal.expose_secret().len();
        self.literals
            .sort_by_key(|literal| std::cmp::Reverse(length(literal)));
    }

    /// Removes the values of the fields of this document that are named like secrets, also of pairs of a name and a value,
    /// and of flags in lists of arguments.
    pub fn hide_fields(&mut self, document: &Value) {
        match document {
            Value::Object(fields) => {
                let is_pair = is_pair(fields);
                for (name, value) in fields {
                    let is_secret = is_sensitive(name) || (is_pair && name == "value");
                    match value {
                        Value::String(text) if is_secret => self.hide(text),
                        value => self.hide_fields(value),
                    }
                }
            }
            Value::Array(items) => {
                let mut flag = None;
                for item in items {
                    let text = item.as_str().unwrap_or_default();
                    for value in field::find(text) {
                        self.hide(&text[value]);
                    }
                    if flag.is_some_and(is_sensitive) && !text.starts_with("--") {
                        self.hide(text);
                    }
                    flag = Some(text).filter(|text| text.starts_with('-') && !text.contains('='));
                    self.hide_fields(item);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// The text without secrets.
    #[must_use]
    pub fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for literal in &self.literals {
            if text.contains(literal.expose_secret()) {
                text = text.replace(literal.expose_secret(), MASK);
            }
        }
        form::redact(&field::redact(&text))
    }

    /// As [`Self::text`]; a JSON document stays one.
    #[must_use]
    pub fn document(&self, text: &str) -> String {
        let is_document = text.trim_start().starts_with(['{', '[']);
        let parsed = is_document.then(|| serde_json::from_str::<Value>(text));
        match parsed {
            Some(Ok(mut value)) => {
                self.value(&mut value, false);
                self.text(&format!("{value:#}"))
            }
            Some(Err(_)) | None => self.text(text),
        }
    }

    fn value(&self, value: &mut Value, is_secret: bool) {
        match value {
            Value::Object(fields) => {
                let is_pair = is_pair(fields);
                for (name, value) in fields {
                    let is_value = is_pair && name == "value";
                    self.value(value, is_secret || is_value || is_sensitive(name));
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.value(item, is_secret);
                }
            }
            Value::String(text) if is_secret && !field::is_harmless(text) => MASK.clone_into(text),
            Value::String(text) => *text = self.text(text),
            Value::Number(_) if is_secret => *value = Value::from(MASK),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Whether this is a pair of the name of a secret and its value, such as an environment variable.
fn is_pair(fields: &Map<String, Value>) -> bool {
    let pair = ["name", "key"].iter().filter_map(|name| fields.get(*name));
    pair.filter_map(Value::as_str).any(is_sensitive)
}

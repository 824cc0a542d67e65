//! All problems of a map of parameters. The parser of the driver stops at the first one, so it parses again without the
//! parameter that it rejected.

use std::collections::HashMap;

use super::manifest::Class;
use super::report::Explained;
use crate::csi::request::error::Error;

pub(super) type Map = HashMap<String, String>;

/// The field of the zones of a class.
pub(super) const ZONE_ID: &str = "parameters.zoneId";

/// The parameters as strings. Kubernetes rejects other values.
pub(super) fn strings(class: &Class, to: &mut Explained) -> Map {
    let mut map = Map::new();
    for (key, value) in class.parameters.iter().flatten() {
        match value.as_str().or(value.is_null().then_some("")) {
            Some(text) => drop(map.insert(key.clone(), text.to_owned())),
            None => {
                let text = format!("parameter {key:?} has value {value}, which is not a string: quote the value");
                to.reject(format!("parameters.{key}"), &text);
            }
        }
    }
    map
}

/// Parses the parameters until they are accepted or the error names none of them. Rejected ones are removed and
/// reported.
pub(super) fn parse_all<T>(map: &mut Map, to: &mut Explained, parse: impl Fn(&Map) -> Result<T, Error>) -> Option<T> {
    loop {
        let error = match parse(map) {
            Ok(parsed) => return Some(parsed),
            Err(error) => error,
        };
        let keys = concerned(map, &error);
        let field = match &*keys {
            [] => field(&error, ZONE_ID).to_owned(),
            [key, ..] => format!("parameters.{key}"),
        };
        to.reject(field, &error);
        if keys.is_empty() {
            return None;
        }
        map.retain(|key, _| !keys.contains(key));
    }
}

/// The field of the class or of its claim that sets the field of the request. `zones` is the one that restricts the
/// zones.
pub(super) fn field(error: &Error, zones: &'static str) -> &'static str {
    let text = error.to_string();
    let fields = [
        ("accessibility_requirements", zones),
        ("capacity_range", "spec.resources"),
        ("volume_capabilities", "spec.accessModes"),
    ];
    let known = fields.iter().find(|(of, _)| text.starts_with(of));
    known.map_or("parameters", |(_, field)| field)
}

/// The parameters that the error names: one key, or all tags.
fn concerned(map: &Map, error: &Error) -> Vec<String> {
    let text = error.to_string();
    let quoted = text.split_once("parameter \"").map(|(_, rest)| rest);
    let Some((name, _)) = quoted.and_then(|rest| rest.split_once('"')) else {
        return Vec::new();
    };
    if map.contains_key(name) {
        return vec![name.to_owned()];
    }
    // Too many tags: no single one is the cause.
    let (name, is_of_all) = match name.strip_suffix("/<key>") {
        Some(tags) => (tags, true),
        None => (name, false),
    };
    let name = name.to_ascii_lowercase();
    let keys = map.keys().filter(|key| {
        let key = key.to_ascii_lowercase();
        key == name || is_of_all && key.starts_with(&name)
    });
    let mut keys: Vec<_> = keys.cloned().collect();
    keys.sort();
    keys
}

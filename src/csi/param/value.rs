//! Keys and values of parameters: one syntax for each type, wherever it is written.

use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;

use super::{Map, Result, SIDECARS};
use crate::csi::request::error::Error;
use crate::model::category::MOST_PROVISIONED_IOPS;
use crate::model::{Tags, tag};

/// A parameter that is given once.
pub(super) struct Entry<'a> {
    /// The key, in lower case.
    pub(super) name: String,
    /// The key as it is written.
    pub(super) key: &'a str,
    /// For errors: `parameter "type"`.
    pub(super) field: String,
    pub(super) value: &'a str,
}

impl Entry<'_> {
    pub(super) fn unknown(self, allowed: &'static str) -> Error {
        Error::UnknownKey(self.field.into(), self.value.to_owned(), allowed)
    }
}

/// The parameters, without those of the sidecars; and the tags, whose keys follow `tags`, in lower case.
pub(super) fn entries<'a>(
    what: &str,
    parameters: &'a Map,
    tags: &str,
) -> Result<(Vec<Entry<'a>>, Tags)> {
    let mut entries = Vec::new();
    let mut found = Tags::new();
    let mut seen = HashMap::new();
    // In order, so that a repeated request is refused for the same one.
    for (key, value) in parameters.iter().collect::<BTreeMap<_, _>>() {
        let name = key.to_ascii_lowercase();
        let (field, value) = (format!("{what} {key:?}"), value.trim());
        if name.starts_with(SIDECARS) {
            continue;
        }
        if name.starts_with(tags) {
            tag(&field, &key[tags.len()..], value, &mut found)?;
            continue;
        }
        if let Some(other) = seen.insert(name.clone(), key) {
            let why = format!("and {other:?} are the same; give one");
            return Err(Error::unsupported(field, why));
        }
        entries.push(Entry {
            name,
            key,
            field,
            value,
        });
    }
    Ok((entries, found))
}

pub(super) fn boolean(field: &str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" | "1" | "enabled" => Ok(true),
        "false" | "no" | "0" | "disabled" => Ok(false),
        _ => Err(refuse(field, value, "\"true\" or \"false\"")),
    }
}

pub(super) fn parse<T: FromStr>(field: &str, value: &str, allowed: &str) -> Result<T> {
    value.parse().map_err(|_| refuse(field, value, allowed))
}

/// Values of a type, separated by commas, in their order; each once.
pub(super) fn list<T: FromStr + PartialEq>(
    field: &str,
    value: &str,
    allowed: &str,
) -> Result<Vec<T>> {
    let mut items = Vec::new();
    for item in value.split(',') {
        let item = item.trim().parse();
        let item = item.map_err(|_| refuse(field, value, allowed))?;
        if !items.contains(&item) {
            items.push(item);
        }
    }
    Ok(items)
}

/// A number of IOPS from 0 to the most that any disk can have.
pub(super) fn iops(field: &str, value: &str) -> Result<u32> {
    number(field, value, "IOPS", 0, MOST_PROVISIONED_IOPS)
}

pub(super) fn number(field: &str, value: &str, of: &str, least: u32, most: u32) -> Result<u32> {
    let number = value.parse().ok();
    number
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| {
            let allowed = format!("a whole number of {of} from {least} to {most}");
            refuse(field, value, &allowed)
        })
}

/// One tag of the user's, which must be one that the cloud takes and none of the driver's own.
fn tag(field: &str, name: &str, value: &str, tags: &mut Tags) -> Result<()> {
    let field = || field.to_owned();
    tag::check(name, value).map_err(|refused| Error::malformed(field(), &refused))?;
    // The cloud compares keys without case (`TagKey.Duplication`).
    if tags.keys().any(|other| other.eq_ignore_ascii_case(name)) {
        let why = format!("tag {name:?} is given twice; the cloud compares keys without case");
        return Err(Error::malformed(field(), &why));
    }
    tags.insert(name.to_owned(), value.to_owned());
    Ok(())
}

/// One word without spaces, such as the id of a resource group or a key; none when empty.
pub(super) fn word(field: &str, value: &str) -> Result<Option<String>> {
    let fits = |c: char| c.is_ascii_graphic() && c != ',';
    if value.len() > 128 || !value.chars().all(fits) {
        return Err(refuse(field, value, "one id without spaces"));
    }
    Ok(Some(value.to_owned()).filter(|value| !value.is_empty()))
}

/// Tags, `key:value` by commas. The value goes on to the next comma and may have colons.
pub(super) fn tags(field: &str, value: &str) -> Result<Tags> {
    let mut tags = Tags::new();
    for pair in value.split(',').filter(|pair| !pair.trim().is_empty()) {
        let (name, of) = pair
            .split_once(':')
            .ok_or_else(|| refuse(field, value, "key:value pairs, separated by commas"))?;
        tag(field, name.trim(), of.trim(), &mut tags)?;
    }
    Ok(tags)
}

pub(super) fn refuse(field: &str, value: &str, allowed: &str) -> Error {
    Error::value(field.to_owned(), value, allowed)
}

/// The parameter is refused because of another one.
pub(super) fn unfit(key: &str, why: &str) -> Error {
    Error::unsupported(format!("parameter {key:?}"), why)
}

use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;

use crate::csi::request::error::Error;
use crate::model::category::MOST_PROVISIONED_IOPS;
use crate::model::{Category, Tags, context, tag};

/// Prefix of parameters that the sidecars add. All are accepted, and some become tags.
pub(in crate::csi) const SIDECARS: &str = "csi.storage.k8s.io/";

pub(super) type Result<T, E = Error> = std::result::Result<T, E>;
pub(super) type Map = HashMap<String, String>;

pub(super) struct Entry<'a> {
    pub(super) name: String,
    pub(super) key: &'a str,
    /// For errors, such as `parameter "type"`.
    pub(super) field: String,
    pub(super) value: &'a str,
}

/// The parameters without those of the sidecars, and the tags, whose keys follow the prefix `tags` in lower case.
pub(super) fn entries<'a>(entry: &str, parameters: &'a Map, tags: &str) -> Result<(Vec<Entry<'a>>, Tags)> {
    let mut entries = Vec::new();
    let mut found = Tags::new();
    let mut seen = HashMap::new();
    // Sorted, so that repeated requests get the same error.
    for (key, value) in parameters.iter().collect::<BTreeMap<_, _>>() {
        let name = key.to_ascii_lowercase();
        let (field, value) = (format!("{entry} {key:?}"), value.trim());
        if name.starts_with(SIDECARS) {
            continue;
        }
        if name.starts_with(tags) {
            tag(&field, &key[tags.len()..], value, &mut found)?;
            continue;
        }
        if let Some(other) = seen.insert(name.clone(), key) {
            let why = format!("and {other:?} are the same; set only one");
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
    context::boolean(value).ok_or_else(|| Error::value(field, value, "\"true\" or \"false\""))
}

pub(super) fn parse<T: FromStr>(field: &str, value: &str, allowed: &str) -> Result<T> {
    value.parse().map_err(|_| Error::value(field, value, allowed))
}

/// Comma-separated values, in order, without duplicates.
pub(super) fn list<T: FromStr + PartialEq>(field: &str, value: &str, allowed: &str) -> Result<Vec<T>> {
    let mut items = Vec::new();
    for item in value.split(',') {
        let item = item.trim().parse();
        let item = item.map_err(|_| Error::value(field, value, allowed))?;
        if !items.contains(&item) {
            items.push(item);
        }
    }
    Ok(items)
}

pub(super) fn iops(field: &str, value: &str) -> Result<u32> {
    number(field, value, "IOPS", 0, MOST_PROVISIONED_IOPS)
}

pub(super) fn number(field: &str, value: &str, unit: &str, min: u32, max: u32) -> Result<u32> {
    let number = value.parse().ok();
    number
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| Error::value(field, value, format!("a whole number of {unit} from {min} to {max}")))
}

/// Adds a user tag, which must be valid in the cloud and must not be a tag of the driver.
fn tag(field: &str, name: &str, value: &str, tags: &mut Tags) -> Result<()> {
    let field = || field.to_owned();
    tag::check(name, value).map_err(|invalid| Error::malformed(field(), &invalid))?;
    // Tag keys are case-insensitive in the cloud (`TagKey.Duplication`).
    if tags.keys().any(|other| other.eq_ignore_ascii_case(name)) {
        let why = format!("tag {name:?} is set twice; tag keys are case-insensitive");
        return Err(Error::malformed(field(), &why));
    }
    tags.insert(name.to_owned(), value.to_owned());
    Ok(())
}

/// An ID, such as that of a resource group or a KMS key; `None` if empty.
pub(super) fn identifier(field: &str, value: &str) -> Result<Option<String>> {
    let fits = |c: char| c.is_ascii_graphic() && c != ',';
    if value.len() > 128 || !value.chars().all(fits) {
        return Err(Error::value(field, value, "an ID without spaces"));
    }
    Ok(Some(value.to_owned()).filter(|value| !value.is_empty()))
}

/// Comma-separated `key:value` pairs. Values may contain colons.
pub(super) fn tags(field: &str, value: &str) -> Result<Tags> {
    let mut tags = Tags::new();
    for pair in value.split(',').filter(|pair| !pair.trim().is_empty()) {
        let (name, tag_value) = pair
            .split_once(':')
            .ok_or_else(|| Error::value(field, value, "comma-separated key:value pairs"))?;
        tag(field, name.trim(), tag_value.trim(), &mut tags)?;
    }
    Ok(tags)
}

pub(super) fn conflict(key: &str, why: &str) -> Error {
    Error::unsupported(format!("parameter {key:?}"), why)
}

/// Parses `type`: `available`, or categories in order of preference.
pub(super) fn categories(field: &str, value: &str) -> Result<Vec<Category>> {
    if value.eq_ignore_ascii_case("available") {
        return Ok(Category::CREATABLE.to_vec());
    }
    let categories: Vec<Category> = list(field, &value.to_ascii_lowercase(), "")?;
    for category in &categories {
        if !Category::KNOWN.contains(category) {
            let allowed = format!(
                "available, or a comma-separated list of {}{}",
                names(Category::KNOWN),
                unsupported_reason(category)
            );
            return Err(Error::value(field, value, allowed));
        }
    }
    Ok(categories)
}

fn unsupported_reason(category: &Category) -> String {
    let name = category.as_str();
    if !name.starts_with("local_") && !name.starts_with("ephemeral") {
        return String::new();
    }
    format!("; {name} is local to its instance and cannot be attached to another")
}

pub(super) fn check_categories(
    entry: &str,
    categories: &[Category],
    levels: bool,
    iops: bool,
    bursting: bool,
) -> Result<()> {
    let check = |given: bool, key: &str, supports: fn(&Category) -> bool, category: &str| {
        if !given || categories.iter().any(supports) {
            return Ok(());
        }
        let why = format!("requires {category}, but \"type\" is {}", names(categories));
        Err(Error::unsupported(format!("{entry} {key:?}"), why))
    };
    check(levels, "performanceLevel", Category::has_levels, "cloud_essd")?;
    check(iops, "provisionedIops", Category::has_burst, "cloud_auto")?;
    check(bursting, "burstingEnabled", Category::has_burst, "cloud_auto")
}

pub(super) fn names(categories: &[Category]) -> String {
    let names: Vec<_> = categories.iter().map(Category::as_str).collect();
    names.join(", ")
}

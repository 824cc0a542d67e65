//! `type` and the parameters that depend on it.

use super::value::{Result, invalid_value, list};

use crate::csi::request::error::Error;
use crate::model::Category;

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
                names(&Category::KNOWN),
                unsupported_reason(category)
            );
            return Err(invalid_value(field, value, &allowed));
        }
    }
    Ok(categories)
}

/// Why a category of the cloud is not available for volumes.
fn unsupported_reason(category: &Category) -> String {
    let name = category.as_str();
    if !name.starts_with("local_") && !name.starts_with("ephemeral") {
        return String::new();
    }
    format!("; {name} is local to its instance and cannot be attached to another")
}

/// Checks that every parameter is supported by one of the categories.
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

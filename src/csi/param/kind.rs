//! `type`, and the parameters that only some categories have.

use super::value::{list, refuse, unfit};
use super::{Class, Result};
use crate::csi::request::error::Error;
use crate::model::Category;

/// Reads `type`: `available`, or categories in order of preference.
pub(super) fn categories(field: &str, value: &str) -> Result<Vec<Category>> {
    if value.eq_ignore_ascii_case("available") {
        return Ok(Category::CREATABLE.to_vec());
    }
    let categories: Vec<Category> = list(field, &value.to_ascii_lowercase(), "")?;
    for category in &categories {
        if !Category::KNOWN.contains(category) {
            let allowed = format!(
                "available, or one or more, by commas, of {}{}",
                names(&Category::KNOWN),
                why_not(category)
            );
            return Err(refuse(field, value, &allowed));
        }
    }
    Ok(categories)
}

/// Why a category that the cloud has is none for volumes.
fn why_not(category: &Category) -> String {
    let name = category.as_str();
    if !name.starts_with("local_") && !name.starts_with("ephemeral") {
        return String::new();
    }
    format!("; {name} is part of one machine, and is never attached to another")
}

/// Whether each parameter that only some categories have finds one that has it.
pub(super) fn agree(
    what: &str,
    categories: &[Category],
    levels: bool,
    iops: bool,
    bursting: bool,
) -> Result<()> {
    let check = |given: bool, key: &str, has: fn(&Category) -> bool, of: &str| {
        if !given || categories.iter().any(has) {
            return Ok(());
        }
        let why = format!("is of {of} only, and \"type\" is {}", names(categories));
        Err(Error::unsupported(format!("{what} {key:?}"), why))
    };
    check(
        levels,
        "performanceLevel",
        Category::has_levels,
        "cloud_essd",
    )?;
    check(iops, "provisionedIops", Category::has_burst, "cloud_auto")?;
    check(
        bursting,
        "burstingEnabled",
        Category::has_burst,
        "cloud_auto",
    )
}

pub(super) fn names(categories: &[Category]) -> String {
    let names: Vec<_> = categories.iter().map(Category::as_str).collect();
    names.join(", ")
}

impl Class {
    /// Whether the parameters are compatible with each other. Where a category was not named, those that cannot be
    /// shared between nodes are left out instead.
    pub(super) fn kinds_agree(&mut self, named: bool) -> Result<()> {
        let levels = !self.levels.is_empty();
        let iops = self.provisioned_iops > 0;
        agree("parameter", &self.categories, levels, iops, self.bursting)?;
        if !self.zones.is_empty() && self.categories.iter().all(Category::is_regional) {
            let names = names(&self.categories);
            let why = format!("is of no use: \"type\" is {names}, which is bound to no zone");
            return Err(unfit("zoneId", &why));
        }
        if self.kms_key.is_some() && !self.encrypted {
            return Err(unfit("kmsKeyId", "needs \"encrypted\": \"true\""));
        }
        if self.multi_attach {
            self.share(named)?;
        }
        Ok(())
    }

    fn share(&mut self, named: bool) -> Result<()> {
        if self.bursting {
            return Err(unfit(
                "burstingEnabled",
                "and \"multiAttach\" exclude each other: a shared disk cannot burst",
            ));
        }
        // `available` is spelled out by the categories themselves.
        if self.categories == Category::CREATABLE || !named {
            self.categories.retain(Category::is_shareable);
        }
        match self.categories.iter().find(|one| !one.is_shareable()) {
            None => Ok(()),
            Some(category) => Err(unfit(
                "multiAttach",
                &format!(
                    "is of cloud_essd and cloud_auto only, and \"type\" has {category}; leave it out"
                ),
            )),
        }
    }
}

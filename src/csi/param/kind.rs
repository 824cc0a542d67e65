//! `type`, and the parameters that only some categories have.

use tonic::Status;

use super::value::{list, unfit};
use super::{Class, refuse};
use crate::model::Category;

/// Reads `type`: `available`, or categories in order of preference.
pub(super) fn categories(key: &str, value: &str) -> Result<Vec<Category>, Status> {
    if value.eq_ignore_ascii_case("available") {
        return Ok(Category::CREATABLE.to_vec());
    }
    let categories: Vec<Category> = list(key, &value.to_ascii_lowercase(), "")?;
    for category in &categories {
        if !Category::KNOWN.contains(category) {
            let names: Vec<_> = Category::KNOWN.iter().map(Category::as_str).collect();
            let allowed = format!(
                "available, or one or more, by commas, of {}{}",
                names.join(", "),
                why_not(category)
            );
            return Err(refuse(key, value, &allowed));
        }
    }
    Ok(categories)
}

/// Why a category that the cloud has is none for volumes.
fn why_not(category: &Category) -> String {
    let name = category.as_str();
    let why = if name.starts_with("local_") || name.starts_with("ephemeral") {
        "is part of one machine, and is never attached to another"
    } else {
        return String::new();
    };
    format!("; {name} {why}")
}

impl Class {
    /// Whether each parameter that only some categories have finds one in `type`. Where a category
    /// was not named, those that cannot be shared between nodes are left out instead.
    pub(super) fn kinds_agree(&mut self, named: bool) -> Result<(), Status> {
        let any = |has: fn(&Category) -> bool| self.categories.iter().any(has);
        let names: Vec<_> = self.categories.iter().map(Category::as_str).collect();
        let names = names.join(", ");
        let of = |which| format!("is of {which} only, and \"type\" is {names}");
        if !self.levels.is_empty() && !any(Category::has_levels) {
            return Err(unfit("performanceLevel", &of("cloud_essd")));
        }
        if self.provisioned_iops > 0 && !any(Category::has_burst) {
            return Err(unfit("provisionedIops", &of("cloud_auto")));
        }
        if self.bursting && !any(Category::has_burst) {
            return Err(unfit("burstingEnabled", &of("cloud_auto")));
        }
        if !self.zones.is_empty() && self.categories.iter().all(Category::is_regional) {
            return Err(unfit(
                "zoneId",
                &format!("is of no use: \"type\" is {names}, which is bound to no zone"),
            ));
        }
        if self.kms_key.is_some() && !self.encrypted {
            return Err(unfit("kmsKeyId", "needs \"encrypted\": \"true\""));
        }
        if self.multi_attach {
            self.share(named)?;
        }
        Ok(())
    }

    fn share(&mut self, named: bool) -> Result<(), Status> {
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
        let alone: Vec<_> = self
            .categories
            .iter()
            .filter(|c| !c.is_shareable())
            .collect();
        match alone.first() {
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

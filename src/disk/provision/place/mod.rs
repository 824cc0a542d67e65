//! Which category at which level in which zone to try, in what order, at what size.

use std::fmt;

use crate::disk::error::Error;
use crate::disk::{NewDisk, Result};
use crate::model::{Category, Gib, PerformanceLevel, ZoneId};

mod order;
mod refusal;
mod stock;
mod stockouts;

pub(super) use order::StockView;

/// One pair of zone and category (with its level) that may hold the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// None for a regional category.
    pub(super) zone: Option<ZoneId>,
    pub(super) category: Category,
    /// None is the cloud's default, where there are levels at all.
    pub(super) level: Option<PerformanceLevel>,
    pub(super) size: Gib,
}

/// Such as `cloud_essd PL2 in cn-beijing-a`.
impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.category)?;
        if let Some(level) = self.level {
            write!(f, " {level}")?;
        }
        match &self.zone {
            Some(zone) => write!(f, " in {zone}"),
            None => f.write_str(" in the region"),
        }
    }
}

/// What can be tried, and what cannot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Choice {
    /// The pairs to try, in order; not empty.
    pub(super) pairs: Vec<Candidate>,
    pub(super) left_out: Vec<String>,
}

/// The pairs to try: the first place with each category in order (and each of its levels), then the
/// next place, each at the smallest size that is stockouts and that the request admits.
///
/// # Errors
/// [`Error::OutOfRange`] when no category has the size; [`Error::OutOfStock`] when those that have it
/// are taken by no node that the volume may be used on.
pub fn choose(new: &NewDisk) -> Result<Choice> {
    let mut choice = Choice::default();
    let mut sized = Vec::new();
    for category in &new.categories {
        match fits(new, category) {
            Ok(fitting) => sized.push((category, fitting)),
            Err(reason) => choice.left_out.push(format!("{category}: {reason}")),
        }
    }
    if sized.is_empty() {
        return Err(Error::OutOfRange {
            name: new.name.clone(),
            reasons: choice.left_out.join("; "),
        });
    }
    let mut pairs: Vec<Candidate> = Vec::new();
    let mut add = |zone: Option<&ZoneId>, category: &Category, fitting: &[Fit]| {
        for (level, size) in fitting {
            let pair = Candidate {
                zone: zone.cloned(),
                category: category.clone(),
                level: *level,
                size: *size,
            };
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
    };
    for place in &new.places {
        for (category, fitting) in &sized {
            let is_regional = category.is_regional();
            if place.admits(category) {
                let zone = Some(&place.zone).filter(|_| !is_regional);
                add(zone, category, fitting);
            } else {
                let reason = format!("{category}: not taken by the nodes of {place}");
                choice.left_out.push(reason);
            }
        }
    }
    if new.places.is_empty() {
        let regional = sized.iter().filter(|(category, _)| category.is_regional());
        regional.for_each(|(category, fitting)| add(None, category, fitting));
    }
    choice.pairs = pairs;
    if choice.pairs.is_empty() {
        return Err(Error::OutOfStock {
            name: new.name.clone(),
            reasons: choice.left_out.join("; "),
        });
    }
    Ok(choice)
}

/// A level and a size in which a category can serve a request.
type Fit = (Option<PerformanceLevel>, Gib);

/// How this category can serve the request, or why it cannot.
fn fits(new: &NewDisk, category: &Category) -> std::result::Result<Vec<Fit>, String> {
    let sizes = category.sizes().ok_or("not created by this driver")?;
    if new.multi_attach && !category.is_shareable() {
        return Err("cannot be attached to several nodes".to_owned());
    }
    if category.is_ephemeral() && (new.snapshot.is_some() || new.clone_of.is_some()) {
        return Err("is not created from snapshots or volumes".to_owned());
    }
    if category.has_levels() && !new.levels.is_empty() {
        return levels(new);
    }
    let size = new
        .size
        .resolve(sizes)
        .map_err(|refused| refused.to_string())?;
    if category.has_burst() {
        let most = category.most_provisioned_iops(size);
        if new.provisioned_iops > most {
            return Err(format!(
                "a disk of {size} supports 0 to {most} provisionedIops, requested: {}",
                new.provisioned_iops
            ));
        }
        if new.bursting && !category.may_burst(size) {
            return Err(format!(
                "a disk of {size} cannot burst, only larger ones than 3 GiB"
            ));
        }
    }
    Ok(vec![(None, size)])
}

/// The wanted levels that sell the size as it is; with none, those that sell a larger one that the request admits, the
/// least enlargement first. A level is never the reason to buy more as long as another one will do.
fn levels(new: &NewDisk) -> std::result::Result<Vec<Fit>, String> {
    let mut refusals = Vec::new();
    let mut fitting = Vec::new();
    for level in &new.levels {
        match new.size.resolve(level.sizes()) {
            Ok(size) => fitting.push((Some(*level), size)),
            Err(refused) => refusals.push(format!("{level}: {refused}")),
        }
    }
    let Some(least) = fitting.iter().map(|(_, size)| *size).min() else {
        return Err(refusals.join(", "));
    };
    let wanted = new.size.required.unwrap_or_default().gib_ceil();
    if wanted.is_some_and(|wanted| least <= wanted.max(Gib(1))) {
        fitting.retain(|(_, size)| *size == least);
    } else {
        fitting.sort_by_key(|(_, size)| *size);
    }
    Ok(fitting)
}

#[cfg(test)]
mod tests;

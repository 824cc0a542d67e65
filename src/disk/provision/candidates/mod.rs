//! Selects the candidates for a new disk: zone, category, performance level and size, in the order of attempts.

use crate::disk::error::Error;
use crate::disk::{NewDisk, Result};
use crate::model::{Category, Gib, PerformanceLevel, ZoneId};

mod attempt_order;
mod stock;
mod stockouts;

pub use super::new_disk::Candidate;
pub(super) use attempt_order::StockView;
pub use attempt_order::{RegionStock, attempts_with_stock};

/// The candidates of a request, and why other combinations are excluded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// In the order of attempts; not empty.
    pub candidates: Vec<Candidate>,
    pub excluded: Vec<String>,
}

/// Selects the candidates: the first zone with each category (and each of its levels) in order of preference, then the
/// next zone. Each has the smallest size that the category and the request allow.
///
/// # Errors
/// [`Error::OutOfRange`] if no category supports the size; [`Error::OutOfStock`] if no node in the allowed zones
/// supports those that do.
pub fn select_candidates(new: &NewDisk) -> Result<Selection> {
    let mut selection = Selection::default();
    let mut sized = Vec::new();
    for category in &new.categories {
        match fits(new, category) {
            Ok(fitting) => sized.push((category, fitting)),
            Err(reason) => selection.excluded.push(format!("{category}: {reason}")),
        }
    }
    if sized.is_empty() {
        return Err(Error::OutOfRange {
            name: new.name.clone(),
            reasons: selection.excluded.join("; "),
        });
    }
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut add = |zone: Option<&ZoneId>, category: &Category, fitting: &[Fit]| {
        for (level, size) in fitting {
            let candidate = Candidate {
                zone: zone.cloned(),
                category: category.clone(),
                level: *level,
                size: *size,
            };
            if !candidates.contains(&candidate) {
                candidates.push(candidate);
            }
        }
    };
    for allowed in &new.zones {
        for (category, fitting) in &sized {
            let is_regional = category.is_regional();
            if allowed.supports(category) {
                let zone = Some(&allowed.zone).filter(|_| !is_regional);
                add(zone, category, fitting);
            } else {
                let reason = format!("{category}: not supported by the nodes of {allowed}");
                selection.excluded.push(reason);
            }
        }
    }
    if new.zones.is_empty() {
        let regional = sized.iter().filter(|(category, _)| category.is_regional());
        regional.for_each(|(category, fitting)| add(None, category, fitting));
    }
    selection.candidates = candidates;
    if selection.candidates.is_empty() {
        return Err(Error::OutOfStock {
            name: new.name.clone(),
            reasons: selection.excluded.join("; "),
        });
    }
    Ok(selection)
}

type Fit = (Option<PerformanceLevel>, Gib);

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
    let size = new.size.resolve(sizes)?;
    if category.has_burst() {
        let most = category.most_provisioned_iops(size);
        if new.provisioned_iops > most {
            return Err(format!(
                "a disk of {size} supports 0 to {most} provisionedIops, requested: {}",
                new.provisioned_iops
            ));
        }
        if new.bursting && !category.may_burst(size) {
            return Err(format!("a disk of {size} cannot burst, only larger ones than 3 GiB"));
        }
    }
    Ok(vec![(None, size)])
}

/// The requested levels that support the requested size; otherwise those that support a larger size within the limit,
/// smallest first. So a disk is not larger than requested because of its level if another level is allowed.
fn levels(new: &NewDisk) -> std::result::Result<Vec<Fit>, String> {
    let mut rejections = Vec::new();
    let mut fitting = Vec::new();
    for level in &new.levels {
        match new.size.resolve(level.sizes()) {
            Ok(size) => fitting.push((Some(*level), size)),
            Err(rejected) => rejections.push(format!("{level}: {rejected}")),
        }
    }
    let Some(least) = fitting.iter().map(|(_, size)| *size).min() else {
        return Err(rejections.join(", "));
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

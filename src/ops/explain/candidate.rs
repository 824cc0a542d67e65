//! The disks that CreateVolume tries to create, in order.

use std::collections::BTreeSet;

use super::manifest::TopologyTerm;
use super::report::{Candidate, Explained};
use super::request;
use super::settings::ExplainSettings;
use crate::disk::{NewDisk, candidates};
use crate::model::{Performance, PerformanceLevel, ZoneId, topology};

/// The field of problems that depend on the size.
pub(super) const SIZE: &str = "size";

/// Adds the candidates of the disk, or the reason why it has none.
pub(super) fn add(new: &NewDisk, settings: &ExplainSettings, to: &mut Explained) {
    let selection = match candidates::select_candidates(new) {
        Ok(selection) => selection,
        Err(error) => return to.reject(SIZE, &error),
    };
    to.excluded.clone_from(&selection.excluded);
    let attempts = candidates::attempts_with_stock(&selection, &settings.stock);
    let candidates = attempts.into_iter().map(|(candidate, in_stock)| {
        let (category, level, size) = (candidate.category, candidate.level, candidate.size);
        let sizes = category.sizes_at(level).unwrap_or(size..=size);
        let has_burst = category.has_burst();
        let iops = if has_burst { new.provisioned_iops } else { 0 };
        Candidate {
            zone: candidate.zone.filter(|zone| zone.as_str() != request::SELECTED_NODE),
            level: level.or(category.has_levels().then_some(PerformanceLevel::Pl1)),
            size,
            min_size: *sizes.start(),
            max_size: *sizes.end(),
            performance: Performance::of(&category, level, iops, size),
            provisioned_iops: iops,
            max_provisioned_iops: category.most_provisioned_iops(size),
            bursting: has_burst && new.bursting,
            in_stock,
            category,
        }
    });
    to.candidates = candidates.collect();
    add_size_notes(new, to);
    let kept = |days| format!("a snapshot is taken before a disk is deleted, and kept for {days} days");
    to.notes.extend(new.deletion_snapshot_days.map(kept));
}

/// Notes the zones of class and settings that the region does not have, if the stock is known. `alone` is the disk of
/// the class in any zone.
pub(super) fn add_unknown_zones(
    alone: &NewDisk,
    topologies: &[TopologyTerm],
    settings: &ExplainSettings,
    to: &mut Explained,
) {
    let known = request::stock_zones(settings);
    let known: BTreeSet<_> = known.iter().map(ZoneId::as_str).collect();
    let expressions = topologies.iter().flat_map(|term| &term.match_label_expressions);
    let of_zones = expressions.filter(|expression| expression.key == topology::ZONE_KEY);
    let allowed = of_zones.flat_map(|expression| &expression.values).map(String::as_str);
    let named = alone.zones.iter().map(|allowed| &allowed.zone).chain(&settings.zone);
    let named = named.map(ZoneId::as_str).filter(|zone| *zone != request::SELECTED_NODE);
    let unknown: BTreeSet<_> = named.chain(allowed).filter(|zone| !known.contains(zone)).collect();
    if !known.is_empty() && !unknown.is_empty() {
        let list = |zones: BTreeSet<&str>| zones.into_iter().collect::<Vec<_>>().join(", ");
        let (unknown, known) = (list(unknown), list(known));
        to.note(format!("not a zone of the region: {unknown}; the zones are {known}"));
    }
}

/// Notes about disks that are larger than requested, and about levels that are not tried because of their size.
fn add_size_notes(new: &NewDisk, to: &mut Explained) {
    let requested = new.size.required.unwrap_or_default().gib_ceil();
    let Some(requested) = requested else { return };
    let larger = to.candidates.iter().filter(|of| of.size > requested);
    let mut notes: Vec<_> = larger
        .map(|of| {
            let level = of.level.map(|level| format!(" {level}")).unwrap_or_default();
            format!(
                "a disk of {}{level} has {} although {requested} are requested: the minimum of the category and level",
                of.category, of.size
            )
        })
        .collect();
    let is_tried = |level| to.candidates.iter().any(|of| of.level == Some(level));
    let omitted = new.levels.iter().filter(|level| !is_tried(**level));
    notes.extend(omitted.map(|level| {
        let (least, most) = level.sizes().into_inner();
        format!("{level} is not tried: its sizes are {least} to {most}")
    }));
    notes.dedup();
    to.notes.extend(notes);
}

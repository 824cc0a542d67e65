//! The disks that CreateVolume tries to create, in order.

use std::collections::BTreeSet;

use super::manifest::TopologyTerm;
use super::report::{Candidate, Explained, Figures};
use super::request;
use super::settings::ExplainSettings;
use crate::disk::{NewDisk, candidates};
use crate::model::{Performance, Throughput, ZoneId, topology};

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
    let megabytes = |throughput: Throughput| f64::from(throughput.kb_per_second) / 1000.0;
    to.candidates = attempts
        .into_iter()
        .map(|(candidate, in_stock)| {
            let zone = candidate.zone.filter(|zone| zone.as_str() != request::SELECTED_NODE);
            let (category, level, size) = (candidate.category, candidate.level, candidate.size);
            let sizes = category.sizes_at(level);
            let (min, max) = sizes.map_or((size, size), std::ops::RangeInclusive::into_inner);
            let has_burst = category.has_burst();
            let iops = if has_burst { new.provisioned_iops } else { 0 };
            let performance = Performance::of(&category, level, iops, size);
            Candidate {
                zone: zone.map(|zone| zone.to_string()),
                category: category.to_string(),
                level: match level {
                    None if category.has_levels() => Some("PL1"),
                    level => level.map(|level| level.as_str()),
                },
                size_gib: size.0,
                min_size_gib: min.0,
                max_size_gib: max.0,
                performance: performance.map(|of| Figures {
                    read_iops: of.read_iops,
                    write_iops: of.write_iops,
                    read_mbps: megabytes(of.read),
                    write_mbps: megabytes(of.write),
                }),
                provisioned_iops: iops,
                max_provisioned_iops: category.most_provisioned_iops(size),
                bursting: has_burst && new.bursting,
                in_stock,
            }
        })
        .collect();
    add_size_notes(new, to);
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
    let larger = to.candidates.iter().filter(|of| of.size_gib > requested.0);
    let mut notes: Vec<_> = larger
        .map(|of| {
            let level = of.level.map(|level| format!(" {level}")).unwrap_or_default();
            format!(
                "a disk of {}{level} has {} GiB although {requested} are requested: the minimum of the category and level",
                of.category, of.size_gib
            )
        })
        .collect();
    let is_tried = |level: &str| to.candidates.iter().any(|of| of.level == Some(level));
    let omitted = new.levels.iter().filter(|level| !is_tried(level.as_str()));
    notes.extend(omitted.map(|level| {
        let (least, most) = level.sizes().into_inner();
        format!("{level} is not tried: its sizes are {least} to {most}")
    }));
    notes.dedup();
    to.notes.extend(notes);
}

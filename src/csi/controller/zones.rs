//! Which zones a volume may go to, and in what order.

use std::collections::BTreeSet;

use tonic::Status;

use crate::csi::proto::{Topology, TopologyRequirement};
use crate::disk::Place;
use crate::model::{Category, ZoneId, topology};

/// The places to try: those of the topology requirement (preferred ones first), of which only those
/// in the class's `zoneId`, where it has one; without a requirement the class's, else the driver's.
/// Only where the class wants a `regional` category can there be none.
pub(super) fn choose(
    requirement: Option<&TopologyRequirement>,
    class: &[ZoneId],
    own: Option<&ZoneId>,
    regional: bool,
) -> Result<Vec<Place>, Status> {
    let none = TopologyRequirement::default();
    let requirement = requirement.unwrap_or(&none);
    let terms = requirement.preferred.iter().chain(&requirement.requisite);
    let mut wanted = Vec::new();
    for term in terms {
        let place = place(term, regional)?;
        wanted.extend(place.filter(|place| !wanted.contains(place)));
    }
    if wanted.is_empty() {
        return match own {
            _ if !class.is_empty() => Ok(class.iter().cloned().map(Place::from).collect()),
            Some(own) => Ok(vec![own.clone().into()]),
            None if regional => Ok(Vec::new()),
            None => Err(Status::invalid_argument(
                "no zone is known: the request has no topology, the StorageClass no zoneId, and the \
                 driver no --zone",
            )),
        };
    }
    let inside = |place: &&Place| class.is_empty() || class.contains(&place.zone);
    let both: Vec<Place> = wanted.iter().filter(inside).cloned().collect();
    if !both.is_empty() {
        return Ok(both);
    }
    let anywhere: Vec<Place> = wanted.iter().filter_map(only_regional).collect();
    if regional && !anywhere.is_empty() {
        return Ok(anywhere);
    }
    let text = |zones: BTreeSet<&str>| zones.into_iter().collect::<Vec<_>>().join(", ");
    // Final for the provisioner, so that the scheduler chooses another node.
    Err(Status::resource_exhausted(format!(
        "the StorageClass allows zones {}, the volume must be accessible from {}: no zone is both",
        text(class.iter().map(ZoneId::as_str).collect()),
        text(wanted.iter().map(|place| place.zone.as_str()).collect())
    )))
}

/// The zones of a requirement, preferred ones first; each of its terms must name one.
pub(super) fn of(requirement: &TopologyRequirement) -> Result<Vec<ZoneId>, Status> {
    let terms = requirement.preferred.iter().chain(&requirement.requisite);
    let places = terms.map(|term| place(term, false));
    let zones = places.filter_map(|place| Some(place.transpose()?.map(|place| place.zone)));
    zones.collect()
}

/// Whether the nodes of the requirement say which categories they take.
pub(super) fn nodes_say(requirement: Option<&TopologyRequirement>) -> bool {
    let terms = |of: &TopologyRequirement| {
        let mut terms = of.preferred.iter().chain(&of.requisite);
        terms.any(|term| taken(term).is_some())
    };
    requirement.is_some_and(terms)
}

/// The place that a term names; none for a term without a zone, which only a regional disk may have.
fn place(term: &Topology, regional: bool) -> Result<Option<Place>, Status> {
    let takes = taken(term);
    let Some(zone) = term.segments.get(topology::ZONE_KEY) else {
        let category = Category::CloudRegionalDiskAuto;
        if regional && takes.is_none_or(|takes| takes.contains(&category)) {
            return Ok(None);
        }
        return Err(Status::invalid_argument(format!(
            "a topology has segments without {}, which this driver needs",
            topology::ZONE_KEY
        )));
    };
    let zone: ZoneId = zone
        .parse()
        .map_err(|e| Status::invalid_argument(format!("{}: {e}", topology::ZONE_KEY)))?;
    Ok(Some(Place { zone, takes }))
}

/// The categories that the nodes of a term take; none where they do not say.
fn taken(term: &Topology) -> Option<BTreeSet<Category>> {
    let mut named = term
        .segments
        .iter()
        .filter_map(|(key, value)| Some((topology::category_of(key)?, value)))
        .peekable();
    named.peek()?;
    let taken = named.filter(|(_, value)| *value == topology::TAKEN);
    Some(taken.map(|(category, _)| category).collect())
}

/// A place outside the class's zones, for regional disks, which are bound to none.
fn only_regional(place: &Place) -> Option<Place> {
    let category = Category::CloudRegionalDiskAuto;
    place.admits(&category).then(|| Place {
        zone: place.zone.clone(),
        takes: Some([category].into()),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tonic::Code;

    use super::*;

    fn topologies(zones: &[&str]) -> Vec<Topology> {
        let topology = |zone: &&str| Topology {
            segments: HashMap::from([(topology::ZONE_KEY.to_owned(), (*zone).to_owned())]),
        };
        zones.iter().map(topology).collect()
    }

    fn ids(zones: &[&str]) -> Vec<ZoneId> {
        zones.iter().map(|zone| zone.parse().unwrap()).collect()
    }

    fn places(zones: &[&str]) -> Vec<Place> {
        ids(zones).into_iter().map(Place::from).collect()
    }

    #[test]
    fn preferred_zones_come_first_and_only_those_of_the_class() {
        let requirement = TopologyRequirement {
            requisite: topologies(&["a", "b", "c"]),
            preferred: topologies(&["c", "a"]),
        };
        assert_eq!(
            choose(Some(&requirement), &[], None, false).unwrap(),
            places(&["c", "a", "b"])
        );
        assert_eq!(
            choose(Some(&requirement), &ids(&["b", "a"]), None, false).unwrap(),
            places(&["a", "b"])
        );
    }

    #[test]
    fn without_topology_the_class_decides_and_then_the_driver() {
        let own = "own".parse().unwrap();
        assert_eq!(
            choose(None, &ids(&["z"]), Some(&own), false).unwrap(),
            places(&["z"])
        );
        assert_eq!(
            choose(None, &[], Some(&own), false).unwrap(),
            places(&["own"])
        );
        assert_eq!(
            choose(None, &[], None, false).unwrap_err().code(),
            Code::InvalidArgument
        );
    }

    #[test]
    fn no_common_zone_makes_the_scheduler_choose_again() {
        let requirement = TopologyRequirement {
            requisite: topologies(&["a"]),
            preferred: vec![],
        };
        let refused = choose(Some(&requirement), &ids(&["b"]), None, false).unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted);
    }

    #[test]
    fn what_the_nodes_of_a_term_take_stays_with_its_zone() {
        let mut both = topologies(&["a", "a"]);
        for (term, category) in both.iter_mut().zip(["cloud_essd", "cloud_ssd"]) {
            let key = format!("disk.diskplugin.csi.example/{category}");
            term.segments.insert(key, "available".to_owned());
        }
        let requirement = TopologyRequirement {
            requisite: both,
            preferred: vec![],
        };
        let places = choose(Some(&requirement), &[], None, false).unwrap();
        let takes: Vec<_> = places.iter().map(ToString::to_string).collect();
        assert_eq!(takes, ["a with cloud_essd", "a with cloud_ssd"]);
    }

    #[test]
    fn a_regional_disk_needs_no_zone_and_no_zone_excludes_it() {
        let requirement = TopologyRequirement {
            requisite: topologies(&["a"]),
            preferred: vec![],
        };
        let outside = choose(Some(&requirement), &ids(&["b"]), None, true).unwrap();
        assert_eq!(outside[0].to_string(), "a with cloud_regional_disk_auto");
        assert_eq!(choose(None, &[], None, true).unwrap(), []);
        let zoneless = TopologyRequirement {
            requisite: vec![Topology::default()],
            preferred: vec![],
        };
        assert_eq!(choose(Some(&zoneless), &[], None, true).unwrap(), []);
        assert!(choose(Some(&zoneless), &[], None, false).is_err());
    }
}

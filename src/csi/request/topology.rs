//! Which zones a volume may go to, and in what order.

use std::collections::BTreeSet;

use super::Result;
use super::error::Error;
use crate::csi::proto::{Topology, TopologyRequirement};
use crate::disk::Place;
use crate::model::{Category, InvalidId, RegionId, ZoneId, topology};

/// What the service needs to know of where it runs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The region whose disks it handles.
    pub region: RegionId,
    /// Where disks go when neither topology nor class says so.
    pub zone: Option<ZoneId>,
}

/// The topologies of a request, preferred ones first, and the field that they are in.
#[derive(Debug)]
pub(super) struct Terms<'a> {
    field: &'static str,
    terms: Vec<&'a Topology>,
}

impl<'a> Terms<'a> {
    pub(super) fn of(requirement: Option<&'a TopologyRequirement>) -> Self {
        let terms = requirement.map(|of| of.preferred.iter().chain(&of.requisite));
        Self {
            field: "accessibility_requirements",
            terms: terms.into_iter().flatten().collect(),
        }
    }

    pub(super) fn one(topology: Option<&'a Topology>) -> Self {
        Self {
            field: "accessible_topology",
            terms: topology.into_iter().collect(),
        }
    }

    /// The places to try: those of the terms, of which only those in the class's `zoneId`, where it has one; without
    /// terms the class's, else the driver's. Only where the class wants a `regional` category can there be none.
    pub(super) fn choose(
        &self,
        class: &[ZoneId],
        own: Option<&ZoneId>,
        regional: bool,
    ) -> Result<Vec<Place>> {
        let mut wanted = Vec::new();
        for term in &self.terms {
            let place = self.place(term, regional)?;
            wanted.extend(place.filter(|place| !wanted.contains(place)));
        }
        if wanted.is_empty() {
            return match own {
                _ if !class.is_empty() => Ok(class.iter().cloned().map(Place::from).collect()),
                Some(own) => Ok(vec![own.clone().into()]),
                None if regional => Ok(Vec::new()),
                None => Err(Error::unsupported(
                    self.field,
                    "names no zone, and neither zoneId of the StorageClass nor --zone of the driver does",
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
        let why = format!(
            "the StorageClass allows zones {}, the volume must be accessible from {}: no zone is both",
            text(class.iter().map(ZoneId::as_str).collect()),
            text(wanted.iter().map(|place| place.zone.as_str()).collect())
        );
        Err(Error::NoZone(self.field.into(), why))
    }

    /// Whether volumes made of a snapshot in this region are accessible as required. They are in every zone of the
    /// region, whose zones all begin with its name; one of the required topologies must be there.
    pub(super) fn admit(&self, region: &RegionId) -> Result<()> {
        let zones = self.terms.iter().filter_map(|term| {
            let place = self.place(term, false).transpose()?;
            Some(place.map(|place| place.zone))
        });
        let zones = zones.collect::<Result<Vec<ZoneId>>>()?;
        let zones: Vec<_> = zones.iter().map(ZoneId::as_str).collect();
        if zones.is_empty() || zones.iter().any(|zone| zone.starts_with(region.as_str())) {
            return Ok(());
        }
        let why = format!(
            "the snapshot must be usable in {}: none of them is in region {region}, and snapshots are usable only in \
             their region",
            zones.join(", ")
        );
        Err(Error::NoZone(self.field.into(), why))
    }

    /// Whether the nodes of the terms say which categories they take.
    pub(super) fn nodes_say(&self) -> bool {
        self.terms.iter().any(|term| taken(term).is_some())
    }

    /// The place that a term names; none for a term without a zone, which only a regional disk may have.
    fn place(&self, term: &Topology, regional: bool) -> Result<Option<Place>> {
        let takes = taken(term);
        let field = || format!("{}: segment {:?}", self.field, topology::ZONE_KEY);
        let Some(zone) = term.segments.get(topology::ZONE_KEY) else {
            let category = Category::CloudRegionalDiskAuto;
            if regional && takes.is_none_or(|takes| takes.contains(&category)) {
                return Ok(None);
            }
            return Err(Error::Missing(field().into()));
        };
        let zone = zone
            .parse()
            .map_err(|e: InvalidId| Error::malformed(field(), &e))?;
        Ok(Some(Place { zone, takes }))
    }
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
            Terms::of(Some(&requirement))
                .choose(&[], None, false)
                .unwrap(),
            places(&["c", "a", "b"])
        );
        assert_eq!(
            Terms::of(Some(&requirement))
                .choose(&ids(&["b", "a"]), None, false)
                .unwrap(),
            places(&["a", "b"])
        );
    }

    #[test]
    fn without_topology_the_class_decides_and_then_the_driver() {
        let own = "own".parse().unwrap();
        assert_eq!(
            Terms::of(None)
                .choose(&ids(&["z"]), Some(&own), false)
                .unwrap(),
            places(&["z"])
        );
        assert_eq!(
            Terms::of(None).choose(&[], Some(&own), false).unwrap(),
            places(&["own"])
        );
        let nowhere = Terms::of(None).choose(&[], None, false);
        assert!(matches!(nowhere, Err(Error::Unsupported(..))));
    }

    #[test]
    fn no_common_zone_makes_the_scheduler_choose_again() {
        let requirement = TopologyRequirement {
            requisite: topologies(&["a"]),
            preferred: vec![],
        };
        let refused = Terms::of(Some(&requirement))
            .choose(&ids(&["b"]), None, false)
            .unwrap_err();
        assert!(matches!(refused, Error::NoZone(..)), "{refused:?}");
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
        let places = Terms::of(Some(&requirement))
            .choose(&[], None, false)
            .unwrap();
        let takes: Vec<_> = places.iter().map(ToString::to_string).collect();
        assert_eq!(takes, ["a with cloud_essd", "a with cloud_ssd"]);
    }

    #[test]
    fn a_regional_disk_needs_no_zone_and_no_zone_excludes_it() {
        let requirement = TopologyRequirement {
            requisite: topologies(&["a"]),
            preferred: vec![],
        };
        let outside = Terms::of(Some(&requirement))
            .choose(&ids(&["b"]), None, true)
            .unwrap();
        assert_eq!(outside[0].to_string(), "a with cloud_regional_disk_auto");
        assert_eq!(Terms::of(None).choose(&[], None, true).unwrap(), []);
        let zoneless = TopologyRequirement {
            requisite: vec![Topology::default()],
            preferred: vec![],
        };
        assert_eq!(
            Terms::of(Some(&zoneless)).choose(&[], None, true).unwrap(),
            []
        );
        assert!(Terms::of(Some(&zoneless)).choose(&[], None, false).is_err());
    }
}

//! Topology requirements: the candidate zones of a volume, in order of preference.

use std::collections::BTreeSet;

use super::error::{Error, Result};
use crate::csi::proto::{Topology, TopologyRequirement};
use crate::disk::AllowedZone;
use crate::model::{Category, InvalidId, RegionId, ZoneId, topology};

#[derive(Debug, Clone)]
pub struct DriverLocation {
    pub region: RegionId,
    /// Default zone of disks, if neither topology nor class names one.
    pub zone: Option<ZoneId>,
}

/// The topologies of a request, preferred ones first.
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

    pub(super) fn of_topology(topology: Option<&'a Topology>) -> Self {
        Self {
            field: "accessible_topology",
            terms: topology.into_iter().collect(),
        }
    }

    /// The candidate zones: those of the topologies, restricted to `zoneId` of the class; without topologies those of
    /// the class, or else the zone of the driver. The result is empty only if the class has a `regional` category.
    pub(super) fn choose(&self, class: &[ZoneId], own: Option<&ZoneId>, regional: bool) -> Result<Vec<AllowedZone>> {
        let mut wanted = Vec::new();
        for term in &self.terms {
            let place = self.place(term, regional)?;
            wanted.extend(place.filter(|place| !wanted.contains(place)));
        }
        if wanted.is_empty() {
            return match own {
                _ if !class.is_empty() => Ok(class.iter().cloned().map(AllowedZone::from).collect()),
                Some(own) => Ok(vec![own.clone().into()]),
                None if regional => Ok(Vec::new()),
                None => Err(Error::unsupported(
                    self.field,
                    "names no zone, and neither zoneId of the StorageClass nor --zone of the driver is set",
                )),
            };
        }
        let inside = |place: &&AllowedZone| class.is_empty() || class.contains(&place.zone);
        let both: Vec<AllowedZone> = wanted.iter().filter(inside).cloned().collect();
        if !both.is_empty() {
            return Ok(both);
        }
        let anywhere: Vec<AllowedZone> = wanted.iter().filter_map(only_regional).collect();
        if regional && !anywhere.is_empty() {
            return Ok(anywhere);
        }
        let text = |zones: BTreeSet<&str>| zones.into_iter().collect::<Vec<_>>().join(", ");
        let why = format!(
            "the StorageClass allows zones {}, but the volume must be accessible from {}: no common zone",
            text(class.iter().map(ZoneId::as_str).collect()),
            text(wanted.iter().map(|place| place.zone.as_str()).collect())
        );
        Err(Error::no_zone(self.field, &why))
    }

    /// Checks the requirements of a snapshot. Volumes from it can be created in every zone of the region, so one
    /// required zone must be in the region. Names of zones begin with the name of their region.
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
            "the snapshot must be usable in {}, but none of these zones is in region {region} of the snapshot",
            zones.join(", ")
        );
        Err(Error::no_zone(self.field, &why))
    }

    pub(super) fn nodes_report_categories(&self) -> bool {
        self.terms.iter().any(|term| supported_categories(term).is_some())
    }

    /// The zone of a topology; `None` without a zone, which is allowed only for regional disks.
    fn place(&self, term: &Topology, regional: bool) -> Result<Option<AllowedZone>> {
        let supported = supported_categories(term);
        let field = || format!("{}: segment {:?}", self.field, topology::ZONE_KEY);
        let Some(zone) = term.segments.get(topology::ZONE_KEY) else {
            let category = Category::CloudRegionalDiskAuto;
            if regional && supported.as_ref().is_none_or(|supported| supported.contains(&category)) {
                return Ok(None);
            }
            return Err(Error::missing(field()));
        };
        let zone = zone.parse().map_err(|e: InvalidId| Error::malformed(field(), &e))?;
        Ok(Some(AllowedZone { zone, supported }))
    }
}

/// The categories that nodes with this topology support; `None` if they do not report any.
fn supported_categories(term: &Topology) -> Option<BTreeSet<Category>> {
    let mut named = term
        .segments
        .iter()
        .filter_map(|(key, value)| Some((topology::category_of(key)?, value)))
        .peekable();
    named.peek()?;
    let supported = named.filter(|(_, value)| *value == topology::SUPPORTED);
    Some(supported.map(|(category, _)| category).collect())
}

/// A zone outside `zoneId` of the class, only for regional disks, which are not bound to a zone.
fn only_regional(place: &AllowedZone) -> Option<AllowedZone> {
    let category = Category::CloudRegionalDiskAuto;
    place.supports(&category).then(|| AllowedZone {
        zone: place.zone.clone(),
        supported: Some([category].into()),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::model::Failure;

    fn topologies(zones: &[&str]) -> Vec<Topology> {
        let topology = |zone: &&str| Topology {
            segments: HashMap::from([(topology::ZONE_KEY.to_owned(), (*zone).to_owned())]),
        };
        zones.iter().map(topology).collect()
    }

    fn requirement(requisite: &[&str], preferred: &[&str]) -> TopologyRequirement {
        TopologyRequirement {
            requisite: topologies(requisite),
            preferred: topologies(preferred),
        }
    }

    fn ids(zones: &[&str]) -> Vec<ZoneId> {
        zones.iter().map(|zone| zone.parse().unwrap()).collect()
    }

    fn places(zones: &[&str]) -> Vec<AllowedZone> {
        ids(zones).into_iter().map(AllowedZone::from).collect()
    }

    #[test]
    fn preferred_zones_come_first_restricted_to_the_class() {
        let requirement = requirement(&["a", "b", "c"], &["c", "a"]);
        for (class, chosen) in [(&[][..], &["c", "a", "b"][..]), (&["b", "a"], &["a", "b"])] {
            let found = Terms::of(Some(&requirement)).choose(&ids(class), None, false);
            assert_eq!(found.unwrap(), places(chosen));
        }
    }

    #[test]
    fn without_topology_the_zones_are_those_of_class_or_driver() {
        let own = "own".parse().unwrap();
        for (class, chosen) in [(&["z"][..], "z"), (&[], "own")] {
            let found = Terms::of(None).choose(&ids(class), Some(&own), false);
            assert_eq!(found.unwrap(), places(&[chosen]));
        }
        let nowhere = Terms::of(None).choose(&[], None, false).unwrap_err();
        assert_eq!(nowhere.failure, Failure::BadRequest);
        assert!(
            nowhere.to_string().contains("names no zone, and neither zoneId"),
            "{nowhere}"
        );
    }

    #[test]
    fn no_common_zone_is_an_error_of_its_own() {
        let requirement = requirement(&["a"], &[]);
        let refused = Terms::of(Some(&requirement)).choose(&ids(&["b"]), None, false);
        assert_eq!(refused.unwrap_err().failure, Failure::NoSuitableZone);
    }

    #[test]
    fn categories_of_a_topology_stay_with_its_zone() {
        let mut both = topologies(&["a", "a"]);
        for (term, category) in both.iter_mut().zip(["cloud_essd", "cloud_ssd"]) {
            let key = format!("disk.diskplugin.csi.example/{category}");
            term.segments.insert(key, "available".to_owned());
        }
        let requirement = TopologyRequirement {
            requisite: both,
            preferred: vec![],
        };
        let places = Terms::of(Some(&requirement)).choose(&[], None, false).unwrap();
        let placements: Vec<_> = places.iter().map(ToString::to_string).collect();
        assert_eq!(placements, ["a with cloud_essd", "a with cloud_ssd"]);
    }

    #[test]
    fn a_regional_disk_is_accessible_from_any_zone() {
        let requirement = requirement(&["a"], &[]);
        let outside = Terms::of(Some(&requirement)).choose(&ids(&["b"]), None, true).unwrap();
        assert_eq!(outside[0].to_string(), "a with cloud_regional_disk_auto");
        assert_eq!(Terms::of(None).choose(&[], None, true).unwrap(), []);
        let zoneless = TopologyRequirement {
            requisite: vec![Topology::default()],
            preferred: vec![],
        };
        assert_eq!(Terms::of(Some(&zoneless)).choose(&[], None, true).unwrap(), []);
        assert!(Terms::of(Some(&zoneless)).choose(&[], None, false).is_err());
    }
}

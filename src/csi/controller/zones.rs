//! Which zones a volume may go to, and in what order.

use tonic::Status;

use crate::csi::proto::{Topology, TopologyRequirement};
use crate::model::{ZoneId, topology};

/// The zones to try: those of the topology requirement (preferred ones first), of which only those
/// in the class's `zoneId`, where it has one; without a requirement the class's, else the driver's.
pub(super) fn choose(
    requirement: Option<&TopologyRequirement>,
    class: &[ZoneId],
    own: Option<&ZoneId>,
) -> Result<Vec<ZoneId>, Status> {
    let none = TopologyRequirement::default();
    let requirement = requirement.unwrap_or(&none);
    let mut wanted = zones(&requirement.preferred)?;
    for zone in zones(&requirement.requisite)? {
        if !wanted.contains(&zone) {
            wanted.push(zone);
        }
    }
    if wanted.is_empty() {
        return match own {
            _ if !class.is_empty() => Ok(class.to_vec()),
            Some(own) => Ok(vec![own.clone()]),
            None => Err(Status::invalid_argument(
                "no zone is known: the request has no topology, the StorageClass no zoneId, and the \
                 driver no --zone",
            )),
        };
    }
    let both: Vec<ZoneId> = wanted
        .iter()
        .filter(|zone| class.is_empty() || class.contains(zone))
        .cloned()
        .collect();
    if both.is_empty() {
        let text = |zones: &[ZoneId]| {
            zones
                .iter()
                .map(ZoneId::as_str)
                .collect::<Vec<_>>()
                .join(", ")
        };
        // Final for the provisioner, so that the scheduler chooses another node.
        return Err(Status::resource_exhausted(format!(
            "the StorageClass allows zones {}, the volume must be accessible from {}: no zone is both",
            text(class),
            text(&wanted)
        )));
    }
    Ok(both)
}

fn zones(topologies: &[Topology]) -> Result<Vec<ZoneId>, Status> {
    let mut zones = Vec::new();
    for topology in topologies {
        let Some(zone) = topology.segments.get(topology::ZONE_KEY) else {
            return Err(Status::invalid_argument(format!(
                "accessibility_requirements has a topology without {}, the one key that this driver \
                 knows",
                topology::ZONE_KEY
            )));
        };
        let zone: ZoneId = zone
            .parse()
            .map_err(|e| Status::invalid_argument(format!("{}: {e}", topology::ZONE_KEY)))?;
        if !zones.contains(&zone) {
            zones.push(zone);
        }
    }
    Ok(zones)
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

    #[test]
    fn preferred_zones_come_first_and_only_those_of_the_class() {
        let requirement = TopologyRequirement {
            requisite: topologies(&["a", "b", "c"]),
            preferred: topologies(&["c", "a"]),
        };
        assert_eq!(
            choose(Some(&requirement), &[], None).unwrap(),
            ids(&["c", "a", "b"])
        );
        assert_eq!(
            choose(Some(&requirement), &ids(&["b", "a"]), None).unwrap(),
            ids(&["a", "b"])
        );
    }

    #[test]
    fn without_topology_the_class_decides_and_then_the_driver() {
        let own = "own".parse().unwrap();
        assert_eq!(choose(None, &ids(&["z"]), Some(&own)).unwrap(), ids(&["z"]));
        assert_eq!(choose(None, &[], Some(&own)).unwrap(), ids(&["own"]));
        assert_eq!(
            choose(None, &[], None).unwrap_err().code(),
            Code::InvalidArgument
        );
    }

    #[test]
    fn no_common_zone_makes_the_scheduler_choose_again() {
        let requirement = TopologyRequirement {
            requisite: topologies(&["a"]),
            preferred: vec![],
        };
        let refused = choose(Some(&requirement), &ids(&["b"]), None).unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted);
    }
}

//! The zones that a volume can be in, by its PersistentVolume or by its StorageClass.

use k8s_openapi::api::core::v1::{NodeSelectorTerm, PersistentVolume};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::{Api, ResourceExt};

use super::access::{NOT_FOUND, request_unless};
use super::{Cluster, Result};
use crate::model::topology::ZONE_KEY;

/// Parameter of a StorageClass, in lower case.
const ZONES_PARAMETER: &str = "zoneid";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeZones {
    /// Kind and name of the object that restricts the zones.
    pub object: String,
    /// At least one zone name.
    pub zones: Vec<String>,
}

impl VolumeZones {
    /// By the node affinity; none if it allows all zones.
    pub(super) fn of_volume(volume: &PersistentVolume) -> Option<Self> {
        let affinity = volume.spec.as_ref()?.node_affinity.as_ref()?;
        let terms = &affinity.required.as_ref()?.node_selector_terms;
        let of_terms: Option<Vec<_>> = terms.iter().map(of_term).collect();
        let zones = of_terms?.concat();
        new(format!("PersistentVolume {}", volume.name_any()), zones)
    }

    /// By the StorageClass of a volume that does not exist yet; none if the class does not exist or allows all zones.
    pub(super) async fn of_class(cluster: &Cluster, name: &str) -> Result<Option<Self>> {
        let classes: Api<StorageClass> = Api::all(cluster.client());
        let step = format!("read the StorageClass {name}");
        let class = request_unless(&[NOT_FOUND], &step, classes.get(name)).await?;
        Ok(class.as_ref().and_then(of_class))
    }
}

fn new(object: String, mut zones: Vec<String>) -> Option<VolumeZones> {
    zones.sort_unstable();
    zones.dedup();
    (!zones.is_empty()).then_some(VolumeZones { object, zones })
}

/// None if the term allows all zones.
fn of_term(term: &NodeSelectorTerm) -> Option<Vec<String>> {
    let mut expressions = term.match_expressions.iter().flatten();
    let zones = expressions.find(|one| one.key == ZONE_KEY && one.operator == "In")?;
    zones.values.clone()
}

fn of_class(class: &StorageClass) -> Option<VolumeZones> {
    let topologies = class.allowed_topologies.iter().flatten();
    let allowed = topologies
        .flat_map(|topology| topology.match_label_expressions.iter().flatten())
        .filter(|expression| expression.key == ZONE_KEY)
        .flat_map(|expression| expression.values.clone());
    let allowed: Vec<String> = allowed.collect();
    let mut parameters = class.parameters.iter().flatten();
    let parameter = parameters.find(|(key, _)| key.eq_ignore_ascii_case(ZONES_PARAMETER));
    let named = parameter.map(|(_, value)| value.split(',').map(|zone| zone.trim().to_owned()));
    let zones = match named {
        Some(named) if allowed.is_empty() => named.collect(),
        Some(named) => named.filter(|zone| allowed.contains(zone)).collect(),
        None => allowed,
    };
    new(format!("StorageClass {}", class.name_any()), zones)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn zones_of_class(class: Value) -> Vec<String> {
        let class: StorageClass = serde_json::from_value(class).unwrap();
        of_class(&class).map_or_else(Vec::new, |found| found.zones)
    }

    #[test]
    fn a_class_allows_the_zones_of_its_parameter_and_of_its_topologies() {
        let class = |parameter: Option<&str>, topology: &[&str]| {
            let expression = json!({"key": ZONE_KEY, "values": topology});
            zones_of_class(json!({
                "metadata": {"name": "c"}, "provisioner": "p",
                "parameters": parameter.map(|zones| json!({"zoneId": zones})),
                "allowedTopologies": [{"matchLabelExpressions": [expression]}],
            }))
        };
        assert_eq!(class(None, &[]), [""; 0]);
        assert_eq!(class(Some("b, a"), &[]), ["a", "b"]);
        assert_eq!(class(None, &["c"]), ["c"]);
        assert_eq!(class(Some("a,b"), &["b", "c"]), ["b"]);
    }

    #[test]
    fn a_volume_is_in_the_zones_of_its_node_affinity() {
        let volume = |terms: Value| {
            let affinity = json!({"required": {"nodeSelectorTerms": terms}});
            let volume = json!({"metadata": {"name": "v"}, "spec": {"nodeAffinity": affinity}});
            VolumeZones::of_volume(&serde_json::from_value(volume).unwrap())
        };
        let term =
            |key: &str, zones: &[&str]| json!({"matchExpressions": [{"key": key, "operator": "In", "values": zones}]});
        let found = volume(json!([term(ZONE_KEY, &["b"]), term(ZONE_KEY, &["a"])])).unwrap();
        assert_eq!(
            (found.object.as_str(), found.zones),
            ("PersistentVolume v", vec!["a".to_owned(), "b".to_owned()])
        );
        assert_eq!(volume(json!([term(ZONE_KEY, &["b"]), term("other", &["a"])])), None);
    }
}

//! Zones of the class, of its topologies, and of the node.

use super::*;

fn with(zone: Option<&str>, stock: &[&str]) -> ExplainSettings {
    let zonal = stock.iter().map(|name| ZoneStock {
        zone: name.parse().ok(),
        categories: vec![Stock {
            category: Category::CloudEssd,
            available: true,
        }],
    });
    let zonal: Vec<_> = zonal.collect();
    ExplainSettings {
        zone: zone.map(|zone| zone.parse().unwrap()),
        stock: RegionStock {
            zonal: (!zonal.is_empty()).then_some(zonal),
            regional: None,
        },
        ..settings()
    }
}

fn of(text: &str, settings: &ExplainSettings) -> Explained {
    explain(&read("file", text).unwrap(), settings).objects.remove(0)
}

const TOPOLOGIES: &str =
    "allowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [a, b]}]}]";

#[test]
fn the_zone_of_the_node_must_be_one_of_the_class() {
    let in_b = with(Some("b"), &[]);
    let found = of(&class("type: cloud_essd, zoneId: 'a,b'", ""), &in_b);
    assert_eq!((fields(&found), zones(&found)), (vec![], vec!["b"]));
    let found = of(&class("zoneId: a", ""), &in_b);
    assert_eq!(fields(&found), ["parameters.zoneId"]);
    assert!(found.problems[0].message.contains("no common zone"));
    let found = of(&class("type: cloud_essd", TOPOLOGIES), &in_b);
    assert_eq!((fields(&found), zones(&found)), (vec![], vec!["b"]));
    let found = of(&class("", TOPOLOGIES), &with(Some("c"), &[]));
    assert_eq!(fields(&found), ["allowedTopologies"]);
}

#[test]
fn zones_that_the_region_does_not_have_are_named() {
    let note = |text: &str| of(text, &with(None, &["a", "b"])).notes.join("\n");
    let misspelled = "not a zone of the region: x; the zones are a, b";
    assert!(note(&class("zoneId: 'x,b'", "")).contains(misspelled));
    assert!(note(&class("zoneId: x", "")).contains(misspelled));
    let topologies = TOPOLOGIES.replace("[a, b]", "[a, x]");
    assert!(note(&class("", &topologies)).contains(misspelled));
    assert!(!note(&class("zoneId: 'a,b'", "")).contains("not a zone"));
}

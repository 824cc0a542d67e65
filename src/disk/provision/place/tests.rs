//! Which pairs are tried.

use super::*;
use crate::disk::Place;
use crate::model::{Bytes, SizeRange, Tags};

fn new_disk(categories: &[Category], required: u64, limit: Option<u64>) -> NewDisk {
    NewDisk {
        name: "pvc-1".to_owned(),
        size: SizeRange {
            required: Some(Bytes(required)),
            limit: limit.map(Bytes),
        },
        categories: categories.to_vec(),
        levels: Vec::new(),
        places: ["cn-a", "cn-b"].map(place).to_vec(),
        snapshot: None,
        clone_of: None,
        encrypted: false,
        kms_key: None,
        provisioned_iops: 0,
        bursting: false,
        multi_attach: false,
        resource_group: None,
        tags: Tags::new(),
        origin: Tags::new(),
    }
}

fn place(zone: &str) -> Place {
    zone.parse::<ZoneId>().unwrap().into()
}

fn pairs(new: &NewDisk) -> Vec<String> {
    let choice = choose(new).unwrap();
    let pairs = choice.pairs.iter();
    pairs.map(|pair| format!("{pair}, {}", pair.size)).collect()
}

#[test]
fn all_categories_of_the_first_zone_come_before_the_next_zone() {
    let new = new_disk(&[Category::CloudSsd, Category::CloudAuto], 1, None);
    assert_eq!(
        pairs(&new),
        [
            "cloud_ssd in cn-a, 20 GiB",
            "cloud_auto in cn-a, 1 GiB",
            "cloud_ssd in cn-b, 20 GiB",
            "cloud_auto in cn-b, 1 GiB"
        ]
    );
}

#[test]
fn a_category_that_has_no_such_size_is_left_out_with_its_reason() {
    let new = new_disk(
        &[Category::CloudSsd, Category::Cloud],
        10 << 30,
        Some(10 << 30),
    );
    assert_eq!(pairs(&new).len(), 2);
    let left_out = choose(&new).unwrap().left_out;
    assert!(
        left_out[0].starts_with("cloud_ssd: no size from 20 GiB"),
        "{left_out:?}"
    );
}

#[test]
fn no_category_with_such_a_size_is_out_of_range_with_every_reason() {
    let error = choose(&new_disk(&[Category::CloudSsd], 1, Some(5 << 30))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no size satisfies the request for \"pvc-1\": cloud_ssd: no size from 20 GiB \
         to 32768 GiB satisfies required_bytes 1 with limit_bytes 5368709120"
    );
}

fn essd(levels: &[PerformanceLevel], gib: u64, limit: Option<u64>) -> NewDisk {
    NewDisk {
        levels: levels.to_vec(),
        places: vec![place("cn-a")],
        ..new_disk(
            &[Category::CloudEssd],
            gib << 30,
            limit.map(|gib| gib << 30),
        )
    }
}

#[test]
fn the_size_chooses_among_the_levels_and_no_level_enlarges_what_another_one_sells() {
    use PerformanceLevel::{Pl0, Pl1, Pl2, Pl3};
    for (levels, gib, wanted) in [
        (
            &[Pl3, Pl2, Pl1][..],
            100,
            &["cloud_essd PL1 in cn-a, 100 GiB"][..],
        ),
        (
            &[Pl3, Pl2, Pl1],
            500,
            &[
                "cloud_essd PL2 in cn-a, 500 GiB",
                "cloud_essd PL1 in cn-a, 500 GiB",
            ],
        ),
        (&[Pl0], 5, &["cloud_essd PL0 in cn-a, 5 GiB"]),
        (&[Pl1, Pl0], 5, &["cloud_essd PL0 in cn-a, 5 GiB"]),
        (
            &[Pl3, Pl2],
            100,
            &[
                "cloud_essd PL2 in cn-a, 461 GiB",
                "cloud_essd PL3 in cn-a, 1261 GiB",
            ],
        ),
        (&[], 5, &["cloud_essd in cn-a, 20 GiB"]),
    ] {
        assert_eq!(pairs(&essd(levels, gib, None)), wanted, "{levels:?} {gib}");
    }
}

#[test]
fn a_limit_below_every_level_is_out_of_range_with_the_range_of_each() {
    let levels = [PerformanceLevel::Pl2, PerformanceLevel::Pl3];
    let refused = choose(&essd(&levels, 100, Some(200)))
        .unwrap_err()
        .to_string();
    for range in ["PL2: no size from 461 GiB", "PL3: no size from 1261 GiB"] {
        assert!(refused.contains(range), "{refused}");
    }
}

#[test]
fn iops_and_bursting_are_bounded_by_the_size() {
    let auto = |gib: u64, iops, bursting| NewDisk {
        provisioned_iops: iops,
        bursting,
        places: vec![place("cn-a")],
        ..new_disk(&[Category::CloudAuto], gib << 30, None)
    };
    assert_eq!(pairs(&auto(10, 7000, true)).len(), 1);
    let refused = choose(&auto(10, 7001, false)).unwrap_err().to_string();
    assert!(
        refused.contains("a disk of 10 GiB supports 0 to 7000 provisionedIops"),
        "{refused}"
    );
    let refused = choose(&auto(3, 0, true)).unwrap_err().to_string();
    assert!(refused.contains("cannot burst"), "{refused}");
}

#[test]
fn only_what_the_nodes_of_a_place_take_is_tried_there_in_the_order_of_the_places() {
    let supported = |zone, category: Category| Place {
        supported: Some([category].into()),
        ..place(zone)
    };
    let new = NewDisk {
        places: vec![
            supported("cn-b", Category::CloudEssd),
            supported("cn-b", Category::CloudSsd),
            place("cn-a"),
        ],
        ..new_disk(&[Category::CloudSsd, Category::CloudEssd], 1, None)
    };
    let tried: Vec<_> = choose(&new)
        .unwrap()
        .pairs
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        tried,
        [
            "cloud_essd in cn-b",
            "cloud_ssd in cn-b",
            "cloud_ssd in cn-a",
            "cloud_essd in cn-a"
        ]
    );
    let none = NewDisk {
        places: vec![supported("cn-b", Category::CloudAuto)],
        ..new
    };
    let refused = choose(&none).unwrap_err();
    assert!(matches!(refused, Error::OutOfStock { .. }), "{refused}");
    assert!(refused.to_string().contains("cloud_auto"), "{refused}");
}

#[test]
fn a_regional_category_is_tried_once_and_without_a_zone() {
    let regional = Category::CloudRegionalDiskAuto;
    let new = new_disk(&[regional.clone(), Category::CloudSsd], 1, None);
    let wanted = [
        "cloud_regional_disk_auto in the region, 10 GiB",
        "cloud_ssd in cn-a, 20 GiB",
        "cloud_ssd in cn-b, 20 GiB",
    ];
    assert_eq!(pairs(&new), wanted);
    let nowhere = NewDisk {
        places: Vec::new(),
        ..new_disk(&[regional], 1, None)
    };
    assert_eq!(pairs(&nowhere), wanted[..1]);
}

#[test]
fn a_disk_for_several_nodes_is_only_of_a_category_that_can_be_shared() {
    let new = NewDisk {
        multi_attach: true,
        places: vec![place("cn-a")],
        ..new_disk(&[Category::CloudSsd, Category::CloudEssd], 1, None)
    };
    assert_eq!(pairs(&new), ["cloud_essd in cn-a, 20 GiB"]);
}

use super::*;
use crate::disk::AllowedZone;
use crate::model::{Bytes, SizeRange};

fn new_disk(categories: &[Category], required: u64, limit: Option<u64>) -> NewDisk {
    NewDisk {
        name: "pvc-1".to_owned(),
        size: SizeRange {
            required: Some(Bytes(required)),
            limit: limit.map(Bytes),
        },
        categories: categories.to_vec(),
        zones: ["cn-a", "cn-b"].map(allowed).to_vec(),
        ..NewDisk::default()
    }
}

fn allowed(zone: &str) -> AllowedZone {
    zone.parse::<ZoneId>().unwrap().into()
}

fn candidates(new: &NewDisk) -> Vec<String> {
    let selection = select_candidates(new).unwrap();
    let candidates = selection.candidates.iter();
    candidates
        .map(|candidate| format!("{candidate}, {}", candidate.size))
        .collect()
}

#[test]
fn all_categories_of_the_first_zone_come_before_the_next_zone() {
    let new = new_disk(&[Category::CloudSsd, Category::CloudAuto], 1, None);
    assert_eq!(
        candidates(&new),
        [
            "cloud_ssd in cn-a, 20 GiB",
            "cloud_auto in cn-a, 1 GiB",
            "cloud_ssd in cn-b, 20 GiB",
            "cloud_auto in cn-b, 1 GiB"
        ]
    );
}

#[test]
fn category_without_the_size_is_excluded_with_its_reason() {
    let new = new_disk(&[Category::CloudSsd, Category::Cloud], 10 << 30, Some(10 << 30));
    assert_eq!(candidates(&new).len(), 2);
    let excluded = select_candidates(&new).unwrap().excluded;
    assert!(
        excluded[0].starts_with("cloud_ssd: no size from 20 GiB"),
        "{excluded:?}"
    );
}

#[test]
fn size_of_no_category_is_out_of_range_with_every_reason() {
    let error = select_candidates(&new_disk(&[Category::CloudSsd], 1, Some(5 << 30))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no size satisfies the request for \"pvc-1\": cloud_ssd: no size from 20 GiB \
         to 32768 GiB satisfies required_bytes 1 with limit_bytes 5368709120"
    );
}

fn essd(levels: &[PerformanceLevel], gib: u64, limit: Option<u64>) -> NewDisk {
    NewDisk {
        levels: levels.to_vec(),
        zones: vec![allowed("cn-a")],
        ..new_disk(&[Category::CloudEssd], gib << 30, limit.map(|gib| gib << 30))
    }
}

#[test]
fn levels_are_selected_by_size_with_the_smallest_enlargement() {
    use PerformanceLevel::{Pl0, Pl1, Pl2, Pl3};
    for (levels, gib, wanted) in [
        (&[Pl3, Pl2, Pl1][..], 100, &["cloud_essd PL1 in cn-a, 100 GiB"][..]),
        (
            &[Pl3, Pl2, Pl1],
            500,
            &["cloud_essd PL2 in cn-a, 500 GiB", "cloud_essd PL1 in cn-a, 500 GiB"],
        ),
        (&[Pl0], 5, &["cloud_essd PL0 in cn-a, 5 GiB"]),
        (&[Pl1, Pl0], 5, &["cloud_essd PL0 in cn-a, 5 GiB"]),
        (
            &[Pl3, Pl2],
            100,
            &["cloud_essd PL2 in cn-a, 461 GiB", "cloud_essd PL3 in cn-a, 1261 GiB"],
        ),
        (&[], 5, &["cloud_essd in cn-a, 20 GiB"]),
    ] {
        assert_eq!(candidates(&essd(levels, gib, None)), wanted, "{levels:?} {gib}");
    }
}

#[test]
fn limit_below_every_level_is_out_of_range_with_each_range() {
    let levels = [PerformanceLevel::Pl2, PerformanceLevel::Pl3];
    let rejected = select_candidates(&essd(&levels, 100, Some(200)))
        .unwrap_err()
        .to_string();
    for range in ["PL2: no size from 461 GiB", "PL3: no size from 1261 GiB"] {
        assert!(rejected.contains(range), "{rejected}");
    }
}

#[test]
fn iops_and_bursting_are_limited_by_the_size() {
    let auto = |gib: u64, iops, bursting| NewDisk {
        provisioned_iops: iops,
        bursting,
        zones: vec![allowed("cn-a")],
        ..new_disk(&[Category::CloudAuto], gib << 30, None)
    };
    assert_eq!(candidates(&auto(10, 7000, true)).len(), 1);
    let rejected = select_candidates(&auto(10, 7001, false)).unwrap_err().to_string();
    assert!(
        rejected.contains("a disk of 10 GiB supports 0 to 7000 provisionedIops"),
        "{rejected}"
    );
    let rejected = select_candidates(&auto(3, 0, true)).unwrap_err().to_string();
    assert!(rejected.contains("cannot burst"), "{rejected}");
}

#[test]
fn zone_excludes_categories_that_its_nodes_do_not_support() {
    let supported = |zone, category: Category| AllowedZone {
        supported: Some([category].into()),
        ..allowed(zone)
    };
    let new = NewDisk {
        zones: vec![
            supported("cn-b", Category::CloudEssd),
            supported("cn-b", Category::CloudSsd),
            allowed("cn-a"),
        ],
        ..new_disk(&[Category::CloudSsd, Category::CloudEssd], 1, None)
    };
    let tried: Vec<_> = select_candidates(&new)
        .unwrap()
        .candidates
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
        zones: vec![supported("cn-b", Category::CloudAuto)],
        ..new
    };
    let rejected = select_candidates(&none).unwrap_err();
    assert!(matches!(rejected, Error::OutOfStock { .. }), "{rejected}");
    assert!(rejected.to_string().contains("cloud_auto"), "{rejected}");
}

#[test]
fn regional_category_is_attempted_once_without_a_zone() {
    let regional = Category::CloudRegionalDiskAuto;
    let new = new_disk(&[regional.clone(), Category::CloudSsd], 1, None);
    let wanted = [
        "cloud_regional_disk_auto in the region, 10 GiB",
        "cloud_ssd in cn-a, 20 GiB",
        "cloud_ssd in cn-b, 20 GiB",
    ];
    assert_eq!(candidates(&new), wanted);
    let nowhere = NewDisk {
        zones: Vec::new(),
        ..new_disk(&[regional], 1, None)
    };
    assert_eq!(candidates(&nowhere), wanted[..1]);
}

#[test]
fn multi_attach_disk_requires_a_shareable_category() {
    let new = NewDisk {
        multi_attach: true,
        zones: vec![allowed("cn-a")],
        ..new_disk(&[Category::CloudSsd, Category::CloudEssd], 1, None)
    };
    assert_eq!(candidates(&new), ["cloud_essd in cn-a, 20 GiB"]);
}

//! Sizes and performance levels of data disks (ECS API, disk categories).

use std::ops::RangeInclusive;

/// The sizes of a category in GiB, for its performance level where it has them. None for an unknown category.
pub(crate) fn sizes(category: &str, level: Option<&str>) -> Option<RangeInclusive<u32>> {
    Some(match (category, level) {
        ("cloud", _) => 5..=2000,
        ("cloud_efficiency" | "cloud_ssd", _) => 20..=32768,
        ("cloud_essd", Some("PL0")) => 1..=65536,
        ("cloud_essd", Some("PL2")) => 461..=65536,
        ("cloud_essd", Some("PL3")) => 1261..=65536,
        ("cloud_essd", _) => 20..=65536,
        ("cloud_auto", _) => 1..=65536,
        ("cloud_essd_entry", _) => 10..=32768,
        (REGIONAL, _) => 10..=65536,
        ("elastic_ephemeral_disk_standard" | "elastic_ephemeral_disk_premium", _) => 64..=8192,
        ("cloud_essd_xc0" | "cloud_essd_xc1", _) => 40..=65536,
        _ => return None,
    })
}

/// Maximum IOPS that can be provisioned on top of the baseline of a `cloud_auto` disk.
pub(crate) fn max_provisioned_iops(gib: u32) -> u32 {
    let (base, _) = performance("cloud_auto", None, gib);
    match gib {
        ..=3 => 0,
        _ => gib.saturating_mul(1000).saturating_sub(base).min(50_000),
    }
}

/// The ESSD family: its snapshots are usable immediately, and ten can be in progress.
pub(crate) fn is_essd(category: &str) -> bool {
    matches!(
        category,
        "cloud_essd" | "cloud_auto" | "cloud_essd_entry" | "cloud_essd_xc0" | "cloud_essd_xc1" | REGIONAL
    )
}

/// Elastic ephemeral disks, which are bound to the first instance that they are attached to.
pub(crate) fn is_ephemeral(category: &str) -> bool {
    category.starts_with("elastic_ephemeral_disk_")
}

/// Whether disks of this category support multi-attach.
pub(crate) fn is_shareable(category: &str) -> bool {
    matches!(category, "cloud_essd" | "cloud_auto")
}

pub(crate) const REGIONAL: &str = "cloud_regional_disk_auto";
pub(crate) const CATEGORIES: [&str; 10] = [
    "cloud",
    "cloud_efficiency",
    "cloud_ssd",
    "cloud_essd",
    "cloud_auto",
    "cloud_essd_entry",
    "elastic_ephemeral_disk_standard",
    "elastic_ephemeral_disk_premium",
    "cloud_essd_xc0",
    "cloud_essd_xc1",
];

/// Baseline IOPS and MB/s of a disk.
pub(crate) fn performance(category: &str, level: Option<&str>, gib: u32) -> (u32, u32) {
    let iops = |each: u32, most: u32| gib.saturating_mul(each).saturating_add(1800).min(most);
    // Throughput grows by hundredths of the size.
    let rate = |base: u32, percent: u32, most: u32| (gib.saturating_mul(percent) / 100).saturating_add(base).min(most);
    match (category, level) {
        ("cloud_efficiency", _) => (iops(8, 5000), rate(100, 15, 140)),
        ("cloud_ssd", _) => (iops(30, 25000), rate(120, 50, 300)),
        ("cloud_essd", Some("PL0")) => (iops(12, 10000), rate(100, 25, 180)),
        ("cloud_essd", Some("PL2")) => (iops(50, 100_000), rate(120, 50, 750)),
        ("cloud_essd", Some("PL3")) => (iops(50, 1_000_000), rate(120, 50, 4000)),
        ("cloud_essd", _) => (iops(50, 50000), rate(120, 50, 350)),
        ("cloud_auto", _) => (iops(50, 50000).max(3000), rate(120, 50, 350).max(125)),
        ("cloud_essd_entry", _) => (iops(8, 6000), rate(100, 15, 150)),
        (REGIONAL, _) => (iops(50, 50000), rate(120, 50, 350)),
        // Reads; the write limits are lower.
        ("elastic_ephemeral_disk_standard", _) => (gib.saturating_mul(100).min(820_000), rate(0, 80, 4096)),
        ("elastic_ephemeral_disk_premium", _) => (gib.saturating_mul(300).min(1_000_000), rate(0, 160, 4096)),
        _ => (300, 30),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_category_has_its_sizes() {
        for (category, level, range) in [
            ("cloud", None, 5..=2000),
            ("cloud_efficiency", None, 20..=32768),
            ("cloud_ssd", None, 20..=32768),
            ("cloud_essd", None, 20..=65536),
            ("cloud_essd", Some("PL0"), 1..=65536),
            ("cloud_essd", Some("PL1"), 20..=65536),
            ("cloud_essd", Some("PL2"), 461..=65536),
            ("cloud_essd", Some("PL3"), 1261..=65536),
            ("cloud_auto", None, 1..=65536),
            ("cloud_essd_entry", None, 10..=32768),
            ("elastic_ephemeral_disk_standard", None, 64..=8192),
            ("elastic_ephemeral_disk_premium", None, 64..=8192),
            ("cloud_essd_xc0", None, 40..=65536),
            ("cloud_essd_xc1", None, 40..=65536),
        ] {
            assert_eq!(sizes(category, level), Some(range), "{category} {level:?}");
        }
        assert_eq!(sizes("cloud_essd_xc9", None), None);
    }

    #[test]
    fn the_documented_example_disk_has_its_performance() {
        assert_eq!(performance("cloud_essd", Some("PL1"), 60), (4800, 150));
    }
}

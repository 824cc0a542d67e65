//! The performance of a disk by category, level and size: the formulas of the ECS page "Block storage performance",
//! also in the parameter tables of CreateDisk (`ProvisionedIops`) and ModifyDiskSpec. The limits of the instance type
//! apply in addition and are not included.

use std::fmt;

use ecs::model::category::{Category, PerformanceLevel, auto_baseline_iops};
use ecs::model::size::Gib;
use serde::Serialize;

/// Throughput in kB/s (1000 bytes), because the formulas have fractions of MB/s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(into = "f64")]
pub struct Throughput {
    pub kb_per_second: u32,
}

/// MB/s.
impl From<Throughput> for f64 {
    fn from(of: Throughput) -> Self {
        Self::from(of.kb_per_second) / 1000.0
    }
}

/// Such as `137.5 MB/s`.
impl fmt::Display for Throughput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.kb_per_second / 1000, self.kb_per_second % 1000);
        if rest == 0 {
            return write!(f, "{whole} MB/s");
        }
        let digits = format!("{rest:03}");
        write!(f, "{whole}.{} MB/s", digits.trim_end_matches('0'))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Performance {
    pub read_iops: u32,
    pub write_iops: u32,
    #[serde(rename = "readMBps")]
    pub read: Throughput,
    #[serde(rename = "writeMBps")]
    pub write: Throughput,
}

impl Performance {
    /// The performance of a disk without bursts; `None` if the cloud documents no formula. The level is that of a
    /// `cloud_essd` (default PL1), the IOPS are the provisioned ones of a `cloud_auto`. Most values grow linearly with
    /// the size in GiB, up to a maximum.
    pub fn of(category: &Category, level: Option<PerformanceLevel>, provisioned_iops: u32, size: Gib) -> Option<Self> {
        let linear = |base: u32, slope: u32, most: u32| base.saturating_add(slope.saturating_mul(size.0)).min(most);
        let same = |iops, throughput| [iops, iops, throughput, throughput];
        let pl1_throughput = linear(120_000, 500, 350_000);
        let pl1 = same(linear(1800, 50, 50_000), pl1_throughput);
        let [read_iops, write_iops, read, write] = match category {
            Category::CloudEfficiency => same(linear(1800, 8, 5000), linear(100_000, 150, 140_000)),
            Category::CloudEssdEntry => same(linear(1800, 8, 6000), linear(100_000, 150, 150_000)),
            Category::CloudSsd => same(linear(1800, 30, 25_000), linear(120_000, 500, 300_000)),
            Category::CloudEssd => match level.unwrap_or(PerformanceLevel::Pl1) {
                PerformanceLevel::Pl0 => same(linear(1800, 12, 10_000), linear(100_000, 250, 180_000)),
                PerformanceLevel::Pl1 => pl1,
                PerformanceLevel::Pl2 => same(linear(1800, 50, 100_000), linear(120_000, 500, 750_000)),
                PerformanceLevel::Pl3 => same(linear(1800, 50, 1_000_000), linear(120_000, 500, 4_000_000)),
            },
            Category::CloudRegionalDiskAuto => pl1,
            Category::CloudAuto => {
                let iops = auto_baseline_iops(size).saturating_add(provisioned_iops);
                // 16 KiB for each provisioned I/O, at most 4096 MB/s in total.
                let more = provisioned_iops.saturating_mul(1000) / 64;
                let base = pl1_throughput.max(125_000);
                same(iops, base.saturating_add(more).min(4_096_000))
            }
            Category::EphemeralStandard => [
                linear(0, 100, 820_000),
                linear(0, 20, 160_000),
                linear(0, 800, 4_096_000),
                linear(0, 400, 2_048_000),
            ],
            Category::EphemeralPremium => [
                linear(0, 300, 1_000_000),
                linear(0, 150, 500_000),
                linear(0, 1600, 4_096_000),
                linear(0, 1000, 2_048_000),
            ],
            Category::Cloud | Category::CloudEssdXc0 | Category::CloudEssdXc1 | Category::Other(_) => return None,
        };
        let throughput = |kb_per_second| Throughput { kb_per_second };
        Some(Self {
            read_iops,
            write_iops,
            read: throughput(read),
            write: throughput(write),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IOPS and kB/s for reads.
    fn read(category: &Category, level: Option<PerformanceLevel>, gib: u32) -> (u32, u32) {
        let all = Performance::of(category, level, 0, Gib(gib)).unwrap();
        (all.read_iops, all.read.kb_per_second)
    }

    #[test]
    fn each_category_reaches_its_maximum_at_the_size_of_its_formula() {
        for (category, gib, iops, kb) in [
            (Category::CloudEfficiency, 20, 1960, 103_000),
            (Category::CloudEfficiency, 266, 3928, 139_900),
            (Category::CloudEfficiency, 267, 3936, 140_000),
            (Category::CloudEfficiency, 400, 5000, 140_000),
            (Category::CloudEfficiency, 32768, 5000, 140_000),
            (Category::CloudEssdEntry, 10, 1880, 101_500),
            (Category::CloudEssdEntry, 525, 6000, 150_000),
            (Category::CloudSsd, 20, 2400, 130_000),
            (Category::CloudSsd, 360, 12_600, 300_000),
            (Category::CloudSsd, 773, 24_990, 300_000),
            (Category::CloudSsd, 774, 25_000, 300_000),
            (Category::CloudRegionalDiskAuto, 10, 2300, 125_000),
            (Category::EphemeralStandard, 64, 6400, 51_200),
            (Category::EphemeralPremium, 8192, 1_000_000, 4_096_000),
        ] {
            assert_eq!(read(&category, None, gib), (iops, kb), "{category} {gib}");
        }
    }

    #[test]
    fn a_level_of_an_essd_raises_only_the_maximum() {
        use PerformanceLevel::{Pl0, Pl1, Pl2, Pl3};
        let essd = Category::CloudEssd;
        for (level, gib, iops, kb) in [
            (Some(Pl0), 1, 1812, 100_250),
            (Some(Pl0), 684, 10_000, 180_000),
            (None, 20, 2800, 130_000),
            (Some(Pl1), 460, 24_800, 350_000),
            (Some(Pl1), 964, 50_000, 350_000),
            (Some(Pl2), 461, 24_850, 350_500),
            (Some(Pl2), 1964, 100_000, 750_000),
            (Some(Pl3), 1261, 64_850, 750_500),
            (Some(Pl3), 65536, 1_000_000, 4_000_000),
        ] {
            assert_eq!(read(&essd, level, gib), (iops, kb), "{level:?} {gib}");
        }
    }

    #[test]
    fn provisioned_iops_add_iops_and_16_kib_each() {
        let auto = |iops, gib| Performance::of(&Category::CloudAuto, None, iops, Gib(gib)).unwrap();
        assert_eq!(auto(0, 1).read_iops, 3000);
        assert_eq!(auto(0, 1).read.to_string(), "125 MB/s");
        assert_eq!(auto(1000, 100).write_iops, 7800);
        assert_eq!(auto(1000, 100).write.to_string(), "185.625 MB/s");
        assert_eq!(auto(50_000, 65536).read_iops, 100_000);
    }

    #[test]
    fn an_ephemeral_disk_writes_slower_than_it_reads() {
        let all = Performance::of(&Category::EphemeralStandard, None, 0, Gib(100)).unwrap();
        assert_eq!((all.read_iops, all.write_iops), (10_000, 2000));
        assert_eq!(all.write.to_string(), "40 MB/s");
    }

    #[test]
    fn a_category_without_a_documented_formula_has_no_performance() {
        for category in [Category::Cloud, Category::CloudEssdXc0] {
            assert_eq!(Performance::of(&category, None, 0, Gib(100)), None);
        }
    }
}

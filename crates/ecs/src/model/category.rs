//! Disk categories and performance levels, with their sizes.
//!
//! Sizes follow the block-storage performance page and the CreateDisk parameter table of the ECS API.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::Serialize;

use super::size::Gib;
use super::word::words;

/// Maximum provisioned IOPS of a `cloud_auto` of any size.
pub const MOST_PROVISIONED_IOPS: u32 = 50_000;

/// The smallest `cloud_auto` that supports bursting and provisioned IOPS.
const LEAST_BURST: Gib = Gib(4);

/// IOPS of a `cloud_auto` of C GiB without provisioned ones: max(min(1800 + 50 C, 50000), 3000).
#[must_use]
pub fn auto_baseline_iops(size: Gib) -> u32 {
    let grown = size.0.saturating_mul(50).saturating_add(1800);
    grown.clamp(3000, 50_000)
}

words! {
    /// The kind of disk, `DiskCategory` in the API.
    Category or Other:
    CloudEfficiency = "cloud_efficiency",
    CloudSsd = "cloud_ssd",
    /// Basic, not available for new instance types.
    Cloud = "cloud",
    /// The one that has performance levels.
    CloudEssd = "cloud_essd",
    /// ESSD AutoPL.
    CloudAuto = "cloud_auto",
    CloudEssdEntry = "cloud_essd_entry",
    /// Kept in several zones of the region, and bound to none.
    CloudRegionalDiskAuto = "cloud_regional_disk_auto",
    /// Bound to the first instance that it is attached to, and deleted with it.
    EphemeralStandard = "elastic_ephemeral_disk_standard",
    /// As the standard one, with more IOPS and throughput.
    EphemeralPremium = "elastic_ephemeral_disk_premium",
    /// Finance cloud only.
    CloudEssdXc0 = "cloud_essd_xc0",
    /// Finance cloud only.
    CloudEssdXc1 = "cloud_essd_xc1",
}

impl Category {
    /// The categories of `type: available`, in the order in which they are tried. The others must be named by a class:
    /// regional disks, ephemeral ones, which lose their data with the instance, and those of the finance cloud.
    pub const CREATABLE: [Self; 6] = [
        Self::CloudEfficiency,
        Self::CloudSsd,
        Self::Cloud,
        Self::CloudEssd,
        Self::CloudAuto,
        Self::CloudEssdEntry,
    ];

    /// The categories that `ModifyDiskSpec` changes into one another.
    pub const CONVERTIBLE: [Self; 4] = [Self::CloudEssd, Self::CloudAuto, Self::CloudSsd, Self::CloudEfficiency];

    /// Sizes of data disks of this category, at the cloud's default level (PL1 for `cloud_essd`).
    /// None for an unknown category.
    #[must_use]
    pub fn sizes(&self) -> Option<RangeInclusive<Gib>> {
        match self {
            Self::Cloud => Some(Gib(5)..=Gib(2000)),
            Self::CloudEfficiency | Self::CloudSsd => Some(Gib(20)..=Gib(32768)),
            Self::CloudEssd => Some(Gib(20)..=Gib(65536)),
            Self::CloudAuto => Some(Gib(1)..=Gib(65536)),
            Self::CloudEssdEntry => Some(Gib(10)..=Gib(32768)),
            Self::CloudRegionalDiskAuto => Some(Gib(10)..=Gib(65536)),
            Self::EphemeralStandard | Self::EphemeralPremium => Some(Gib(64)..=Gib(8192)),
            Self::CloudEssdXc0 | Self::CloudEssdXc1 => Some(Gib(40)..=Gib(65536)),
            Self::Other(_) => None,
        }
    }

    /// Sizes of data disks of this category at a level; [`Self::sizes`] for categories without levels.
    #[must_use]
    pub fn sizes_at(&self, level: Option<PerformanceLevel>) -> Option<RangeInclusive<Gib>> {
        match level {
            Some(level) if self.has_levels() => Some(level.sizes()),
            _ => self.sizes(),
        }
    }

    #[must_use]
    pub fn has_levels(&self) -> bool {
        *self == Self::CloudEssd
    }

    /// Whether disks support bursting and provisioned IOPS (ESSD AutoPL).
    #[must_use]
    pub fn has_burst(&self) -> bool {
        *self == Self::CloudAuto
    }

    /// Whether a disk of this size may burst: `cloud_auto` above 3 GiB.
    #[must_use]
    pub fn may_burst(&self, size: Gib) -> bool {
        self.has_burst() && size >= LEAST_BURST
    }

    /// Maximum provisioned IOPS of a disk of this size: for `cloud_auto` of C
    /// GiB min(1000 C - baseline, 50000), none up to 3 GiB, with a baseline of
    /// max(min(1800 + 50 C, 50000), 3000).
    #[must_use]
    pub fn most_provisioned_iops(&self, size: Gib) -> u32 {
        if !self.may_burst(size) {
            return 0;
        }
        let baseline = auto_baseline_iops(size);
        let most = size.0.saturating_mul(1000).saturating_sub(baseline);
        most.min(MOST_PROVISIONED_IOPS)
    }

    /// Whether a disk can be attached to several instances at the same time.
    #[must_use]
    pub fn is_shareable(&self) -> bool {
        matches!(self, Self::CloudEssd | Self::CloudAuto)
    }

    /// Whether a disk belongs to the region and not to one of its zones.
    #[must_use]
    pub fn is_regional(&self) -> bool {
        *self == Self::CloudRegionalDiskAuto
    }

    /// Whether a disk is bound to the first instance that it is attached to (elastic ephemeral disks): it is attached
    /// and detached with `DeleteWithInstance` only, never moved to another instance, and has no snapshots.
    #[must_use]
    pub fn is_ephemeral(&self) -> bool {
        matches!(self, Self::EphemeralStandard | Self::EphemeralPremium)
    }
}

/// The performance level of an ESSD (`PL0` to `PL3`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum PerformanceLevel {
    /// The slowest, from 1 GiB.
    Pl0,
    Pl1,
    Pl2,
    Pl3,
}

impl PerformanceLevel {
    /// All, from the slowest.
    pub const ALL: [Self; 4] = [Self::Pl0, Self::Pl1, Self::Pl2, Self::Pl3];

    /// Sizes of a `cloud_essd` at this level.
    #[must_use]
    pub fn sizes(self) -> RangeInclusive<Gib> {
        let least = match self {
            Self::Pl0 => 1,
            Self::Pl1 => 20,
            Self::Pl2 => 461,
            Self::Pl3 => 1261,
        };
        Gib(least)..=Gib(65536)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a performance level; allowed: PL0, PL1, PL2, PL3")]
pub struct UnknownLevel(String);

impl FromStr for PerformanceLevel {
    type Err = UnknownLevel;

    fn from_str(text: &str) -> Result<Self, UnknownLevel> {
        Self::ALL
            .into_iter()
            .find(|level| level.to_string().eq_ignore_ascii_case(text))
            .ok_or_else(|| UnknownLevel(text.to_owned()))
    }
}

/// The name in the API.
impl fmt::Display for PerformanceLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_creatable_category_has_a_name_and_sizes() {
        for category in Category::KNOWN {
            assert_eq!(category.as_str().parse().as_ref(), Ok(category));
            assert!(category.sizes().is_some(), "{category}");
        }
    }

    #[test]
    fn the_smallest_size_depends_on_the_level() {
        let least = |level| *Category::CloudEssd.sizes_at(level).unwrap().start();
        assert_eq!(least(None), least(Some(PerformanceLevel::Pl1)));
        let all = PerformanceLevel::ALL.map(|level| least(Some(level)).0);
        assert_eq!(all, [1, 20, 461, 1261]);
        let ssd = Category::CloudSsd;
        assert_eq!(ssd.sizes_at(Some(PerformanceLevel::Pl3)), ssd.sizes());
    }

    #[test]
    fn provisioned_iops_are_limited_by_the_size_of_an_auto_disk() {
        let most = |gib| Category::CloudAuto.most_provisioned_iops(Gib(gib));
        assert_eq!([1, 3, 4, 10, 40].map(most), [0, 0, 1000, 7000, 36_200]);
        assert_eq!([100, 65536].map(most), [50_000, 50_000]);
        assert_eq!(Category::CloudEssd.most_provisioned_iops(Gib(100)), 0);
    }

    #[test]
    fn an_unknown_category_keeps_its_name() {
        let Ok(category) = "local_ssd_pro".parse::<Category>();
        assert_eq!(category.to_string(), "local_ssd_pro");
        assert_eq!(category.sizes(), None);
        assert!(!category.is_ephemeral() && !category.is_shareable() && !category.is_regional());
    }

    #[test]
    fn each_category_has_the_sizes_of_the_documents() {
        let sizes = |category: &Category| {
            let sizes = category.sizes().unwrap();
            (sizes.start().0, sizes.end().0)
        };
        for (name, least, most) in [
            ("cloud", 5, 2000),
            ("cloud_efficiency", 20, 32768),
            ("cloud_ssd", 20, 32768),
            ("cloud_essd", 20, 65536),
            ("cloud_auto", 1, 65536),
            ("cloud_essd_entry", 10, 32768),
            ("cloud_regional_disk_auto", 10, 65536),
            ("elastic_ephemeral_disk_standard", 64, 8192),
            ("elastic_ephemeral_disk_premium", 64, 8192),
            ("cloud_essd_xc0", 40, 65536),
            ("cloud_essd_xc1", 40, 65536),
        ] {
            let Ok(category) = name.parse::<Category>();
            assert!(Category::KNOWN.contains(&category), "{name}");
            assert_eq!(sizes(&category), (least, most), "{name}");
        }
    }

    #[test]
    fn available_excludes_categories_that_lose_data_or_are_not_generally_available() {
        for name in [
            "cloud_regional_disk_auto",
            "elastic_ephemeral_disk_standard",
            "elastic_ephemeral_disk_premium",
            "cloud_essd_xc0",
            "cloud_essd_xc1",
        ] {
            let Ok(category) = name.parse::<Category>();
            assert!(!Category::CREATABLE.contains(&category), "{name}");
            assert!(!Category::CONVERTIBLE.contains(&category), "{name}");
            assert!(!category.is_shareable() && !category.has_burst() && !category.has_levels());
        }
        let known = Category::KNOWN.iter();
        let ephemeral: Vec<_> = known.filter(|category| category.is_ephemeral()).collect();
        assert_eq!(ephemeral, [&Category::EphemeralStandard, &Category::EphemeralPremium]);
    }
}

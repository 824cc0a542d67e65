//! Instance types: attach limits and supported disk categories.

use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct InstanceTypeSpec {
    pub(crate) name: String,
    pub(crate) cores: u32,
    pub(crate) memory_gib: u32,
    /// Maximum number of cloud disks, including the system disk.
    pub(crate) disk_quantity: u32,
    /// `required`, `supported` or `unsupported`.
    pub(crate) nvme: &'static str,
    pub(crate) categories: &'static [&'static str],
}

const OLD: &[&str] = &["cloud", "cloud_efficiency", "cloud_ssd", "cloud_essd"];
const MIDDLE: &[&str] = &[
    "cloud_efficiency",
    "cloud_ssd",
    "cloud_essd",
    "cloud_auto",
    "cloud_regional_disk_auto",
];
const NEW: &[&str] = &[
    "cloud_essd",
    "cloud_auto",
    "cloud_regional_disk_auto",
    "elastic_ephemeral_disk_standard",
    "elastic_ephemeral_disk_premium",
    "cloud_essd_xc0",
    "cloud_essd_xc1",
];
const ENTRY: &[&str] = &[
    "cloud_efficiency",
    "cloud_ssd",
    "cloud_essd",
    "cloud_auto",
    "cloud_essd_entry",
];

impl InstanceTypeSpec {
    /// The type of this name; the properties of an unknown type follow from its generation.
    pub(crate) fn named(name: &str) -> Self {
        let family = name.strip_prefix("ecs.").unwrap_or(name);
        let family = family.split('.').next().unwrap_or(family);
        let generation = family.chars().find_map(|c| c.to_digit(10));
        let (nvme, categories) = match (family, generation) {
            (family, _) if family.starts_with("u1") || family == "e" || family.starts_with("e-") => {
                ("unsupported", ENTRY)
            }
            ("g7se", _) | (_, Some(8..)) => ("required", NEW),
            (_, Some(7)) => ("unsupported", NEW),
            (_, Some(..=5)) => ("unsupported", OLD),
            _ => ("unsupported", MIDDLE),
        };
        let disk_quantity = match name {
            "ecs.g7se.16xlarge" => 56,
            _ => 17,
        };
        Self {
            name: name.to_owned(),
            cores: 2,
            memory_gib: 8,
            disk_quantity,
            nvme,
            categories,
        }
    }

    pub(crate) fn supports(&self, category: &str) -> bool {
        self.categories.contains(&category)
    }
}

/// The types in a list without names.
pub(crate) const KNOWN: [&str; 7] = [
    "ecs.e-c1m2.large",
    "ecs.g5.large",
    "ecs.g6.large",
    "ecs.g7.large",
    "ecs.g7se.16xlarge",
    "ecs.g8i.large",
    "ecs.u1-c1m2.large",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_differ_in_disks_nvme_and_categories() {
        let g6 = InstanceTypeSpec::named("ecs.g6.large");
        assert_eq!((g6.disk_quantity, g6.nvme), (17, "unsupported"));
        assert!(g6.supports("cloud_efficiency") && !g6.supports("cloud"));
        assert_eq!(InstanceTypeSpec::named("ecs.g7se.16xlarge").disk_quantity, 56);
        assert!(InstanceTypeSpec::named("ecs.u1-c1m2.large").supports("cloud_essd_entry"));
        assert!(InstanceTypeSpec::named("ecs.e-c1m2.large").supports("cloud_essd_entry"));
        assert!(!InstanceTypeSpec::named("ecs.g8i.large").supports("cloud_ssd"));
    }
}

//! Instance types: how many disks they take, and which.

use serde::Serialize;

/// An instance type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct MachineType {
    pub(crate) name: String,
    pub(crate) cores: u32,
    pub(crate) memory_gib: u32,
    /// Cloud disks, the system disk included.
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

impl MachineType {
    /// The type of this name; what an unknown one takes follows from its generation.
    pub(crate) fn named(name: &str) -> Self {
        let family = name.strip_prefix("ecs.").unwrap_or(name);
        let family = family.split('.').next().unwrap_or(family);
        let generation = family.chars().find_map(|c| c.to_digit(10));
        let (nvme, categories) = match (family, generation) {
            (family, _)
                if family.starts_with("u1") || family == "e" || family.starts_with("e-") =>
            {
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

    pub(crate) fn takes(&self, category: &str) -> bool {
        self.categories.contains(&category)
    }
}

/// The types that a list without names shows.
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
        let g6 = MachineType::named("ecs.g6.large");
        assert_eq!((g6.disk_quantity, g6.nvme), (17, "unsupported"));
        assert!(g6.takes("cloud_efficiency") && !g6.takes("cloud"));
        assert_eq!(MachineType::named("ecs.g7se.16xlarge").disk_quantity, 56);
        assert!(MachineType::named("ecs.u1-c1m2.large").takes("cloud_essd_entry"));
        assert!(MachineType::named("ecs.e-c1m2.large").takes("cloud_essd_entry"));
        assert!(!MachineType::named("ecs.g8i.large").takes("cloud_ssd"));
    }
}

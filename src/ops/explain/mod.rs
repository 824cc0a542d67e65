//! What the classes and claims in YAML files do with this driver. The parser and the selection of candidates are those
//! of the driver; nothing is created.

use crate::disk::candidates::RegionStock;
use crate::model::{Bytes, DriverName, RegionId, ZoneId};

mod attributes_class;
mod candidate;
mod claim;
mod flags;
mod manifest;
mod parameters;
mod parsed_class;
mod report;
mod request;
mod run;
mod sidecar;
mod snapshot_class;
mod storage_class;
#[cfg(test)]
mod tests;
mod text;
mod volume_settings;

pub use flags::Flags;
use manifest::{Manifest, Object, UnknownField};
use report::{Explained, Explanation, Outcome};
pub use run::run;

/// Name of the vendor's driver.
const VENDOR: &str = "diskplugin.csi.alibabacloud.com";

/// What an explanation depends on besides the files.
#[derive(Debug, Clone)]
pub struct Settings {
    pub driver: DriverName,
    /// Size of volumes of classes without a claim.
    pub size: Bytes,
    pub region: Option<RegionId>,
    /// Zone of the node.
    pub zone: Option<ZoneId>,
    pub stock: RegionStock,
}

/// Whose class an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Driver,
    Vendor,
    Other,
}

impl Settings {
    fn owner(&self, driver: &str) -> Owner {
        match driver {
            _ if driver == self.driver.as_str() => Owner::Driver,
            VENDOR => Owner::Vendor,
            _ => Owner::Other,
        }
    }

    /// A class of the vendor's driver, before its migration.
    fn note_vendor(&self, field: &str, to: &mut Explained) {
        to.note(format!(
            "a class of the vendor's driver, explained as if its {field} were {}; the migration guide lists what differs",
            self.driver
        ));
    }

    fn other_driver(&self, field: &str, driver: &str) -> String {
        format!(
            "its {field} is {driver:?}, not {}; --driver-name sets another name",
            self.driver
        )
    }
}

/// Explains the objects, in their order.
#[must_use]
pub fn explain(manifests: &[Manifest], settings: &Settings) -> Explanation {
    let objects = manifests.iter().map(|manifest| {
        let to = Explained::of(&manifest.kind, &manifest.name);
        let mut explained = match &manifest.object {
            Object::StorageClass(class) => storage_class::explain(class, settings, to),
            Object::Claim(claim) => claim::explain(claim, manifests, settings, to),
            Object::AttributesClass(class) => attributes_class::explain(class, settings, to),
            Object::SnapshotClass(class) => snapshot_class::explain(class, false, settings, to),
            Object::GroupSnapshotClass(class) => snapshot_class::explain(class, true, settings, to),
            Object::Other => to.skip("not a class or claim that this command explains"),
            Object::Malformed(error) => {
                let mut to = to;
                to.reject("", &format!("Kubernetes rejects the object: {error}"));
                to
            }
        };
        if explained.result != Outcome::Skipped {
            for UnknownField { field, allowed } in &manifest.unknown {
                explained.reject(field, &format!("unknown field {field:?}; allowed: {allowed}"));
            }
        }
        explained
    });
    Explanation {
        driver: settings.driver.to_string(),
        objects: objects.collect(),
    }
}

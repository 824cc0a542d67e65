//! What an explanation depends on besides the files.

use super::manifest::Class;
use crate::disk::candidates::RegionStock;
use crate::model::{Bytes, DriverName, RegionId, ZoneId};

/// Name of the vendor's driver, whose classes are explained before their migration.
const VENDOR: &str = "diskplugin.csi.alibabacloud.com";

#[derive(Debug, Clone)]
pub(super) struct ExplainSettings {
    pub(super) driver: DriverName,
    /// Size of volumes of classes without a claim.
    pub(super) size: Bytes,
    pub(super) region: Option<RegionId>,
    /// Zone of the node.
    pub(super) zone: Option<ZoneId>,
    pub(super) stock: RegionStock,
}

impl ExplainSettings {
    /// Why a class is skipped; none if its driver is this one.
    pub(super) fn other_driver(&self, class: &Class) -> Option<String> {
        let (own, driver) = (self.driver.as_str(), class.provisioner.as_str());
        (![own, VENDOR].contains(&driver))
            .then(|| format!("its driver is {driver:?}, not {own}; --driver-name sets another name"))
    }
}

//! Explains objects by their kind.

use super::manifest::{Manifest, Object};
use super::report::{Explained, Explanation};
use super::settings::ExplainSettings;
use super::{attributes_class, claim, snapshot_class, storage_class};

/// Explains the objects, in their order.
pub(super) fn explain(manifests: &[Manifest], settings: &ExplainSettings) -> Explanation {
    let objects = manifests.iter().map(|manifest| {
        let mut to = Explained::of(&manifest.kind, &manifest.name);
        match &manifest.object {
            Object::StorageClass(class) => storage_class::explain(class, settings, to),
            Object::Claim(claim) => claim::explain(claim, manifests, settings, to),
            Object::AttributesClass(class) => attributes_class::explain(class, settings, to),
            Object::SnapshotClass(class) => snapshot_class::explain(class, false, settings, to),
            Object::GroupSnapshotClass(class) => snapshot_class::explain(class, true, settings, to),
            Object::Other => to.skip("not a class or claim that this command explains"),
            Object::Malformed(error) => {
                to.reject("", &format!("Kubernetes rejects the object: {error}"));
                to
            }
        }
    });
    Explanation {
        driver: settings.driver.to_string(),
        objects: objects.collect(),
    }
}

//! Explains objects by their kind.

use super::manifest::{Class, ClassKind, Manifest, Object};
use super::report::{Explained, Explanation};
use super::request::create_volume;
use super::settings::ExplainSettings;
use super::{attributes_class, claim, parameters, storage_class};
use crate::csi::param::snapshot::SnapshotClass;

/// Explains the objects, in their order.
pub(super) fn explain(manifests: &[Manifest], settings: &ExplainSettings) -> Explanation {
    let objects = manifests.iter().map(|manifest| {
        let mut to = Explained {
            kind: manifest.kind.clone(),
            name: manifest.name.clone(),
            ..Explained::default()
        };
        match &manifest.object {
            Object::Class(kind, class) => explain_class(*kind, class, settings, &mut to),
            Object::Claim(claim) => claim::explain(claim, manifests, settings, &mut to),
            Object::Other => to.skip("not a class or claim that this command explains"),
            Object::Malformed(error) => to.reject("", &format!("Kubernetes rejects the object: {error}")),
        }
        to
    });
    Explanation {
        driver: settings.driver.to_string(),
        objects: objects.collect(),
    }
}

fn explain_class(kind: ClassKind, class: &Class, settings: &ExplainSettings, to: &mut Explained) {
    if let Some(why) = settings.other_driver(class) {
        return to.skip(why);
    }
    let read = match kind {
        ClassKind::Storage => return storage_class::explain(class, create_volume(settings.size), settings, to),
        ClassKind::Attributes => return attributes_class::explain(class, settings, to),
        ClassKind::Snapshot => SnapshotClass::read,
        ClassKind::GroupSnapshot => SnapshotClass::read_of_group,
    };
    let mut map = parameters::strings(class, to);
    parameters::parse_all(&mut map, to, read);
}

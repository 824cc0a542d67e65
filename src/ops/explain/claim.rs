//! A PersistentVolumeClaim, with the classes that it names.

use std::collections::BTreeMap;

use serde_json::Value;

use super::manifest::{Claim, ClaimSpec, Manifest, Object, StorageClass};
use super::parameters::{self, Map};
use super::report::{Explained, Outcome};
use super::request::Draft;
use super::settings::ExplainSettings;
use super::storage_class;
use crate::csi::param::mutable;
use crate::csi::proto::volume_capability::access_mode::Mode;
use crate::csi::proto::volume_content_source::{SnapshotSource, Type, VolumeSource};
use crate::model::{Bytes, SizeRange, quantity};

/// Annotation of the StorageClass of claims that name none.
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

/// The modes of external-provisioner for a driver with SINGLE_NODE_MULTI_WRITER.
const MODES: [(&str, Mode); 4] = [
    ("ReadWriteOnce", Mode::SingleNodeMultiWriter),
    ("ReadWriteOncePod", Mode::SingleNodeSingleWriter),
    ("ReadOnlyMany", Mode::MultiNodeReaderOnly),
    ("ReadWriteMany", Mode::MultiNodeMultiWriter),
];

pub(super) fn explain(
    claim: &Claim,
    manifests: &[Manifest],
    settings: &ExplainSettings,
    mut to: Explained,
) -> Explained {
    let spec = &claim.spec;
    if spec.volume_name.as_deref().is_some_and(|name| !name.is_empty()) {
        return to.skip("it names a PersistentVolume (volumeName), so nothing is created for it");
    }
    let class = match find_class(claim, manifests) {
        Ok(class) => class,
        Err(why) => return to.skip(why),
    };
    if let Some(why) = settings.other_driver("provisioner", &class.provisioner) {
        return to.skip(why);
    }
    let name = &class.metadata.name;
    if storage_class::is_rejected(class, settings) {
        let text = format!("StorageClass {name:?} is rejected, see there");
        to.reject("spec.storageClassName", &text);
        return to;
    }
    if spec.selector.is_some() {
        let text = "csi-provisioner creates no volume for a claim with a selector";
        to.reject("spec.selector", text);
    }
    let mut draft = Draft {
        claim: claim.metadata.name.clone(),
        namespace: claim.metadata.namespace.clone(),
        block: spec.volume_mode.as_deref() == Some("Block"),
        source: source(spec),
        mutable: attributes(spec, class, manifests, &mut to),
        ..Draft::of(settings.size)
    };
    let parameters = parameters::strings(class.parameters.as_ref(), &mut to);
    draft.modes = modes(spec, &draft, &parameters, settings, &mut to);
    draft.size = size(spec, settings, &mut to);
    if to.result == Outcome::Accepted {
        storage_class::add_volume(class, &draft, settings, &mut to);
    }
    to
}

/// The StorageClass of the claim, or why it is unknown.
fn find_class<'a>(claim: &Claim, manifests: &'a [Manifest]) -> Result<&'a StorageClass, String> {
    let mut classes = manifests.iter().filter_map(|of| match &of.object {
        Object::StorageClass(class) => Some(class),
        _ => None,
    });
    match claim.spec.storage_class_name.as_deref() {
        Some("") => Err("its storageClassName is empty, so nothing is created for it".to_owned()),
        Some(name) => classes
            .find(|class| class.metadata.name == name)
            .ok_or_else(|| format!("its StorageClass {name:?} is not in the files; name the file of the class too")),
        None => classes
            .find(|class| class.metadata.annotation(DEFAULT_CLASS) == Some("true"))
            .ok_or_else(|| "it names no StorageClass, and no class in the files is the default".to_owned()),
    }
}

/// A source with an ID that the driver accepts: that of the object is known only in the cluster. None if a volume
/// populator fills the volume.
fn source(spec: &ClaimSpec) -> Option<Type> {
    let source = spec.data_source.as_ref().or(spec.data_source_ref.as_ref())?;
    match (source.api_group.as_deref().unwrap_or_default(), &*source.kind) {
        ("snapshot.storage.k8s.io", "VolumeSnapshot") => Some(Type::Snapshot(SnapshotSource {
            snapshot_id: "s-source".to_owned(),
        })),
        ("", "PersistentVolumeClaim") => Some(Type::Volume(VolumeSource {
            volume_id: "d-source".to_owned(),
        })),
        _ => None,
    }
}

/// The requested size. Kubernetes rejects a claim without one.
fn size(spec: &ClaimSpec, settings: &ExplainSettings, to: &mut Explained) -> SizeRange {
    let required = requested(spec.resources.requests.as_ref(), "requests", to);
    let limit = requested(spec.resources.limits.as_ref(), "limits", to);
    SizeRange {
        required: required.or(Some(settings.size)),
        limit,
    }
}

fn requested(given: Option<&BTreeMap<String, Value>>, kind: &str, to: &mut Explained) -> Option<Bytes> {
    let text = match given?.get("storage")? {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let reject = |error| to.reject(format!("spec.resources.{kind}.storage"), &error);
    quantity::parse(&text).map_err(reject).ok()
}

/// The parameters of the VolumeAttributesClass of the claim.
fn attributes(spec: &ClaimSpec, storage_class: &StorageClass, manifests: &[Manifest], to: &mut Explained) -> Map {
    let name = spec.volume_attributes_class_name.as_deref();
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Map::new();
    };
    let class = manifests.iter().find_map(|of| match &of.object {
        Object::AttributesClass(class) if of.name == name => Some(class),
        _ => None,
    });
    let Some(class) = class else {
        to.note(format!(
            "VolumeAttributesClass {name:?} is not in the files, so its effect is not shown; name its file too"
        ));
        return Map::new();
    };
    let mut own = Explained::default();
    let map = parameters::strings(class.parameters.as_ref(), &mut own);
    let is_accepted = own.result == Outcome::Accepted && mutable::read(&map).is_ok();
    if is_accepted && class.driver_name == storage_class.provisioner {
        return map;
    }
    let text = format!("VolumeAttributesClass {name:?} is rejected, or its driver is not that of the StorageClass");
    to.reject("spec.volumeAttributesClassName", &text);
    Map::new()
}

/// The access modes that the driver accepts, each checked alone. Kubernetes rejects others.
fn modes(spec: &ClaimSpec, draft: &Draft, class: &Map, settings: &ExplainSettings, to: &mut Explained) -> Vec<Mode> {
    let given = spec.access_modes.as_deref().unwrap_or_default();
    let mut accepted = Vec::new();
    for (n, name) in given.iter().enumerate() {
        let mut known = MODES.iter().filter(|(known, _)| known == name);
        let Some((_, mode)) = known.next() else { continue };
        let one = Draft {
            modes: vec![*mode],
            source: None,
            mutable: Map::new(),
            ..draft.clone()
        };
        match one.new_disk(class, settings) {
            Ok(_) => accepted.push(*mode),
            Err(error) => to.reject(format!("spec.accessModes[{n}]"), &format!("{name}: {error}")),
        }
    }
    match accepted.is_empty() {
        true => draft.modes.clone(),
        false => accepted,
    }
}

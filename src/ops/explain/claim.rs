//! A PersistentVolumeClaim, with the classes that it names.

use serde_json::Value;

use super::manifest::{Claim, ClaimSpec, Class, ClassKind, Manifest, Object};
use super::parameters::{self, Map};
use super::report::{Explained, Outcome};
use super::request::{capability, create_volume, metadata, new_disk};
use super::settings::ExplainSettings;
use super::storage_class;
use crate::csi::param::mutable;
use crate::csi::proto::volume_capability::access_mode::Mode;
use crate::csi::proto::volume_content_source::{SnapshotSource, Type, VolumeSource};
use crate::csi::proto::{CapacityRange, CreateVolumeRequest, VolumeCapability, VolumeContentSource};
use crate::model::{Bytes, quantity};

/// Annotation of the StorageClass of claims that name none.
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

/// The modes of external-provisioner for a driver with SINGLE_NODE_MULTI_WRITER.
const MODES: [(&str, Mode); 4] = [
    ("ReadWriteOnce", Mode::SingleNodeMultiWriter),
    ("ReadWriteOncePod", Mode::SingleNodeSingleWriter),
    ("ReadOnlyMany", Mode::MultiNodeReaderOnly),
    ("ReadWriteMany", Mode::MultiNodeMultiWriter),
];

pub(super) fn explain(claim: &Claim, manifests: &[Manifest], settings: &ExplainSettings, to: &mut Explained) {
    let spec = &claim.spec;
    if spec.volume_name.as_deref().is_some_and(|name| !name.is_empty()) {
        return to.skip("it names a PersistentVolume (volumeName), so nothing is created for it");
    }
    let class = match find_class(claim, manifests) {
        Ok(class) => class,
        Err(why) => return to.skip(why),
    };
    if let Some(why) = settings.other_driver(class) {
        return to.skip(why);
    }
    if storage_class::is_rejected(class, settings) {
        let text = format!("StorageClass {:?} is rejected, see there", class.metadata.name);
        return to.reject("spec.storageClassName", &text);
    }
    if spec.selector.is_some() {
        let text = "csi-provisioner creates no volume for a claim with a selector";
        to.reject("spec.selector", text);
    }
    let namespace = claim.metadata.namespace.as_deref().unwrap_or("default");
    let request = CreateVolumeRequest {
        parameters: metadata(&claim.metadata.name, namespace),
        volume_content_source: source(spec),
        mutable_parameters: attributes(spec, class, manifests, to),
        volume_capabilities: capabilities(spec, class, settings, to),
        capacity_range: Some(size(spec, settings, to)),
        ..create_volume(settings.size)
    };
    if to.result == Outcome::Accepted {
        storage_class::explain(class, request, settings, to);
    }
}

/// The classes of a kind in the files.
fn classes(manifests: &[Manifest], wanted: ClassKind) -> impl Iterator<Item = &Class> {
    manifests.iter().filter_map(move |of| match &of.object {
        Object::Class(kind, class) if *kind == wanted => Some(class.as_ref()),
        _ => None,
    })
}

/// The StorageClass of the claim, or why it is unknown.
fn find_class<'a>(claim: &Claim, manifests: &'a [Manifest]) -> Result<&'a Class, String> {
    let mut classes = classes(manifests, ClassKind::Storage);
    let is_default = |class: &&Class| {
        let mut annotations = class.metadata.annotations.iter().flatten();
        annotations.any(|(key, value)| key == DEFAULT_CLASS && value == "true")
    };
    match claim.spec.storage_class_name.as_deref() {
        Some("") => Err("its storageClassName is empty, so nothing is created for it".to_owned()),
        Some(name) => classes
            .find(|class| class.metadata.name == name)
            .ok_or_else(|| format!("its StorageClass {name:?} is not in the files; name the file of the class too")),
        None => classes
            .find(is_default)
            .ok_or_else(|| "it names no StorageClass, and no class in the files is the default".to_owned()),
    }
}

/// A source with an ID that the driver accepts: that of the object is known only in the cluster. None if a volume
/// populator fills the volume.
fn source(spec: &ClaimSpec) -> Option<VolumeContentSource> {
    let source = spec.data_source.as_ref().or(spec.data_source_ref.as_ref())?;
    let source = match (source.api_group.as_deref().unwrap_or_default(), &*source.kind) {
        ("snapshot.storage.k8s.io", "VolumeSnapshot") => Type::Snapshot(SnapshotSource {
            snapshot_id: "s-source".to_owned(),
        }),
        ("", "PersistentVolumeClaim") => Type::Volume(VolumeSource {
            volume_id: "d-source".to_owned(),
        }),
        _ => return None,
    };
    Some(VolumeContentSource { r#type: Some(source) })
}

/// The requested size. Kubernetes rejects a claim without one.
fn size(spec: &ClaimSpec, settings: &ExplainSettings, to: &mut Explained) -> CapacityRange {
    let required = requested(spec, "requests", to);
    let limit = requested(spec, "limits", to);
    CapacityRange {
        required_bytes: required.unwrap_or(settings.size).to_i64(),
        limit_bytes: limit.map_or(0, Bytes::to_i64),
    }
}

fn requested(spec: &ClaimSpec, kind: &str, to: &mut Explained) -> Option<Bytes> {
    let text = match spec.resources.get(kind)?.as_ref()?.get("storage")? {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let reject = |error| to.reject(format!("spec.resources.{kind}.storage"), &error);
    quantity::parse(&text).map_err(reject).ok()
}

/// The parameters of the VolumeAttributesClass of the claim.
fn attributes(spec: &ClaimSpec, storage_class: &Class, manifests: &[Manifest], to: &mut Explained) -> Map {
    let name = spec.volume_attributes_class_name.as_deref();
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Map::new();
    };
    let mut classes = classes(manifests, ClassKind::Attributes);
    let Some(class) = classes.find(|class| class.metadata.name == name) else {
        to.note(format!(
            "VolumeAttributesClass {name:?} is not in the files, so its effect is not shown; name its file too"
        ));
        return Map::new();
    };
    let mut own = Explained::default();
    let map = parameters::strings(class, &mut own);
    let is_accepted = own.result == Outcome::Accepted && mutable::read(&map).is_ok();
    if is_accepted && class.provisioner == storage_class.provisioner {
        return map;
    }
    let text = format!("VolumeAttributesClass {name:?} is rejected, or its driver is not that of the StorageClass");
    to.reject("spec.volumeAttributesClassName", &text);
    Map::new()
}

/// The capabilities with the access modes that the driver accepts, each checked alone. Kubernetes rejects other modes.
fn capabilities(
    spec: &ClaimSpec,
    class: &Class,
    settings: &ExplainSettings,
    to: &mut Explained,
) -> Vec<VolumeCapability> {
    let is_block = spec.volume_mode.as_deref() == Some("Block");
    let parameters = parameters::strings(class, to);
    let mut accepted = Vec::new();
    for (n, name) in spec.access_modes.iter().flatten().enumerate() {
        let mut known = MODES.iter().filter(|(known, _)| known == name);
        let Some((_, mode)) = known.next() else { continue };
        let capability = capability(*mode, is_block);
        let request = CreateVolumeRequest {
            volume_capabilities: vec![capability.clone()],
            volume_content_source: source(spec),
            ..create_volume(settings.size)
        };
        match new_disk(&request, &parameters, settings) {
            Ok(_) => accepted.push(capability),
            Err(error) => to.reject(format!("spec.accessModes[{n}]"), &format!("{name}: {error}")),
        }
    }
    if accepted.is_empty() {
        accepted.push(capability(Mode::SingleNodeMultiWriter, is_block));
    }
    accepted
}

//! A PersistentVolumeClaim, with the classes that it names.

use std::collections::BTreeMap;

use serde_json::Value;

use super::manifest::{AttributesClass, Claim, Manifest, Object, StorageClass};
use super::parameters::{self, Map};
use super::report::{Explained, Outcome};
use super::request::{Draft, Source};
use super::{Owner, Settings, candidate, storage_class, volume_settings};
use crate::csi::param::mutable;
use crate::csi::proto::volume_capability::access_mode::Mode;
use crate::model::{Bytes, SizeRange, quantity};

/// Annotation of the StorageClass of claims that name none.
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

pub(super) fn explain(claim: &Claim, manifests: &[Manifest], settings: &Settings, mut to: Explained) -> Explained {
    let spec = &claim.spec;
    if spec.volume_name.as_deref().is_some_and(|name| !name.is_empty()) {
        return to.skip("it names a PersistentVolume (volumeName), so nothing is created for it");
    }
    let class = match find_class(claim, manifests) {
        Ok(class) => class,
        Err(why) => return to.skip(why),
    };
    let owner = settings.owner(&class.provisioner);
    if owner == Owner::Other {
        return to.skip(settings.other_driver("provisioner", &class.provisioner));
    }
    to.set("storageClassName", class.metadata.name.clone());
    if storage_class::is_rejected(class, settings) {
        let name = &class.metadata.name;
        to.reject(
            "spec.storageClassName",
            &format!("StorageClass {name:?} is rejected, see there"),
        );
        return to;
    }
    let mut draft = Draft::of(settings.size);
    draft.claim.clone_from(&claim.metadata.name);
    if let Some(namespace) = &claim.metadata.namespace {
        draft.namespace.clone_from(namespace);
    }
    draft.block = spec.volume_mode.as_deref() == Some("Block");
    check_volume_mode(claim, &mut to);
    if spec.selector.as_ref().is_some_and(|selector| !selector.is_null()) {
        let text = "csi-provisioner creates no volume for a claim with a selector";
        to.reject("spec.selector", text);
    }
    draft.source = source(claim, &mut to);
    if let Some(size) = size(claim, &mut to) {
        draft.size = size;
    }
    draft.mutable = attributes(claim, class, manifests, &mut to);
    draft.modes = modes(claim, class, &draft, settings, &mut to);
    if to.result == Outcome::Rejected || draft.modes.is_empty() {
        return to;
    }
    if let Some(parsed) = storage_class::parse(class, draft.clone(), settings, &mut to) {
        volume_settings::add(class, &parsed, &draft, settings, &mut to);
        candidate::add(&parsed.new, settings, &mut to);
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

fn check_volume_mode(claim: &Claim, to: &mut Explained) {
    let mode = claim.spec.volume_mode.as_deref().unwrap_or("Filesystem");
    if !["Block", "Filesystem"].contains(&mode) {
        let text = format!("volumeMode has value {mode:?}; allowed: Filesystem, Block");
        to.reject("spec.volumeMode", &text);
    }
    to.set("volumeMode", mode);
}

fn source(claim: &Claim, to: &mut Explained) -> Option<Source> {
    let spec = &claim.spec;
    let (field, source) = match (&spec.data_source, &spec.data_source_ref) {
        (Some(source), _) => ("spec.dataSource", source),
        (None, Some(source)) => ("spec.dataSourceRef", source),
        (None, None) => return None,
    };
    let text = format!("{} {}", source.kind, source.name);
    let group = source.api_group.as_deref().unwrap_or_default();
    let namespace = source.namespace.as_deref().filter(|name| !name.is_empty());
    if namespace.is_some_and(|name| Some(name) != claim.metadata.namespace.as_deref()) {
        to.note(
            "a source in another namespace needs a ReferenceGrant and the feature gate CrossNamespaceVolumeDataSource",
        );
    }
    match (group, &*source.kind) {
        ("snapshot.storage.k8s.io", "VolumeSnapshot") => {
            let effect = "the disk has at least the size of the source of the snapshot";
            to.set_with("dataSource", text, effect);
            Some(Source::Snapshot)
        }
        ("", "PersistentVolumeClaim") => {
            let effect = "cloned through a temporary snapshot; at least the size of its source";
            to.set_with("dataSource", text, effect);
            Some(Source::Volume)
        }
        ("", kind) => {
            let text = format!(
                "{field} has kind {kind:?} without apiGroup, where only PersistentVolumeClaim is allowed; the apiGroup of \
                 VolumeSnapshot is snapshot.storage.k8s.io"
            );
            to.reject(format!("{field}.apiGroup"), &text);
            None
        }
        (group, kind) => {
            let effect = format!("filled by the volume populator of {kind} ({group})");
            to.set_with("dataSource", text, effect);
            None
        }
    }
}

fn size(claim: &Claim, to: &mut Explained) -> Option<SizeRange> {
    let resources = &claim.spec.resources;
    let required = quantity(resources.requests.as_ref(), "requests", to);
    let limit = quantity(resources.limits.as_ref(), "limits", to);
    let Some(required) = required else {
        let text = "spec.resources.requests.storage is required";
        to.reject("spec.resources.requests.storage", &text);
        return None;
    };
    if required == Bytes(0) && to.problems.is_empty() {
        let text = "spec.resources.requests.storage is 0; allowed: a positive quantity";
        to.reject("spec.resources.requests.storage", text);
    }
    let rounded = required.gib_ceil().map_or_else(String::new, |gib| gib.to_string());
    let effect = match limit {
        None => "requested, rounded up to whole GiB".to_owned(),
        Some(limit) => format!("requested, rounded up to whole GiB; at most {limit}"),
    };
    to.set_with("size", rounded, effect);
    Some(SizeRange {
        required: Some(required),
        limit,
    })
}

fn quantity(given: Option<&BTreeMap<String, Value>>, kind: &str, to: &mut Explained) -> Option<Bytes> {
    let value = given?.get("storage")?;
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match quantity::parse(&text) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            to.reject(format!("spec.resources.{kind}.storage"), &error);
            // Not missing as well.
            Some(Bytes(0))
        }
    }
}

/// The parameters of the VolumeAttributesClass of the claim.
fn attributes(claim: &Claim, storage_class: &StorageClass, manifests: &[Manifest], to: &mut Explained) -> Map {
    let name = claim.spec.volume_attributes_class_name.as_deref();
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Map::new();
    };
    to.set("volumeAttributesClassName", name);
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
    accepted(name, class, storage_class, to)
}

fn accepted(name: &str, class: &AttributesClass, storage_class: &StorageClass, to: &mut Explained) -> Map {
    let field = "spec.volumeAttributesClassName";
    let (driver, provisioner) = (&class.driver_name, &storage_class.provisioner);
    if driver != provisioner {
        let text = format!(
            "VolumeAttributesClass {name:?} has driverName {driver:?}, and the StorageClass has provisioner {provisioner:?}"
        );
        to.reject(field, &text);
        return Map::new();
    }
    let mut unused = Explained::default();
    let map = parameters::strings(class.parameters.as_ref(), &mut unused);
    if unused.result == Outcome::Rejected || mutable::read(&map).is_err() {
        to.reject(field, &format!("VolumeAttributesClass {name:?} is rejected, see there"));
        return Map::new();
    }
    map
}

/// The access modes that the driver accepts, each checked alone.
fn modes(claim: &Claim, class: &StorageClass, draft: &Draft, settings: &Settings, to: &mut Explained) -> Vec<Mode> {
    let given = claim.spec.access_modes.as_deref().unwrap_or_default();
    if given.is_empty() {
        to.reject("spec.accessModes", "spec.accessModes is required");
    }
    let mut unused = Explained::default();
    let parameters = parameters::strings(class.parameters.as_ref(), &mut unused);
    let mut modes = Vec::new();
    for (n, name) in given.iter().enumerate() {
        let field = format!("spec.accessModes[{n}]");
        // The modes of external-provisioner for a driver with SINGLE_NODE_MULTI_WRITER.
        let mode = match &**name {
            "ReadWriteOnce" => Mode::SingleNodeMultiWriter,
            "ReadWriteOncePod" => Mode::SingleNodeSingleWriter,
            "ReadOnlyMany" => Mode::MultiNodeReaderOnly,
            "ReadWriteMany" => Mode::MultiNodeMultiWriter,
            _ => {
                let allowed = "ReadWriteOnce, ReadWriteOncePod, ReadOnlyMany, ReadWriteMany";
                to.reject(field, &format!("access mode {name:?} is unknown; allowed: {allowed}"));
                continue;
            }
        };
        let one = Draft {
            modes: vec![mode],
            size: SizeRange::default(),
            source: None,
            mutable: Map::new(),
            ..draft.clone()
        };
        match one.new_disk(&parameters, settings) {
            Ok(_) => modes.push(mode),
            Err(error) => to.reject(field, &format!("{name}: {error}")),
        }
    }
    if given.len() > 1 && given.iter().any(|name| name == "ReadWriteOncePod") {
        let text = "ReadWriteOncePod is not allowed together with other access modes";
        to.reject("spec.accessModes", text);
    }
    to.set("accessModes", given.join(", "));
    modes
}

//! Objects of Kubernetes in YAML files, as far as a volume depends on them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// An object of a file.
#[derive(Debug, Clone)]
pub(super) struct Manifest {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) object: Object,
}

#[derive(Debug, Clone)]
pub(super) enum Object {
    Class(ClassKind, Box<Class>),
    Claim(Box<Claim>),
    Other,
    /// A field has a type that Kubernetes rejects.
    Malformed(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClassKind {
    Storage,
    Attributes,
    Snapshot,
    GroupSnapshot,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Metadata {
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    pub(super) annotations: Option<BTreeMap<String, String>>,
}

/// A class of any kind.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Class {
    pub(super) metadata: Metadata,
    /// The name of the driver.
    #[serde(alias = "driver", alias = "driverName")]
    pub(super) provisioner: String,
    /// Values as given: Kubernetes rejects those that are not strings.
    pub(super) parameters: Option<BTreeMap<String, Value>>,
    pub(super) mount_options: Option<Vec<String>>,
    pub(super) allowed_topologies: Option<Vec<TopologyTerm>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TopologyTerm {
    pub(super) match_label_expressions: Vec<LabelExpression>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct LabelExpression {
    pub(super) key: String,
    pub(super) values: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Claim {
    pub(super) metadata: Metadata,
    pub(super) spec: ClaimSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ClaimSpec {
    pub(super) storage_class_name: Option<String>,
    pub(super) volume_attributes_class_name: Option<String>,
    pub(super) access_modes: Option<Vec<String>>,
    pub(super) volume_mode: Option<String>,
    pub(super) volume_name: Option<String>,
    /// `requests` and `limits`.
    pub(super) resources: BTreeMap<String, Option<BTreeMap<String, Value>>>,
    pub(super) selector: Option<Value>,
    pub(super) data_source: Option<DataSource>,
    pub(super) data_source_ref: Option<DataSource>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DataSource {
    pub(super) api_group: Option<String>,
    pub(super) kind: String,
}

/// Reads the objects of a file; those in a List are separate objects.
pub(super) fn read(file: &str, text: &str) -> Result<Vec<Manifest>, String> {
    let documents: Result<Vec<Value>, _> = serde_saphyr::from_multiple(text);
    let documents = documents.map_err(|error| format!("{file} is not valid YAML: {error}"))?;
    let mut manifests = Vec::new();
    for (index, document) in documents.iter().enumerate().filter(|(_, one)| !one.is_null()) {
        let expanded = expand(document, &mut manifests);
        let number = index + 1;
        expanded.map_err(|why| format!("{file}: document {number} is not an object of Kubernetes: {why}"))?;
    }
    match manifests.is_empty() {
        true => Err(format!(
            "{file} has no objects; name a file with a StorageClass or another class, or - for standard input"
        )),
        false => Ok(manifests),
    }
}

fn expand(document: &Value, manifests: &mut Vec<Manifest>) -> Result<(), &'static str> {
    let text = |key: &str| document.get(key).and_then(Value::as_str);
    let kind = text("kind").ok_or("it has no kind")?.to_owned();
    let version = text("apiVersion").ok_or("it has no apiVersion")?;
    if kind.ends_with("List") {
        let Some(Value::Array(items)) = document.get("items") else {
            return Err("it is a List without items");
        };
        return items.iter().try_for_each(|item| expand(item, manifests));
    }
    let name = ["name", "generateName"].into_iter();
    let mut name = name.filter_map(|key| document.get("metadata")?.get(key)?.as_str());
    let name = name.next().map(str::to_owned);
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let class = |kind| typed(document, |class| Object::Class(kind, class));
    let object = match (group, &*kind) {
        ("storage.k8s.io", "StorageClass") => class(ClassKind::Storage),
        ("storage.k8s.io", "VolumeAttributesClass") => class(ClassKind::Attributes),
        ("snapshot.storage.k8s.io", "VolumeSnapshotClass") => class(ClassKind::Snapshot),
        ("groupsnapshot.storage.k8s.io", "VolumeGroupSnapshotClass") => class(ClassKind::GroupSnapshot),
        ("", "PersistentVolumeClaim") => typed(document, Object::Claim),
        _ => Object::Other,
    };
    let name = match (name, &object) {
        (Some(name), _) => name,
        // A file of another tool, such as kustomize.
        (None, Object::Other) => String::new(),
        (None, _) => return Err("it has no metadata.name"),
    };
    manifests.push(Manifest { kind, name, object });
    Ok(())
}

fn typed<T: DeserializeOwned>(document: &Value, object: impl FnOnce(Box<T>) -> Object) -> Object {
    match serde_json::from_value(document.clone()) {
        Ok(typed) => object(Box::new(typed)),
        Err(error) => Object::Malformed(error.to_string()),
    }
}

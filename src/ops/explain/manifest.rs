//! Objects of Kubernetes in YAML files, as far as a volume depends on them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The file is not YAML, or has no object.
#[derive(Debug, thiserror::Error)]
pub enum InvalidFile {
    #[error("{file} is not valid YAML")]
    Yaml {
        file: String,
        source: Box<serde_saphyr::Error>,
    },
    #[error("{file}: document {document} is not an object of Kubernetes: {why}")]
    NotAnObject {
        file: String,
        document: usize,
        why: &'static str,
    },
    #[error("{0} has no objects; name a file with a StorageClass or another class, or - for standard input")]
    Empty(String),
}

/// An object of a file.
#[derive(Debug, Clone)]
pub struct Manifest {
    pub kind: String,
    pub name: String,
    pub object: Object,
    /// Fields that Kubernetes does not know, such as a misspelled `reclaimPolicy`, and the known ones.
    pub unknown: Vec<UnknownField>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownField {
    pub field: String,
    pub allowed: String,
}

#[derive(Debug, Clone)]
pub enum Object {
    StorageClass(StorageClass),
    Claim(Box<Claim>),
    AttributesClass(AttributesClass),
    SnapshotClass(SnapshotClass),
    GroupSnapshotClass(SnapshotClass),
    Other,
    /// A field has a type that Kubernetes rejects.
    Malformed(String),
}

/// Values as given: Kubernetes rejects those that are not strings.
pub(super) type Parameters = BTreeMap<String, Value>;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    pub name: String,
    pub namespace: Option<String>,
    pub annotations: Option<BTreeMap<String, String>>,
}

impl Metadata {
    pub(super) fn annotation(&self, key: &str) -> Option<&str> {
        Some(self.annotations.as_ref()?.get(key)?.as_str())
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageClass {
    pub metadata: Metadata,
    pub provisioner: String,
    pub parameters: Option<Parameters>,
    pub reclaim_policy: Option<String>,
    pub volume_binding_mode: Option<String>,
    pub allow_volume_expansion: Option<bool>,
    pub mount_options: Option<Vec<String>>,
    pub allowed_topologies: Option<Vec<TopologyTerm>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopologyTerm {
    pub match_label_expressions: Vec<LabelExpression>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct LabelExpression {
    pub key: String,
    pub values: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AttributesClass {
    pub driver_name: String,
    pub parameters: Option<Parameters>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SnapshotClass {
    pub driver: String,
    pub parameters: Option<Parameters>,
    pub deletion_policy: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Claim {
    pub metadata: Metadata,
    pub spec: ClaimSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimSpec {
    pub storage_class_name: Option<String>,
    pub volume_attributes_class_name: Option<String>,
    pub access_modes: Option<Vec<String>>,
    pub volume_mode: Option<String>,
    pub volume_name: Option<String>,
    pub resources: Resources,
    pub selector: Option<Value>,
    pub data_source: Option<DataSource>,
    pub data_source_ref: Option<DataSource>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Resources {
    pub requests: Option<BTreeMap<String, Value>>,
    pub limits: Option<BTreeMap<String, Value>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DataSource {
    pub api_group: Option<String>,
    pub kind: String,
    pub name: String,
    pub namespace: Option<String>,
}

/// Reads the objects of a file; those in a List become objects of their own.
///
/// # Errors
/// If the text is not YAML, or a document is not an object of Kubernetes.
pub fn read(file: &str, text: &str) -> Result<Vec<Manifest>, InvalidFile> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|source| InvalidFile::Yaml {
        file: file.to_owned(),
        source: Box::new(source),
    })?;
    let mut manifests = Vec::new();
    for (index, document) in documents.into_iter().enumerate() {
        if document.is_null() {
            continue;
        }
        expand(&document, &mut manifests).map_err(|why| InvalidFile::NotAnObject {
            file: file.to_owned(),
            document: index + 1,
            why,
        })?;
    }
    if manifests.is_empty() {
        return Err(InvalidFile::Empty(file.to_owned()));
    }
    Ok(manifests)
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
    let content = document.clone();
    let object = match (group, &*kind) {
        ("storage.k8s.io", "StorageClass") => typed(content, Object::StorageClass),
        ("storage.k8s.io", "VolumeAttributesClass") => typed(content, Object::AttributesClass),
        ("snapshot.storage.k8s.io", "VolumeSnapshotClass") => typed(content, Object::SnapshotClass),
        ("groupsnapshot.storage.k8s.io", "VolumeGroupSnapshotClass") => typed(content, Object::GroupSnapshotClass),
        ("", "PersistentVolumeClaim") => typed(content, |claim| Object::Claim(Box::new(claim))),
        _ => Object::Other,
    };
    let name = match (name, &object) {
        (Some(name), _) => name,
        // A file of another tool, such as kustomize.
        (None, Object::Other) => String::new(),
        (None, _) => return Err("it has no metadata.name"),
    };
    manifests.push(Manifest {
        unknown: unknown_fields(&kind, group, document),
        kind,
        name,
        object,
    });
    Ok(())
}

/// The fields of objects, without those of all objects, by group and kind; below `spec` those of a claim
/// (Kubernetes API reference, v1.34).
const FIELDS: [(&str, &str, &str, &[&str]); 6] = [
    (
        "storage.k8s.io",
        "StorageClass",
        "",
        &[
            "allowVolumeExpansion",
            "allowedTopologies",
            "mountOptions",
            "parameters",
            "provisioner",
            "reclaimPolicy",
            "volumeBindingMode",
        ],
    ),
    (
        "storage.k8s.io",
        "VolumeAttributesClass",
        "",
        &["driverName", "parameters"],
    ),
    (
        "snapshot.storage.k8s.io",
        "VolumeSnapshotClass",
        "",
        &["deletionPolicy", "driver", "parameters"],
    ),
    (
        "groupsnapshot.storage.k8s.io",
        "VolumeGroupSnapshotClass",
        "",
        &["deletionPolicy", "driver", "parameters"],
    ),
    ("", "PersistentVolumeClaim", "", &["spec", "status"]),
    (
        "",
        "PersistentVolumeClaim",
        "/spec",
        &[
            "accessModes",
            "dataSource",
            "dataSourceRef",
            "resources",
            "selector",
            "storageClassName",
            "volumeAttributesClassName",
            "volumeMode",
            "volumeName",
        ],
    ),
];

const COMMON: [&str; 3] = ["apiVersion", "kind", "metadata"];

fn unknown_fields(kind: &str, group: &str, document: &Value) -> Vec<UnknownField> {
    let known = FIELDS
        .iter()
        .filter(|(of_group, of_kind, ..)| *of_group == group && *of_kind == kind);
    known
        .flat_map(|(_, _, place, allowed)| {
            let fields = document.pointer(place).and_then(Value::as_object);
            let names = fields.into_iter().flat_map(serde_json::Map::keys);
            let is_common = |name: &str| place.is_empty() && COMMON.contains(&name);
            let unknown = names.filter(move |name| !allowed.contains(&name.as_str()) && !is_common(name.as_str()));
            unknown.map(move |name| UnknownField {
                field: format!("{place}/{name}")[1..].replace('/', "."),
                allowed: allowed.join(", "),
            })
        })
        .collect()
}

fn typed<T: DeserializeOwned>(document: Value, object: impl FnOnce(T) -> Object) -> Object {
    match serde_json::from_value(document) {
        Ok(typed) => object(typed),
        Err(error) => Object::Malformed(error.to_string()),
    }
}

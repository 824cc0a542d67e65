//! Objects of Kubernetes in YAML files, as far as a volume depends on them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The file is not YAML, or has no object.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidFile {
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
pub(super) struct Manifest {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) object: Object,
    /// Fields that Kubernetes does not know, such as a misspelled `reclaimPolicy`, and the known ones.
    pub(super) unknown: Vec<UnknownField>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnknownField {
    pub(super) field: String,
    pub(super) allowed: String,
}

#[derive(Debug, Clone)]
pub(super) enum Object {
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
pub(super) struct Metadata {
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    pub(super) annotations: Option<BTreeMap<String, String>>,
}

impl Metadata {
    pub(super) fn annotation(&self, key: &str) -> Option<&str> {
        Some(self.annotations.as_ref()?.get(key)?.as_str())
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct StorageClass {
    pub(super) metadata: Metadata,
    pub(super) provisioner: String,
    pub(super) parameters: Option<Parameters>,
    pub(super) reclaim_policy: Option<String>,
    pub(super) volume_binding_mode: Option<String>,
    pub(super) allow_volume_expansion: Option<bool>,
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
#[serde(rename_all = "camelCase", default)]
pub(super) struct AttributesClass {
    pub(super) driver_name: String,
    pub(super) parameters: Option<Parameters>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SnapshotClass {
    pub(super) driver: String,
    pub(super) parameters: Option<Parameters>,
    pub(super) deletion_policy: Option<String>,
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
    pub(super) resources: Resources,
    pub(super) selector: Option<Value>,
    pub(super) data_source: Option<DataSource>,
    pub(super) data_source_ref: Option<DataSource>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Resources {
    pub(super) requests: Option<BTreeMap<String, Value>>,
    pub(super) limits: Option<BTreeMap<String, Value>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DataSource {
    pub(super) api_group: Option<String>,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) namespace: Option<String>,
}

/// Reads the objects of a file; those in a List become objects of their own.
pub(super) fn read(file: &str, text: &str) -> Result<Vec<Manifest>, InvalidFile> {
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

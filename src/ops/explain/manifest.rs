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
}

/// Reads the objects of a file; those in a List are separate objects.
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
    manifests.push(Manifest { kind, name, object });
    Ok(())
}

fn typed<T: DeserializeOwned>(document: Value, object: impl FnOnce(T) -> Object) -> Object {
    match serde_json::from_value(document) {
        Ok(typed) => object(typed),
        Err(error) => Object::Malformed(error.to_string()),
    }
}

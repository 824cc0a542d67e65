//! The rendered objects of the goldens.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// A rendered object.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) variant: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) body: Value,
}

#[derive(Debug)]
pub(crate) struct Container<'a> {
    pub(crate) object: &'a Object,
    pub(crate) name: &'a str,
    pub(crate) body: &'a Value,
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Reads a file of the repository.
pub(crate) fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

pub(crate) fn yaml(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{error}"))
}

/// Every object of every golden.
pub(crate) fn all() -> Vec<Object> {
    let folder = root().join("tests/helm/golden");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect();
    paths.sort();
    assert!(paths.len() > 4, "goldens are missing: {paths:?}");
    paths.iter().flat_map(|path| objects(path)).collect()
}

/// The objects of one variant.
pub(crate) fn variant(name: &str) -> Vec<Object> {
    objects(&root().join(format!("tests/helm/golden/{name}.yaml")))
}

fn objects(path: &Path) -> Vec<Object> {
    let variant = path.file_stem().unwrap().display().to_string();
    let documents = yaml(&read(path)).into_iter().filter(|body| !body.is_null());
    let objects = documents.map(|body| Object {
        variant: variant.clone(),
        kind: text(&body, "/kind").to_owned(),
        name: text(&body, "/metadata/name").to_owned(),
        body,
    });
    let objects: Vec<_> = objects.collect();
    assert!(objects.len() > 5, "{variant} has only {} objects", objects.len());
    objects
}

/// A required string.
pub(crate) fn text<'a>(body: &'a Value, pointer: &str) -> &'a str {
    let found = body.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("no string {pointer} in {body}"))
}

/// The elements of a list, empty if it is missing.
pub(crate) fn list<'a>(body: &'a Value, pointer: &str) -> Vec<&'a Value> {
    let found = body.pointer(pointer).and_then(Value::as_array);
    found.into_iter().flatten().collect()
}

/// The strings of a list.
pub(crate) fn texts<'a>(body: &'a Value, pointer: &str) -> Vec<&'a str> {
    let elements = list(body, pointer).into_iter();
    elements.map(|element| element.as_str().unwrap()).collect()
}

impl Object {
    /// `variant: Kind name`.
    pub(crate) fn at(&self) -> String {
        format!("{}: {} {}", self.variant, self.kind, self.name)
    }

    /// The spec of the pod or of the pod template.
    pub(crate) fn pod(&self) -> Option<&Value> {
        match self.kind.as_str() {
            "Deployment" | "DaemonSet" => self.body.pointer("/spec/template/spec"),
            "Pod" => self.body.pointer("/spec"),
            _ => None,
        }
    }

    pub(crate) fn containers(&self) -> Vec<Container<'_>> {
        let Some(pod) = self.pod() else {
            return Vec::new();
        };
        let init = list(pod, "/initContainers").into_iter();
        let bodies = init.chain(list(pod, "/containers"));
        let containers = bodies.map(|body| Container {
            object: self,
            name: text(body, "/name"),
            body,
        });
        containers.collect()
    }
}

impl Container<'_> {
    pub(crate) fn at(&self) -> String {
        format!("{}, container {}", self.object.at(), self.name)
    }

    /// Whether it is the driver of the node plugin, or its doctor.
    pub(crate) fn is_node(&self) -> bool {
        self.object.kind == "DaemonSet" && ["diskplugin", "doctor"].contains(&self.name)
    }
}

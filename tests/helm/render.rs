//! The rendered objects: of three variants from the goldens, of the others from Helm.

use std::collections::BTreeMap;
use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::sync::LazyLock;

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

/// The variants without a golden, which Helm renders during the tests.
const UNSAVED: [&str; 3] = ["ack", "monitoring", "off"];

/// The manifests of every variant; without Helm, those of the goldens.
static MANIFESTS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let folder = root().join("tests/helm/golden");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = entries.map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| path.extension().is_some_and(|end| end == "yaml"));
    let name = |path: &Path| path.file_stem().unwrap().display().to_string();
    let mut manifests: BTreeMap<String, String> = paths.map(|path| (name(&path), read(&path))).collect();
    assert_eq!(manifests.len(), 3, "goldens are missing: {:?}", manifests.keys());
    let unsaved = UNSAVED.into_iter();
    manifests.extend(unsaved.filter_map(|name| Some((name.to_owned(), helm(&[name])?))));
    manifests
});

/// The output of `tests/helm/render`; none, with the reason, if Helm is not built.
fn helm(args: &[&str]) -> Option<String> {
    run("tests/helm/render", args, &[])
}

/// The lines of `tests/helm/bin/strict COMMAND CHART ARGS`, which reads lines of JSON and writes others.
pub(crate) fn strict(command: &str, args: &[&str], lines: impl IntoIterator<Item = Value>) -> Option<Vec<Value>> {
    let lines: String = lines.into_iter().map(|line| format!("{line}\n")).collect();
    let args = [&[command, "deploy/helm/diskplugin"][..], args].concat();
    let output = run("tests/helm/bin/strict", &args, lines.as_bytes())?;
    Some(output.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[expect(clippy::disallowed_methods, reason = "the tests of this suite are synchronous")]
fn run(program: &str, args: &[&str], input: &[u8]) -> Option<String> {
    if !root().join("tests/helm/bin/helm").exists() {
        let ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
        assert!(!ci, "tests/helm/bin/helm is not built, and CI must not skip");
        eprintln!("SKIPPED: {program} {args:?} because tests/helm/bin/helm is not built");
        return None;
    }
    let mut stdin = tempfile::tempfile().unwrap();
    stdin.write_all(input).and_then(|()| stdin.rewind()).unwrap();
    let mut command = std::process::Command::new(root().join(program));
    let output = command.current_dir(root()).args(args).stdin(stdin).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {errors}");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// A count that all variants have, or less without Helm.
pub(crate) fn least(all: usize, without_helm: usize) -> usize {
    match MANIFESTS.len() {
        6 => all,
        _ => without_helm,
    }
}

/// Every object of every variant.
pub(crate) fn all() -> Vec<Object> {
    let manifests = MANIFESTS.iter();
    manifests.flat_map(|(name, text)| objects(name, text)).collect()
}

/// The objects of a variant that has a golden.
pub(crate) fn variant(name: &str) -> Vec<Object> {
    rendered(name).unwrap_or_else(|| panic!("{name} has no golden"))
}

/// The objects of any variant; none if Helm is needed and not built.
pub(crate) fn rendered(name: &str) -> Option<Vec<Object>> {
    Some(objects(name, MANIFESTS.get(name)?))
}

/// The notes that Helm prints after the installation of a variant.
pub(crate) fn notes(name: &str) -> Option<String> {
    helm(&["--notes", name])
}

fn objects(variant: &str, text: &str) -> Vec<Object> {
    let documents = yaml(text).into_iter().filter(|body| !body.is_null());
    let objects = documents.map(|body| Object {
        variant: variant.to_owned(),
        kind: self::text(&body, "/kind").to_owned(),
        name: self::text(&body, "/metadata/name").to_owned(),
        body,
    });
    let objects: Vec<_> = objects.collect();
    assert!(objects.len() > 5, "{variant} has only {} objects", objects.len());
    objects
}

/// The only object of a kind.
pub(crate) fn one<'a>(objects: &'a [Object], kind: &str) -> &'a Object {
    let mut found = objects.iter().filter(|object| object.kind == kind);
    let object = found.next().unwrap_or_else(|| panic!("no {kind} in the render"));
    assert!(found.next().is_none(), "several {kind} objects");
    object
}

/// `Kind name` of each object, sorted.
pub(crate) fn names(objects: &[Object]) -> Vec<String> {
    let mut names: Vec<String> = objects.iter().map(Object::name).collect();
    names.sort();
    names
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

/// The arguments of a container, without the file that the driver reads when it parses them.
pub(crate) fn arguments(container: &Value) -> Vec<&str> {
    let mut args = texts(container, "/args");
    args.retain(|arg| *arg != "--ca-bundle=/etc/diskplugin-ca/ca.crt");
    args
}

impl Object {
    /// `variant: Kind name`.
    pub(crate) fn at(&self) -> String {
        format!("{}: {}", self.variant, self.name())
    }

    /// `Kind name`.
    fn name(&self) -> String {
        format!("{} {}", self.kind, self.name)
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

    /// The names of its mounts.
    pub(crate) fn mounts(&self) -> Vec<&str> {
        let mounts = list(self.body, "/volumeMounts").into_iter();
        mounts.map(|mount| text(mount, "/name")).collect()
    }

    /// Whether it is the driver of the node plugin, or its doctor.
    pub(crate) fn is_node(&self) -> bool {
        self.object.kind == "DaemonSet" && ["diskplugin", "doctor"].contains(&self.name)
    }
}

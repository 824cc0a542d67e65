//! The objects of the fake API server: versions, conflicts, and a history for watches.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// All objects, and their changes.
#[derive(Debug, Default)]
pub(crate) struct Store {
    version: u64,
    /// By path, such as `/api/v1/nodes/a`.
    objects: BTreeMap<String, Value>,
    /// Version, path, and the event of a watch.
    history: Vec<(u64, String, Value)>,
}

/// Why a write was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    Missing,
    Conflict,
}

impl Store {
    /// Creates or replaces an object of any version.
    pub(crate) fn put(&mut self, path: &str, mut object: Value) -> Value {
        self.version += 1;
        let name = path.rsplit('/').next().unwrap();
        object["metadata"]["name"] = json!(name);
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let known = self.objects.insert(path.to_owned(), object.clone());
        let kind = known.map_or("ADDED", |_| "MODIFIED");
        self.note(path, kind, &object);
        object
    }

    pub(crate) fn get(&self, path: &str) -> Option<&Value> {
        self.objects.get(path)
    }

    /// A merge patch (RFC 7386), refused if it names another version than the current one.
    pub(crate) fn patch(&mut self, path: &str, patch: &Value) -> Result<Value, Refused> {
        let mut object = self.get(path).ok_or(Refused::Missing)?.clone();
        let wanted = patch.pointer("/metadata/resourceVersion");
        if wanted.is_some_and(|version| *version != object["metadata"]["resourceVersion"]) {
            return Err(Refused::Conflict);
        }
        merge(&mut object, patch);
        Ok(self.put(path, object))
    }

    /// Replaces an object if it has the version of the new one.
    pub(crate) fn replace(&mut self, path: &str, object: Value) -> Result<Value, Refused> {
        let known = self.get(path).ok_or(Refused::Missing)?;
        if known["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] {
            return Err(Refused::Conflict);
        }
        Ok(self.put(path, object))
    }

    /// Deletes an object that exists.
    pub(crate) fn remove(&mut self, path: &str) {
        let object = self.objects.remove(path).unwrap();
        self.version += 1;
        self.note(path, "DELETED", &object);
    }

    /// The objects directly below a path, and the current version.
    pub(crate) fn list(&self, below: &str) -> (u64, Vec<Value>) {
        let objects = self.objects.iter();
        let found = objects.filter(|(path, _)| is_below(path, below));
        (self.version, found.map(|(_, object)| object.clone()).collect())
    }

    /// The changes below a path after a version, as lines of a watch, and the current version.
    pub(crate) fn since(&self, below: &str, version: u64) -> (u64, Vec<Value>) {
        let later = self.history.iter().filter(|(at, _, _)| *at > version);
        let events = later.filter(|(_, path, _)| is_below(path, below));
        (self.version, events.map(|(_, _, event)| event.clone()).collect())
    }

    fn note(&mut self, path: &str, kind: &str, object: &Value) {
        let event = json!({"type": kind, "object": object});
        self.history.push((self.version, path.to_owned(), event));
    }
}

fn is_below(path: &str, below: &str) -> bool {
    let rest = path.strip_prefix(below).and_then(|rest| rest.strip_prefix('/'));
    rest.is_some_and(|rest| !rest.contains('/'))
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in fields {
        match value {
            Value::Null => drop(target.as_object_mut().unwrap().remove(key)),
            value => merge(&mut target[key.as_str()], value),
        }
    }
}

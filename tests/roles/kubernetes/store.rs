//! The objects of a small API server: versions, conflicts, and a history for who watches.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// An object's place: `/api/v1/nodes/a`.
pub(crate) type Place = String;

/// All objects, and what happened to them.
#[derive(Debug, Default)]
pub(crate) struct Store {
    version: u64,
    objects: BTreeMap<Place, Value>,
    /// Version, place, and the event as a watch shows it.
    history: Vec<(u64, Place, Value)>,
}

/// Why a write was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    Missing,
    Conflict,
}

impl Store {
    /// Puts an object where one may be, whatever its version.
    pub(crate) fn put(&mut self, place: &str, mut object: Value) -> Value {
        self.version += 1;
        let name = place.rsplit('/').next().unwrap();
        object["metadata"]["name"] = json!(name);
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let known = self.objects.insert(place.to_owned(), object.clone());
        let kind = known.map_or("ADDED", |_| "MODIFIED");
        self.note(place, kind, &object);
        object
    }

    pub(crate) fn get(&self, place: &str) -> Option<&Value> {
        self.objects.get(place)
    }

    /// A merge patch (RFC 7386), refused where it names another version than the one that is there.
    pub(crate) fn patch(&mut self, place: &str, patch: &Value) -> Result<Value, Refused> {
        let mut object = self.get(place).ok_or(Refused::Missing)?.clone();
        let wanted = patch.pointer("/metadata/resourceVersion");
        if wanted.is_some_and(|version| *version != object["metadata"]["resourceVersion"]) {
            return Err(Refused::Conflict);
        }
        merge(&mut object, patch);
        Ok(self.put(place, object))
    }

    /// Replaces an object, if it has the version of the new one.
    pub(crate) fn replace(&mut self, place: &str, object: Value) -> Result<Value, Refused> {
        let known = self.get(place).ok_or(Refused::Missing)?;
        if known["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] {
            return Err(Refused::Conflict);
        }
        Ok(self.put(place, object))
    }

    /// Deletes an object that exists.
    pub(crate) fn remove(&mut self, place: &str) {
        let object = self.objects.remove(place).unwrap();
        self.version += 1;
        self.note(place, "DELETED", &object);
    }

    /// What is directly below a place, and at which version.
    pub(crate) fn list(&self, below: &str) -> (u64, Vec<Value>) {
        let objects = self.objects.iter();
        let found = objects.filter(|(place, _)| is_below(place, below));
        (self.version, found.map(|(_, object)| object.clone()).collect())
    }

    /// What happened below a place after a version, as lines of a watch, and up to which version that is.
    pub(crate) fn since(&self, below: &str, version: u64) -> (u64, Vec<Value>) {
        let later = self.history.iter().filter(|(at, _, _)| *at > version);
        let events = later.filter(|(_, place, _)| is_below(place, below));
        (self.version, events.map(|(_, _, event)| event.clone()).collect())
    }

    fn note(&mut self, place: &str, kind: &str, object: &Value) {
        let event = json!({"type": kind, "object": object});
        self.history.push((self.version, place.to_owned(), event));
    }
}

fn is_below(place: &str, below: &str) -> bool {
    let rest = place.strip_prefix(below).and_then(|rest| rest.strip_prefix('/'));
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

//! The pods of the driver: images, states, and the settings that hold no secret.

use std::collections::BTreeSet;

use serde_json::Value;

use super::object::{NOT_INCLUDED, included};
use crate::base::without_user_info;

/// Containers of the chart with programs of the driver.
const DRIVER: &[&str] = &["diskplugin", "doctor"];

/// Containers of the chart with programs of Kubernetes. None of their flags takes a secret, and their logs omit the
/// secrets of requests.
const SIDECARS: &[&str] = &[
    "csi-attacher",
    "csi-provisioner",
    "csi-resizer",
    "csi-snapshotter",
    "liveness-probe",
    "node-driver-registrar",
];

/// Settings of the driver that hold no secret: programs and roles, flags that take a value, with `--`, and variables,
/// with `$`.
pub(super) type KnownSettings = BTreeSet<String>;

/// Whether the container is one of the chart, whose flags and logs are included.
pub(super) fn is_of_chart(container: &str) -> bool {
    DRIVER.contains(&container) || SIDECARS.contains(&container)
}

/// The pod as it is included.
pub(super) fn pod(object: &Value, settings: &KnownSettings) -> Value {
    let mut pod = included(object);
    for containers in ["/spec/initContainers", "/spec/containers"] {
        for container in elements(pod.pointer_mut(containers)) {
            restrict(container, settings);
        }
    }
    pod
}

fn restrict(container: &mut Value, settings: &KnownSettings) {
    let name = container["name"].as_str().unwrap_or_default();
    let (is_sidecar, none) = (SIDECARS.contains(&name), KnownSettings::default());
    let settings = if DRIVER.contains(&name) { settings } else { &none };
    for variable in elements(container.get_mut("env")) {
        let is_known = variable["name"]
            .as_str()
            .is_some_and(|name| settings.contains(&format!("${name}")));
        if let Some(Value::String(value)) = variable.get_mut("value") {
            *value = shown(value, is_known);
        }
    }
    for words in ["command", "args"].into_iter().filter(|_| !is_sidecar) {
        for word in elements(container.get_mut(words)) {
            *word = setting(word.as_str().unwrap_or_default(), settings).into();
        }
    }
}

fn elements(array: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    array.and_then(Value::as_array_mut).into_iter().flatten()
}

fn shown(value: &str, is_known: bool) -> String {
    match is_known {
        true => without_user_info(value),
        false => NOT_INCLUDED.to_owned(),
    }
}

/// A word of a command line. The chart writes a flag and its value as one word.
fn setting(word: &str, settings: &KnownSettings) -> String {
    match (word.strip_prefix("--"), word.split_once('=')) {
        (Some(_), Some((flag, value))) => {
            format!("{flag}={}", shown(value, settings.contains(flag)))
        }
        (Some(_), None) => word.to_owned(),
        (None, _) if settings.contains(word) => word.to_owned(),
        (None, _) => NOT_INCLUDED.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_known_settings_of_the_driver_are_included() {
        let settings = ["controller", "--zone", "--endpoint", "$ZONE"]
            .map(str::to_owned)
            .into();
        let args = [
            "controller",
            "--zone=z",
            "--endpoint=http://u:hidden@h/",
            "hidden",
            "--password=hidden",
            "--token",
            "hidden",
            "--endpoint",
            "http://u:hidden@h/",
        ];
        let terminated = json!({"terminated": {"reason": "Error", "message": "hidden"}});
        let included = |name: &str| {
            let env = json!([{"name": "ZONE", "value": "z"}, {"name": "controller", "value": "hidden"}]);
            let container = json!({"name": name, "args": args, "env": env});
            let status = json!([{"name": name, "lastState": terminated}]);
            let object = json!({"spec": {"containers": [container]}, "status": {"containerStatuses": status}});
            let pod = pod(&object, &settings);
            assert!(!pod.to_string().contains("hidden"), "{pod}");
            let state = &pod["status"]["containerStatuses"][0]["lastState"];
            assert_eq!(*state, json!({"terminated": {"reason": "Error"}}));
            pod["spec"]["containers"][0].clone()
        };
        let driver = included(DRIVER[0]);
        let words = [
            "controller",
            "--zone=z",
            "--endpoint=http://h/",
            NOT_INCLUDED,
            "--password=[not included]",
            "--token",
            NOT_INCLUDED,
            "--endpoint",
            NOT_INCLUDED,
        ];
        assert_eq!(driver["args"], json!(words));
        assert_eq!(driver["env"][0]["value"], "z");
        assert_eq!(driver["env"][1]["value"], NOT_INCLUDED);
        let other = included("proxy");
        assert_eq!(other["args"][1], "--zone=[not included]");
        assert_eq!(other["env"][0]["value"], NOT_INCLUDED);
    }
}

//! The pods of the driver: images, states, and the settings that hold no secret.

use std::collections::BTreeSet;

use serde_json::Value;

use super::object::NOT_INCLUDED;
use crate::base::without_user_info;
use crate::cluster::pod_report::{ContainerReport, PodReport};

/// Containers of the chart with programs of the driver.
const DRIVER: &[&str] = &["diskplugin", "doctor"];

/// The programs of the image.
const PROGRAMS: &[&str] = &["/diskplugin", "/diskplugin-controller", "/diskplugin-node"];

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

/// Settings of the driver that hold no secret.
#[derive(Debug, Default)]
pub(super) struct KnownSettings {
    /// The words that are neither flags nor their values, such as `controller`.
    pub(super) roles: BTreeSet<String>,
    /// Flags that take a value, without `--`.
    pub(super) flags: BTreeSet<String>,
    pub(super) variables: BTreeSet<String>,
}

impl KnownSettings {
    fn is_role_or_program(&self, word: &str) -> bool {
        self.roles.contains(word) || PROGRAMS.contains(&word)
    }
}

/// Whether the container is one of the chart, whose flags and logs are included.
pub(super) fn is_of_chart(container: &str) -> bool {
    DRIVER.contains(&container) || SIDECARS.contains(&container)
}

/// The pod as it is included.
pub(super) fn pod(report: &PodReport, settings: &KnownSettings) -> serde_json::Result<Value> {
    let mut report = report.clone();
    for container in &mut report.containers {
        restrict(container, settings);
    }
    serde_json::to_value(&report)
}

fn restrict(container: &mut ContainerReport, settings: &KnownSettings) {
    let is_driver = DRIVER.contains(&&*container.name);
    for (name, value) in &mut container.env {
        let is_known = is_driver && settings.variables.contains(name);
        let known = value.take().filter(|_| is_known);
        *value = known.map(|value| without_user_info(&value));
    }
    if SIDECARS.contains(&&*container.name) {
        return;
    }
    if !is_driver {
        // It can be the end of the log.
        container.without_messages();
    }
    for words in [&mut container.command, &mut container.args] {
        let mut is_value_of_known_flag = false;
        for word in words {
            let flag = word.strip_prefix("--");
            let (name, value) = match flag.map(|flag| flag.split_once('=').ok_or(flag)) {
                Some(Ok((name, value))) => (Some(name), Some(value)),
                Some(Err(name)) => (Some(name), None),
                None => (None, None),
            };
            let is_known = name.is_some_and(|name| is_driver && settings.flags.contains(name));
            let included = match (name, value) {
                (Some(name), Some(value)) if is_known => {
                    format!("--{name}={}", without_user_info(value))
                }
                (Some(name), Some(_)) => format!("--{name}={NOT_INCLUDED}"),
                (Some(name), None) => format!("--{name}"),
                (None, _) if is_value_of_known_flag => without_user_info(word),
                (None, _) if is_driver && settings.is_role_or_program(word) => word.clone(),
                (None, _) => NOT_INCLUDED.to_owned(),
            };
            is_value_of_known_flag = is_known && value.is_none();
            *word = included;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn container(name: &str, args: &[&str]) -> ContainerReport {
        ContainerReport {
            name: name.to_owned(),
            image: None,
            image_id: None,
            command: vec![],
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            env: [("ZONE", "z"), ("TOKEN", "hidden")]
                .map(|(name, value)| (name.to_owned(), Some(value.to_owned())))
                .into(),
            restarts: 0,
            ready: true,
            state: None,
            last_state: Some(json!({"terminated": {"reason": "Error", "message": "hidden"}})),
        }
    }

    #[test]
    fn only_known_settings_of_the_driver_are_included() {
        let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let settings = KnownSettings {
            roles: set(&["controller"]),
            flags: set(&["zone", "endpoint"]),
            variables: set(&["ZONE"]),
        };
        let given = [
            "controller",
            "--zone=z",
            "--endpoint",
            "http://u:hidden@h/",
            "hidden",
            "--password=hidden",
            "--token",
            "hidden",
        ];
        let mut driver = container(DRIVER[0], &given);
        restrict(&mut driver, &settings);
        let text = driver.args.join(" ");
        assert!(text.starts_with("controller --zone=z --endpoint "), "{text}");
        assert!(!text.contains("hidden"), "{text}");
        assert_eq!(driver.env["ZONE"].as_deref(), Some("z"));
        assert_eq!(driver.env["TOKEN"], None);
        let mut other = container("proxy", &given);
        restrict(&mut other, &settings);
        assert!(!format!("{other:?}").contains("hidden"), "{other:?}");
        assert_eq!(other.env["ZONE"], None);
        let state = json!({"terminated": {"reason": "Error"}});
        assert_eq!(other.last_state, Some(state));
    }
}

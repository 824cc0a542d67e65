//! Parameters for the sidecars, which reject unknown ones under their prefix.

use std::collections::BTreeMap;

use serde_json::Value;

use super::report::Explained;

const PREFIX: &str = "csi.storage.k8s.io/";

/// Parameters of csi-provisioner (external-provisioner, removePrefixedParameters): these, and the secrets of the calls
/// below.
const OF_PROVISIONER: [&str; 1] = ["fstype"];
const SECRETS_OF_PROVISIONER: [&str; 7] = [
    "",
    "provisioner-",
    "controller-publish-",
    "controller-expand-",
    "node-stage-",
    "node-publish-",
    "node-expand-",
];

/// Secrets of csi-snapshotter (external-snapshotter, RemovePrefixedParameters).
const SECRETS_OF_SNAPSHOTTER: [&str; 2] = ["snapshotter-", "snapshotter-list-"];
const SECRETS_OF_GROUP_SNAPSHOTTER: [&str; 2] = ["group-snapshotter-", "group-snapshotter-get-"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sidecar {
    Provisioner,
    Snapshotter,
    GroupSnapshotter,
}

/// Reports the parameters that the sidecar rejects.
pub(super) fn check(sidecar: Sidecar, parameters: Option<&BTreeMap<String, Value>>, to: &mut Explained) {
    let (name, own, secrets): (_, &[&str], &[&str]) = match sidecar {
        Sidecar::Provisioner => ("csi-provisioner", &OF_PROVISIONER, &SECRETS_OF_PROVISIONER),
        Sidecar::Snapshotter => ("csi-snapshotter", &[], &SECRETS_OF_SNAPSHOTTER),
        Sidecar::GroupSnapshotter => ("csi-snapshotter", &[], &SECRETS_OF_GROUP_SNAPSHOTTER),
    };
    let secrets = secrets
        .iter()
        .flat_map(|call| ["name", "namespace"].map(|part| format!("{call}secret-{part}")));
    let allowed: Vec<_> = own.iter().map(|key| (*key).to_owned()).chain(secrets).collect();
    let keys = parameters.into_iter().flatten().map(|(key, _)| key);
    for key in keys {
        // A prefix in other letters is not that of the sidecar.
        let Some(rest) = key.strip_prefix(PREFIX) else {
            continue;
        };
        if !allowed.iter().any(|allowed| allowed == rest) {
            let allowed = allowed.join(", ");
            let text =
                format!("{name} rejects {key:?}: unknown under {PREFIX}, where it allows {allowed} (exact case)");
            to.reject(format!("parameters.{key}"), &text);
        }
    }
}

//! Pods of the node plugin: no secrets, the preStop hook, and the nodes that are excluded.

use std::time::Duration;

use clap::Parser as _;
use diskplugin::app::{Cli, Role};
use serde_json::{Value, json};

use crate::render::{Object, all, list, one, rendered, text, texts, variant};
use crate::report;
use crate::rights::{is_role, rules};

/// The command of the preStop hook, which is the only part of a node pod that calls the API server.
fn hook(node: &Object) -> Option<Vec<&str>> {
    let containers = node.containers();
    let found = containers.iter().find_map(|container| {
        let command = "/lifecycle/preStop/exec/command";
        container.body.pointer(command)
    })?;
    Some(
        found
            .as_array()
            .unwrap()
            .iter()
            .map(|word| word.as_str().unwrap())
            .collect(),
    )
}

#[test]
fn node_pods_have_no_secret_and_only_the_hook_has_a_token_and_permissions() {
    let objects = all();
    let nodes = objects.iter().filter(|object| object.kind == "DaemonSet");
    let mut problems = Vec::new();
    for node in nodes {
        let (pod, at) = (node.pod().unwrap(), node.at());
        if pod.pointer("/automountServiceAccountToken") != Some(&json!(false)) {
            problems.push(format!("{at}: mounts a token"));
        }
        for volume in list(pod, "/volumes") {
            let name = text(volume, "/name");
            // The certificate of the HTTP port, and no other Secret.
            let is_certificate = name == "tls" && volume.pointer("/secret/secretName") == Some(&json!("disk-tls"));
            let is_token = name == "api" && hook(node).is_some();
            if !is_certificate && !is_token && (volume.get("secret").is_some() || volume.get("projected").is_some()) {
                problems.push(format!("{at}: volume {name} is a Secret or a token"));
            }
        }
        for container in node.containers() {
            if container.body.get("envFrom").is_some() {
                problems.push(format!("{}: envFrom", container.at()));
            }
            for variable in list(container.body, "/env") {
                let name = text(variable, "/name").to_uppercase();
                let secret = ["KEY", "SECRET", "TOKEN", "CREDENTIAL", "ROLE"];
                let is_node = name == "DISKPLUGIN_NODE_NAME"
                    && variable.pointer("/valueFrom/fieldRef/fieldPath") == Some(&json!("spec.nodeName"));
                let is_reference = variable.get("valueFrom").is_some() && !is_node;
                if is_reference || secret.iter().any(|s| name.contains(s)) {
                    problems.push(format!("{}: variable {name}", container.at()));
                }
            }
            let args = texts(container.body, "/args");
            let secret = args
                .iter()
                .filter(|arg| ["credential", "role", "oidc", "secret"].iter().any(|s| arg.contains(s)));
            problems.extend(secret.map(|arg| format!("{}: {arg}", container.at())));
        }
        let account = text(pod, "/serviceAccountName");
        let bindings = objects
            .iter()
            .filter(|object| object.variant == node.variant && object.kind.ends_with("RoleBinding"));
        for binding in bindings {
            let subjects = list(&binding.body, "/subjects");
            let of_hook = hook(node).is_some() && binding.name.ends_with("-diskplugin-node");
            if !of_hook && subjects.iter().any(|subject| text(subject, "/name") == account) {
                problems.push(format!("{}: grants permissions to {account}", binding.at()));
            }
        }
    }
    report(problems);
}

#[test]
fn the_hook_of_the_node_plugin_has_a_valid_command_and_minimal_permissions() {
    let expected = [
        ("nodes".to_owned(), vec!["get"]),
        ("volumeattachments.storage.k8s.io".to_owned(), vec!["list", "watch"]),
    ];
    // With node-driver-registrar, kubelet could not call the driver any more.
    for (name, waits) in [("minimal", true), ("production", true), ("off", false), ("full", false)] {
        let Some(objects) = rendered(name) else { continue };
        let node = one(&objects, "DaemonSet");
        let role = |object: &&Object| is_role(object) && object.name.ends_with("-node");
        let role = objects.iter().find(role);
        assert_eq!((hook(node).is_some(), role.is_some()), (waits, waits), "{name}");
        let (Some(command), Some(role)) = (hook(node), role) else {
            continue;
        };
        assert_eq!(rules(role), expected);
        assert_eq!(command[0], "/diskplugin");
        let cli = Cli::try_parse_from(command.into_iter().chain(["--node-name=n"])).unwrap();
        let Role::PreStopHook(hook) = cli.role else {
            panic!("{name}: not the hook");
        };
        let pod = node.pod().unwrap();
        let grace = pod["terminationGracePeriodSeconds"].as_u64().unwrap();
        // Afterwards, running calls finish.
        let drain = Duration::from_secs(25);
        assert!(Duration::from_secs(grace) > hook.timeout + drain, "{name}: {grace} s");
    }
}

#[test]
fn nodes_that_are_not_instances_are_excluded_from_every_term_of_the_affinity() {
    let terms = |name: &str| {
        let objects = variant(name);
        let node = one(&objects, "DaemonSet");
        let required = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
        let terms = list(node.pod().unwrap(), required).into_iter();
        terms.cloned().collect::<Vec<Value>>()
    };
    let virtual_node = json!({"key": "type", "operator": "NotIn", "values": ["virtual-kubelet"]});
    assert_eq!(terms("minimal"), [json!({"matchExpressions": [virtual_node]})]);
    let zone = json!({"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["cn-beijing-c"]});
    let hybrid = json!({"key": "example.com/on-premises", "operator": "DoesNotExist"});
    let name = json!([{"key": "metadata.name", "operator": "In", "values": ["worker-1"]}]);
    assert_eq!(
        terms("full"),
        [
            json!({"matchExpressions": [zone, hybrid, virtual_node]}),
            json!({"matchFields": name, "matchExpressions": [hybrid, virtual_node]}),
        ]
    );
}

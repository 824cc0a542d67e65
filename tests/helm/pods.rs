//! Pods: least privilege, images, probes.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::render::{Object, all, least, list, one, read, rendered, text, texts, variant};
use crate::report;

#[test]
fn only_the_node_plugin_is_privileged_and_all_others_are_restricted() {
    let objects = all();
    let expected = [
        ("allowPrivilegeEscalation", json!(false)),
        ("readOnlyRootFilesystem", json!(true)),
        ("capabilities", json!({"drop": ["ALL"]})),
        ("seccompProfile", json!({"type": "RuntimeDefault"})),
    ];
    let mut privileged = 0;
    report(objects.iter().flat_map(Object::containers).flat_map(|container| {
        let security = &container.body["securityContext"];
        if container.is_node() {
            privileged += 1;
            let expected = json!({"privileged": true, "runAsUser": 0, "readOnlyRootFilesystem": true});
            return Vec::from_iter((*security != expected).then(|| container.at()));
        }
        let user = match container.object.kind.as_str() {
            // The socket belongs to root.
            "DaemonSet" => 0,
            _ => 65532,
        };
        let mut wrong: Vec<String> = expected
            .iter()
            .filter(|(key, value)| security.get(key) != Some(value))
            .map(|(key, _)| format!("{}: {key} is {}", container.at(), security[key]))
            .collect();
        if security["runAsUser"] != json!(user) || security.get("privileged").is_some() {
            wrong.push(format!("{}: {security}", container.at()));
        }
        if user != 0 && security["runAsNonRoot"] != json!(true) {
            wrong.push(format!("{}: may run as root", container.at()));
        }
        wrong
    }));
    assert!(privileged > least(4, 3), "only {privileged} node plugins were found");
}

#[test]
fn no_pod_shares_host_pid_or_ipc_and_host_network_is_opt_in() {
    report(all().iter().flat_map(|object| {
        let Some(pod) = object.pod() else {
            return Vec::new();
        };
        let mut wrong: Vec<String> = ["hostPID", "hostIPC"]
            .iter()
            .filter(|key| pod.get(**key).is_some())
            .map(|key| format!("{}: {key}", object.at()))
            .collect();
        if pod.get("hostNetwork") == Some(&json!(true)) && object.variant != "full" {
            wrong.push(format!("{}: hostNetwork", object.at()));
        }
        wrong
    }));
}

#[test]
fn only_containers_that_call_the_api_server_mount_the_token() {
    let flags = [
        "--leader-election",
        "--instance-types-config-map=",
        "--events",
        "--startup-taint=",
        "--fencing",
        "--http-authorization=token-review",
    ];
    let objects = all();
    let controllers = objects.iter().filter(|object| object.kind == "Deployment");
    report(controllers.flat_map(|controller| {
        let pod = controller.pod().unwrap();
        assert_eq!(pod["automountServiceAccountToken"], json!(false), "{}", controller.at());
        let containers = controller.containers().into_iter();
        let wrong = containers.filter_map(|container| {
            let mounts = list(container.body, "/volumeMounts");
            let has = mounts.iter().any(|mount| text(mount, "/name") == "api");
            let args = texts(container.body, "/args");
            let calls = args.iter().any(|arg| flags.iter().any(|flag| arg.starts_with(flag)));
            (has != (container.name.starts_with("csi-") || calls)).then(|| container.at())
        });
        wrong.collect::<Vec<_>>()
    }));
}

#[test]
fn reference_lists_every_host_path() {
    let page = read("docs/reference/kubernetes-rights.md");
    let mut kinds = BTreeSet::new();
    for object in all() {
        let Some(pod) = object.pod() else { continue };
        for volume in list(pod, "/volumes") {
            let Some(path) = volume.pointer("/hostPath/path") else {
                continue;
            };
            assert_eq!(object.kind, "DaemonSet", "{}", object.at());
            let path = path.as_str().unwrap();
            // The table has the default of the values.
            let driver = if object.variant == "ack" {
                "second.csi.example"
            } else {
                "diskplugin.csi.example"
            };
            let path = path.replace("/data/kubelet", "/var/lib/kubelet");
            let path = path.replace("/data/diskplugin", "/var/lib/diskplugin/DRIVERNAME");
            kinds.insert(path.replace(driver, "DRIVERNAME"));
        }
    }
    assert!(kinds.len() >= 5, "{kinds:?}");
    report(
        kinds
            .into_iter()
            .map(|path| format!("| `{path}` |"))
            .filter(|row| !page.contains(row)),
    );
}

#[test]
fn images_have_a_digest_or_a_fixed_tag() {
    let objects = all();
    let mut digests = 0;
    report(objects.iter().flat_map(Object::containers).filter_map(|container| {
        let image = text(container.body, "/image");
        let name = image.rsplit('/').next().unwrap();
        if image.contains("@sha256:") {
            digests += 1;
            return None;
        }
        let tag = name.split_once(':').map(|(_, tag)| tag);
        let fixed = tag.is_some_and(|tag| !tag.is_empty() && tag != "latest");
        (!fixed).then(|| format!("{}: {image}", container.at()))
    }));
    assert!(digests > 1, "no variant has digests");
}

#[test]
fn default_pods_have_one_driver_container_and_the_required_sidecars() {
    let names = |objects: &[Object], kind: &str| -> Vec<String> {
        let containers = one(objects, kind).containers();
        containers.iter().map(|container| container.name.to_owned()).collect()
    };
    let minimal = variant("minimal");
    assert_eq!(names(&minimal, "DaemonSet"), ["diskplugin"]);
    let sidecars = ["diskplugin", "csi-provisioner", "csi-attacher", "csi-resizer"];
    assert_eq!(names(&minimal, "Deployment"), sidecars);
    let with_snapshots = [sidecars.as_slice(), &["csi-snapshotter"]].concat();
    let Some(ack) = rendered("ack") else { return };
    assert_eq!(names(&ack, "Deployment"), with_snapshots);
}

#[test]
fn grace_period_exceeds_the_drain_timeout() {
    let objects = all();
    let roles = objects.iter().filter(|object| object.kind != "Pod");
    report(roles.flat_map(Object::containers).filter_map(|container| {
        let args = texts(container.body, "/args");
        let drain = args.iter().find_map(|arg| arg.strip_prefix("--drain-timeout="))?;
        let drain: Duration = humantime::parse_duration(drain).unwrap();
        let grace = &container.object.pod().unwrap()["terminationGracePeriodSeconds"];
        let grace = Duration::from_secs(grace.as_u64().unwrap());
        (grace <= drain).then(|| format!("{}: grace period {grace:?}, drain timeout {drain:?}", container.at()))
    }));
}

/// Otherwise the taint would remain if all nodes have it.
#[test]
fn controller_tolerates_the_startup_taint_that_it_removes() {
    let mut seen = 0;
    report(all().iter().filter_map(|object| {
        let containers = object.containers();
        let mut args = containers.iter().flat_map(|it| texts(it.body, "/args"));
        let key = args.find_map(|arg| arg.strip_prefix("--startup-taint="))?;
        seen += 1;
        let tolerated = list(object.pod().unwrap(), "/tolerations");
        let tolerated = tolerated
            .iter()
            .any(|it| **it == json!({"key": key, "operator": "Exists"}));
        (!tolerated).then(|| format!("{}: does not tolerate {key}", object.at()))
    }));
    assert!(seen > 0, "no variant has a startup taint");
}

/// Otherwise the reason for a restart is only in the log.
#[test]
fn termination_message_falls_back_to_the_log() {
    let objects = all();
    let containers = objects.iter().flat_map(Object::containers);
    report(containers.filter_map(|container| {
        let policy = &container.body["terminationMessagePolicy"];
        (*policy != "FallbackToLogsOnError").then(|| container.at())
    }));
}

#[test]
fn probes_use_declared_ports() {
    let objects = all();
    report(objects.iter().flat_map(Object::containers).flat_map(|container| {
        let ports = list(container.body, "/ports");
        let named: Vec<&str> = ports.iter().map(|port| text(port, "/name")).collect();
        let probes = ["livenessProbe", "readinessProbe"].into_iter();
        let probed = probes.filter_map(|probe| container.body.pointer(&format!("/{probe}/httpGet/port")));
        let probed: Vec<&Value> = probed.collect();
        let serves = container.object.kind != "Pod";
        let driver = container.name == "diskplugin" && serves;
        assert!(!driver || probed.len() == 2, "{}", container.at());
        let missing = probed
            .into_iter()
            .filter(|port| !named.contains(&port.as_str().unwrap()));
        missing
            .map(|port| format!("{}: {port}", container.at()))
            .collect::<Vec<_>>()
    }));
}

/// The lists of names and paths that additions of the user may not use, at the beginning of a template, are complete.
#[test]
fn the_chart_reserves_every_volume_mount_and_variable_of_its_own() {
    let extra = ["certificates", "/etc/ssl/certs", "settings", "/etc/example"];
    let kubelet = ["/data/kubelet", "/var/lib/kubelet"];
    for (file, kind) in [("controller", "Deployment"), ("node", "DaemonSet")] {
        let template = read(format!("deploy/helm/diskplugin/templates/{file}.yaml"));
        let (head, _) = template.split_once("apiVersion:").unwrap();
        let reserved: Vec<&str> = head.split('"').skip(1).step_by(2).chain(extra).chain(kubelet).collect();
        let is_reserved = |name: &str| reserved.iter().any(|known| Path::new(name).starts_with(known));
        let objects = all();
        let pods = objects.iter().filter(|object| object.kind == kind);
        report(pods.flat_map(|object| {
            let volumes = list(object.pod().unwrap(), "/volumes").into_iter();
            let mut own: Vec<&str> = volumes.map(|volume| text(volume, "/name")).collect();
            let containers = object.containers().into_iter();
            for container in containers.filter(|one| ["diskplugin", "doctor"].contains(&one.name)) {
                let mounts = list(container.body, "/volumeMounts").into_iter();
                own.extend(mounts.map(|mount| text(mount, "/mountPath")));
                let variables = list(container.body, "/env")
                    .into_iter()
                    .filter(|one| one.get("valueFrom").is_some());
                own.extend(variables.map(|variable| text(variable, "/name")));
            }
            own.retain(|name| !is_reserved(name));
            own.into_iter()
                .map(|name| format!("{}: {name}", object.at()))
                .collect::<Vec<_>>()
        }));
    }
}

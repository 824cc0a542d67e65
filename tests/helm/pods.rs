//! What pods are made of: flags that exist, no more rights than needed, no secret on a node.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::CommandFactory as _;
use diskplugin::cli::{Cli, NodeCli};
use diskplugin::model::instance_types::InstanceTypes;
use serde_json::{Value, json};

use crate::render::{Object, all, list, read, text, texts, variant};
use crate::report;

#[test]
fn every_flag_of_the_driver_is_one_that_its_role_takes() {
    let objects = all();
    let mut seen = BTreeSet::new();
    report(
        objects
            .iter()
            .flat_map(Object::containers)
            .filter_map(|container| {
                if container.name != "diskplugin" {
                    return None;
                }
                let args = texts(container.body, "/args");
                let command = texts(container.body, "/command");
                let mut program = match command.as_slice() {
                    // The image's own.
                    [] => Cli::command(),
                    ["/diskplugin-node"] => NodeCli::command(),
                    other => return Some(format!("{}: no program {other:?}", container.at())),
                };
                seen.insert((program.get_name().to_owned(), args[0]));
                let line = ["diskplugin"].into_iter().chain(args);
                let refusal = program.try_get_matches_from_mut(line).err()?;
                Some(format!("{}: {refusal}", container.at()))
            }),
    );
    let program = |name: &str, role| (name.to_owned(), role);
    let wanted = [
        program("diskplugin", "controller"),
        program("diskplugin-node", "node"),
    ];
    assert_eq!(seen, BTreeSet::from(wanted));
}

#[test]
fn no_pod_of_a_node_has_a_secret_a_token_or_a_right() {
    let objects = all();
    let nodes = objects.iter().filter(|object| object.kind == "DaemonSet");
    let mut complaints = Vec::new();
    for node in nodes {
        let (pod, at) = (node.pod().unwrap(), node.at());
        if pod.pointer("/automountServiceAccountToken") != Some(&json!(false)) {
            complaints.push(format!("{at}: it is given a token"));
        }
        for volume in list(pod, "/volumes") {
            let name = text(volume, "/name");
            if volume.get("secret").is_some() || volume.get("projected").is_some() {
                complaints.push(format!("{at}: volume {name} is a Secret or a token"));
            }
        }
        for container in node.containers() {
            if container.body.get("envFrom").is_some() {
                complaints.push(format!("{}: envFrom", container.at()));
            }
            for variable in list(container.body, "/env") {
                let name = text(variable, "/name").to_uppercase();
                let secret = ["KEY", "SECRET", "TOKEN", "CREDENTIAL", "ROLE"];
                if variable.get("valueFrom").is_some() || secret.iter().any(|s| name.contains(s)) {
                    complaints.push(format!("{}: variable {name}", container.at()));
                }
            }
            let args = texts(container.body, "/args");
            let secret = args.iter().filter(|arg| {
                ["credential", "role", "oidc", "secret"]
                    .iter()
                    .any(|s| arg.contains(s))
            });
            complaints.extend(secret.map(|arg| format!("{}: {arg}", container.at())));
        }
        let account = text(pod, "/serviceAccountName");
        let bindings = objects.iter().filter(|object| {
            object.variant == node.variant && object.kind.ends_with("RoleBinding")
        });
        for binding in bindings {
            let subjects = list(&binding.body, "/subjects");
            if subjects
                .iter()
                .any(|subject| text(subject, "/name") == account)
            {
                complaints.push(format!("{}: gives {account} rights", binding.at()));
            }
        }
    }
    report(complaints);
}

#[test]
fn only_the_node_itself_is_privileged_and_all_else_can_do_nothing_to_its_machine() {
    let objects = all();
    let wanted = [
        ("allowPrivilegeEscalation", json!(false)),
        ("readOnlyRootFilesystem", json!(true)),
        ("capabilities", json!({"drop": ["ALL"]})),
        ("seccompProfile", json!({"type": "RuntimeDefault"})),
    ];
    let mut privileged = 0;
    report(
        objects
            .iter()
            .flat_map(Object::containers)
            .flat_map(|container| {
                let security = &container.body["securityContext"];
                if container.is_node() {
                    privileged += 1;
                    let wanted =
                        json!({"privileged": true, "runAsUser": 0, "readOnlyRootFilesystem": true});
                    return Vec::from_iter((*security != wanted).then(|| container.at()));
                }
                let user = match container.object.kind.as_str() {
                    // The socket is root's.
                    "DaemonSet" => 0,
                    _ => 65532,
                };
                let mut wrong: Vec<String> = wanted
                    .iter()
                    .filter(|(key, value)| security.get(key) != Some(value))
                    .map(|(key, _)| format!("{}: {key} is {}", container.at(), security[key]))
                    .collect();
                if security["runAsUser"] != json!(user) || security.get("privileged").is_some() {
                    wrong.push(format!("{}: {security}", container.at()));
                }
                if user != 0 && security["runAsNonRoot"] != json!(true) {
                    wrong.push(format!("{}: it may be root", container.at()));
                }
                wrong
            }),
    );
    assert!(privileged > 4, "only {privileged} nodes were seen");
}

#[test]
fn no_pod_sees_the_processes_of_its_machine_and_its_network_only_if_asked() {
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
fn the_token_of_the_controller_is_only_for_who_calls_the_api_server() {
    let flags = [
        "--instance-types-config-map=",
        "--events",
        "--startup-taint=",
    ];
    let mut drivers = BTreeSet::new();
    let objects = all();
    let controllers = objects.iter().filter(|object| object.kind == "Deployment");
    report(controllers.flat_map(|controller| {
        let pod = controller.pod().unwrap();
        assert_eq!(
            pod["automountServiceAccountToken"],
            json!(false),
            "{}",
            controller.at()
        );
        let containers = controller.containers().into_iter();
        let wrong = containers.filter_map(|container| {
            let mounts = list(container.body, "/volumeMounts");
            let has = mounts.iter().any(|mount| text(mount, "/name") == "api");
            let args = texts(container.body, "/args");
            let asks = args
                .iter()
                .any(|arg| flags.iter().any(|flag| arg.starts_with(flag)));
            if container.name == "diskplugin" {
                drivers.insert(has);
            }
            (has != (container.name.starts_with("csi-") || asks)).then(|| container.at())
        });
        wrong.collect::<Vec<_>>()
    }));
    assert_eq!(drivers.len(), 2, "variants with and without are needed");
}

#[test]
fn every_path_of_the_machine_is_in_the_table_of_the_reference() {
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
            // As the table has it: with the default of the values.
            let driver = if object.variant == "second" {
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
fn an_image_has_a_digest_or_a_tag_that_does_not_move() {
    let objects = all();
    let mut digests = 0;
    report(
        objects
            .iter()
            .flat_map(Object::containers)
            .filter_map(|container| {
                let image = text(container.body, "/image");
                let name = image.rsplit('/').next().unwrap();
                if image.contains("@sha256:") {
                    digests += 1;
                    return None;
                }
                let tag = name.split_once(':').map(|(_, tag)| tag);
                let fixed = tag.is_some_and(|tag| !tag.is_empty() && tag != "latest");
                (!fixed).then(|| format!("{}: {image}", container.at()))
            }),
    );
    assert!(digests > 1, "no variant has digests");
}

#[test]
fn a_node_needs_one_container_and_a_controller_one_beside_its_sidecars() {
    let names = |variant_name: &str, kind: &str| -> Vec<String> {
        let objects = variant(variant_name);
        let object = objects.iter().find(|object| object.kind == kind).unwrap();
        object
            .containers()
            .iter()
            .map(|c| c.name.to_owned())
            .collect()
    };
    assert_eq!(names("least", "DaemonSet"), ["diskplugin"]);
    let sidecars = [
        "diskplugin",
        "csi-provisioner",
        "csi-attacher",
        "csi-resizer",
    ];
    assert_eq!(names("least", "Deployment"), sidecars);
    let with_snapshots = [sidecars.as_slice(), &["csi-snapshotter"]].concat();
    assert_eq!(names("snapshots", "Deployment"), with_snapshots);
}

#[test]
fn a_pod_is_not_killed_before_its_calls_had_their_time() {
    let objects = all();
    let roles = objects.iter().filter(|object| object.kind != "Pod");
    report(roles.flat_map(Object::containers).filter_map(|container| {
        let args = texts(container.body, "/args");
        let drain = args
            .iter()
            .find_map(|arg| arg.strip_prefix("--drain-timeout="))?;
        let drain: Duration = humantime::parse_duration(drain).unwrap();
        let grace = &container.object.pod().unwrap()["terminationGracePeriodSeconds"];
        let grace = Duration::from_secs(grace.as_u64().unwrap());
        (grace <= drain).then(|| {
            format!(
                "{}: {grace:?}, and calls may take {drain:?}",
                container.at()
            )
        })
    }));
}

/// Else no node could be rid of it where all have joined with it.
#[test]
fn who_takes_the_startup_taint_off_runs_where_it_is() {
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
        (!tolerated).then(|| format!("{}: it does not tolerate {key}", object.at()))
    }));
    assert!(seen > 0, "no variant has a startup taint");
}

#[test]
fn what_nodes_are_told_of_instance_types_is_what_they_read() {
    let objects = variant("full");
    let config = objects
        .iter()
        .find(|object| object.kind == "ConfigMap")
        .unwrap();
    let types = InstanceTypes::parse(text(&config.body, "/data/instance-types.json")).unwrap();
    assert_eq!(types.0["ecs.g6.large"].disk_quantity, 17);
    assert_eq!(types.0["ecs.g6.large"].categories.len(), 2);
}

#[test]
fn the_controller_may_write_what_its_nodes_read_and_no_other_object() {
    let objects = variant("least");
    let find = |kind: &str| objects.iter().find(|object| object.kind == kind).unwrap();
    let controller = find("Deployment").containers();
    let args = texts(controller[0].body, "/args");
    let name = args
        .iter()
        .find_map(|arg| arg.strip_prefix("--instance-types-config-map="))
        .unwrap();
    let map = find("ConfigMap");
    assert_eq!(map.name, name);
    // What it wrote must outlive an upgrade.
    assert_eq!(map.body.get("data"), None);
    let volumes = list(find("DaemonSet").pod().unwrap(), "/volumes");
    let mounted = volumes.iter().find_map(|volume| volume.get("configMap"));
    assert_eq!(*mounted.unwrap(), json!({"name": name, "optional": true}));
    let rules = list(&find("Role").body, "/rules");
    let rule = rules
        .iter()
        .find(|rule| texts(rule, "/resources") == ["configmaps"])
        .unwrap();
    assert_eq!(texts(rule, "/resourceNames"), [name]);
    assert_eq!(texts(rule, "/verbs"), ["get", "patch"]);
}

/// Without it the reason why a container ends again and again is only in its log.
#[test]
fn a_container_that_ends_shows_its_last_words() {
    let objects = all();
    let containers = objects.iter().flat_map(Object::containers);
    report(containers.filter_map(|container| {
        let policy = &container.body["terminationMessagePolicy"];
        (*policy != "FallbackToLogsOnError").then(|| container.at())
    }));
}

#[test]
fn every_probe_asks_a_port_that_is_there() {
    let objects = all();
    report(
        objects
            .iter()
            .flat_map(Object::containers)
            .flat_map(|container| {
                let ports = list(container.body, "/ports");
                let named: Vec<&str> = ports.iter().map(|port| text(port, "/name")).collect();
                let probes = ["livenessProbe", "readinessProbe"].into_iter();
                let asked = probes
                    .filter_map(|probe| container.body.pointer(&format!("/{probe}/httpGet/port")));
                let asked: Vec<&Value> = asked.collect();
                let driver = container.name == "diskplugin";
                assert!(!driver || asked.len() == 2, "{}", container.at());
                let missing = asked
                    .into_iter()
                    .filter(|port| !named.contains(&port.as_str().unwrap()));
                missing
                    .map(|port| format!("{}: {port}", container.at()))
                    .collect::<Vec<_>>()
            }),
    );
}

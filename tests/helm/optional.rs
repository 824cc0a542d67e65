//! Each optional feature can be disabled, and then leaves no object, flag, volume or permission behind.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::render::{Object, list, names, notes, one, rendered, text, texts};
use crate::rights::{is_role, rules};

/// The names of the pod's volumes.
fn volumes(object: &Object) -> Vec<&str> {
    let volumes = list(object.pod().unwrap(), "/volumes").into_iter();
    volumes.map(|volume| text(volume, "/name")).collect()
}

/// The arguments of a container.
fn args<'a>(object: &'a Object, container: &str) -> Vec<&'a str> {
    let containers = object.containers();
    let found = containers.iter().find(|it| it.name == container).unwrap();
    texts(found.body, "/args")
}

#[test]
fn disabled_features_have_no_objects() {
    let Some(objects) = rendered("off") else { return };
    // No NetworkPolicy, PodDisruptionBudget, ConfigMap or class, no roles of driver, node and snapshotter, no test.
    let expected = [
        "CSIDriver diskplugin.csi.example",
        "ClusterRole storage-diskplugin-attacher",
        "ClusterRole storage-diskplugin-provisioner",
        "ClusterRole storage-diskplugin-resizer",
        "ClusterRoleBinding storage-diskplugin-attacher",
        "ClusterRoleBinding storage-diskplugin-provisioner",
        "ClusterRoleBinding storage-diskplugin-resizer",
        "DaemonSet diskplugin-node",
        "Deployment diskplugin-controller",
        "Role diskplugin-controller",
        "RoleBinding diskplugin-controller",
        "ServiceAccount diskplugin-controller",
        "ServiceAccount diskplugin-node",
    ];
    assert_eq!(names(&objects), expected);
}

#[test]
fn the_csi_driver_object_reports_what_is_disabled() {
    let Some(objects) = rendered("off") else { return };
    let spec = &one(&objects, "CSIDriver").body["spec"];
    assert_eq!(spec["storageCapacity"], json!(false));
    assert_eq!(spec["seLinuxMount"], json!(false));
    // kubelet rejects 0.
    assert_eq!(spec.get("nodeAllocatableUpdatePeriodSeconds"), None);
}

#[test]
fn without_optional_features_the_sidecars_may_only_use_leases_of_the_namespace() {
    let Some(objects) = rendered("off") else { return };
    let leases = "leases.coordination.k8s.io".to_owned();
    let expected = [(leases.clone(), vec!["create"]), (leases, vec!["get", "update"])];
    assert_eq!(rules(one(&objects, "Role")), expected);
    let provisioner = objects
        .iter()
        .find(|it| it.name.ends_with("-provisioner") && is_role(it));
    let rules = rules(provisioner.unwrap());
    let of_snapshots = rules.iter().filter(|(resource, _)| resource.contains("snapshot"));
    assert_eq!(of_snapshots.count(), 0, "{rules:?}");
}

#[test]
fn the_controller_can_run_as_one_replica_with_the_role_of_its_instance() {
    let Some(objects) = rendered("off") else { return };
    let controller = one(&objects, "Deployment");
    assert_eq!(controller.body["spec"]["replicas"], json!(1));
    let pod = controller.pod().unwrap();
    for field in ["tolerations", "topologySpreadConstraints", "affinity", "initContainers"] {
        assert_eq!(pod.get(field), None, "{field}");
    }
    let expected = [
        "--cluster-id=off",
        "--log-level=info",
        "--driver-name=diskplugin.csi.example",
        "--log-format=json",
        "--region=cn-beijing",
        "--metadata-token-only",
        "--network=vpc",
        "--credentials=instance-role",
        "--instance-role=diskplugin-node",
    ];
    let driver = args(controller, "diskplugin");
    let first = driver.iter().position(|arg| *arg == expected[0]).unwrap();
    assert_eq!(driver[first..], expected);
    // No credentials, no certificate.
    assert_eq!(volumes(controller), ["socket", "api"]);
    let containers = controller.containers();
    let mounts: BTreeMap<_, _> = containers.iter().map(|it| (it.name, it.mounts())).collect();
    let own = vec!["socket", "api"];
    let sidecars = ["csi-attacher", "csi-provisioner", "csi-resizer", "diskplugin"];
    assert_eq!(mounts, sidecars.map(|name| (name, own.clone())).into());
}

#[test]
fn the_provisioner_publishes_no_capacity_if_it_is_disabled() {
    let Some(objects) = rendered("off") else { return };
    let controller = one(&objects, "Deployment");
    let found = args(controller, "csi-provisioner");
    assert!(!found.iter().any(|arg| arg.contains("capacity")), "{found:?}");
    let containers = controller.containers();
    let provisioner = containers.iter().find(|it| it.name == "csi-provisioner").unwrap();
    assert_eq!(provisioner.body.get("env"), None);
}

#[test]
fn a_node_without_optional_features_has_no_hook_no_token_and_no_instance_types() {
    let Some(objects) = rendered("off") else { return };
    let node = one(&objects, "DaemonSet");
    let pod = node.pod().unwrap();
    // Without the time of the preStop hook.
    assert_eq!(pod["terminationGracePeriodSeconds"], json!(40));
    assert_eq!(pod.get("affinity"), None);
    let own = ["socket", "registration", "staging", "pods", "dev", "state"];
    assert_eq!(volumes(node), own);
    let containers = node.containers();
    assert_eq!(containers.len(), 1);
    assert_eq!(containers[0].mounts(), own);
    for field in ["env", "lifecycle"] {
        assert_eq!(containers[0].body.get(field), None, "{field}");
    }
    let expected = [
        "--drain-timeout=25s",
        "--log-level=info",
        "--driver-name=diskplugin.csi.example",
        "--log-format=json",
        "--region=cn-beijing",
        "--metadata-token-only",
    ];
    assert!(
        args(node, "diskplugin").ends_with(&expected),
        "{:?}",
        args(node, "diskplugin")
    );
}

#[test]
fn the_registry_replaces_that_of_every_image() {
    for (name, registry) in [
        ("off", "registry.example.com:5000/storage/"),
        ("ack", "registry-vpc.cn-beijing.aliyuncs.com/storage/"),
    ] {
        let Some(objects) = rendered(name) else { return };
        let containers = objects.iter().flat_map(Object::containers);
        for container in containers {
            let image = text(container.body, "/image");
            let name = image.strip_prefix(registry);
            assert!(
                name.is_some_and(|name| !name.contains('/')),
                "{}: {image}",
                container.at()
            );
        }
    }
}

/// A cluster that serves snapshots, but no group snapshots: `auto` enables the former only.
#[test]
fn snapshots_follow_the_api_versions_of_the_cluster() {
    let Some(objects) = rendered("ack") else { return };
    let controller = one(&objects, "Deployment");
    let gate = "--feature-gates=CSIVolumeGroupSnapshot=false";
    assert!(args(controller, "csi-snapshotter").contains(&gate));
    let class = one(&objects, "VolumeSnapshotClass");
    assert_eq!(class.name, "diskplugin");
    assert_eq!(class.body["driver"], json!("second.csi.example"));
    assert_eq!(class.body["deletionPolicy"], json!("Delete"));
    assert!(!objects.iter().any(|it| it.kind == "VolumeGroupSnapshotClass"));
    let role = |end: &str| {
        let found = objects
            .iter()
            .find(|it| it.kind == "ClusterRole" && it.name.ends_with(end));
        rules(found.unwrap())
    };
    let of_snapshots = [
        ("events", vec!["create", "patch"]),
        (
            "volumesnapshotclasses.snapshot.storage.k8s.io",
            vec!["get", "list", "watch"],
        ),
        (
            "volumesnapshotcontents.snapshot.storage.k8s.io",
            vec!["get", "list", "watch", "update", "patch"],
        ),
        (
            "volumesnapshotcontents/status.snapshot.storage.k8s.io",
            vec!["update", "patch"],
        ),
    ];
    let of_snapshots = of_snapshots.map(|(resource, verbs)| (resource.to_owned(), verbs));
    assert_eq!(role("-snapshotter"), of_snapshots);
    let finalizer = (
        "volumesnapshots.snapshot.storage.k8s.io",
        ["get", "list", "watch", "update"],
    );
    let provisioner = role("-provisioner");
    assert!(
        provisioner
            .iter()
            .any(|(name, verbs)| (name.as_str(), &verbs[..]) == (finalizer.0, &finalizer.1[..]))
    );
}

/// The release's name is part of every name, because the chart's name is not part of it.
#[test]
fn another_release_has_names_of_its_own() {
    let Some(objects) = rendered("ack") else { return };
    let own = ["CSIDriver", "StorageClass", "VolumeSnapshotClass"];
    let named = objects.iter().filter(|object| !own.contains(&object.kind.as_str()));
    for object in named {
        let name = object.name.strip_prefix("storage-").unwrap_or(&object.name);
        assert!(name.starts_with("second-diskplugin-"), "{}", object.at());
    }
    assert_eq!(one(&objects, "CSIDriver").name, "second.csi.example");
    let class = one(&objects, "StorageClass");
    assert_eq!(class.name, "diskplugin-essd");
    let annotations = class.body.pointer("/metadata/annotations");
    assert_eq!(annotations, None, "it must not become the default class");
    let claim = one(&objects, "PersistentVolumeClaim");
    assert_eq!(text(&claim.body, "/spec/storageClassName"), "diskplugin-essd");
    let node = one(&objects, "DaemonSet");
    let required = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0";
    let term = node.pod().unwrap().pointer(required).unwrap();
    let excluded = |key: &str, value: &str| json!({"key": key, "operator": "NotIn", "values": [value]});
    let expected: Value = [
        excluded("alibabacloud.com/is-edge-worker", "true"),
        excluded("alibabacloud.com/lingjun-worker", "true"),
        excluded("type", "virtual-kubelet"),
    ]
    .into();
    assert_eq!(*term, json!({"matchExpressions": expected}));
}

#[test]
fn notes_name_what_is_disabled() {
    let no_limit =
        "Nodes report no volume limit. Set instanceTypes.publish, node.instanceTypes or node.maxVolumesPerNode.";
    let no_class = "This release has no StorageClass: set storageClasses, or create one with the provisioner \
                    diskplugin.csi.example.";
    let tested = "helm test diskplugin -n storage";
    for (name, present, missing) in [
        (
            "off",
            vec![no_limit, no_class, "\nSnapshots are disabled.\n"],
            vec![tested, "StorageClasses for your claims", "create secret"],
        ),
        (
            "monitoring",
            vec![no_limit, tested, "     storageClassName: disk-retain\n"],
            vec!["no StorageClass", "disabled", "create secret"],
        ),
    ] {
        let Some(notes) = notes(name) else { return };
        for text in present {
            assert!(notes.contains(text), "{name}: no {text:?} in\n{notes}");
        }
        for text in missing {
            assert!(!notes.contains(text), "{name}: {text:?} in\n{notes}");
        }
    }
}

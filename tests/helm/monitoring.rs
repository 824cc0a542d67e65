//! The HTTP port: HTTPS, permission to read the metrics, and scraping by Prometheus.

use std::collections::BTreeSet;

use serde_json::json;

use crate::render::{Object, all, list, names, one, read, rendered, text, texts, variant};
use crate::report;

fn of_kind<'a>(objects: &'a [Object], kind: &str) -> Vec<&'a Object> {
    objects.iter().filter(|object| object.kind == kind).collect()
}

#[test]
fn monitoring_is_off_by_default() {
    let objects = variant("minimal");
    let kinds = ["PodMonitor", "PrometheusRule"];
    report(objects.iter().filter_map(|object| {
        let found = kinds.contains(&object.kind.as_str()) || object.name.contains("dashboard");
        found.then(|| object.at())
    }));
}

#[test]
fn probes_use_https_exactly_if_the_driver_serves_it() {
    let objects = all();
    let mut schemes = BTreeSet::new();
    let containers = objects.iter().flat_map(Object::containers);
    report(
        containers
            .filter(|container| container.name == "diskplugin")
            .filter_map(|container| {
                let args = texts(container.body, "/args");
                // A check, such as doctor, has no port.
                args.iter().find(|arg| arg.starts_with("--http-address="))?;
                let serves = args.iter().any(|arg| arg.starts_with("--http-tls-cert-file="));
                let probe = container.body.pointer("/readinessProbe/httpGet").unwrap();
                let checks = probe.get("scheme") == Some(&json!("HTTPS"));
                let same = container.body.pointer("/livenessProbe/httpGet/scheme") == probe.get("scheme");
                schemes.insert(serves);
                (serves != checks || !same).then(|| container.at())
            }),
    );
    if rendered("monitoring").is_some() {
        assert_eq!(schemes.len(), 2, "variants with and without are needed");
    }
}

/// Added to and removed from those of the same values without monitoring, and with everything that needs a token.
#[test]
fn monitoring_adds_its_objects_and_the_driver_needs_no_permissions_without_its_features() {
    let Some(objects) = rendered("monitoring") else { return };
    let (before, after) = (names(&variant("production")), names(&objects));
    let only = |these: &[String], those: &[String]| -> Vec<String> {
        let only = these.iter().filter(|name| !those.contains(name));
        only.cloned().collect()
    };
    let added = [
        "ClusterRoleBinding storage-diskplugin-auth-delegator",
        "ConfigMap storage-diskplugin-dashboard-controller",
        "ConfigMap storage-diskplugin-dashboard-node",
        "ConfigMap storage-diskplugin-dashboard-volume",
        "PodMonitor storage-diskplugin-controller",
        "PodMonitor storage-diskplugin-node",
        "PrometheusRule storage-diskplugin",
    ];
    assert_eq!(only(&after, &before), added);
    let removed = [
        "ClusterRole storage-diskplugin-driver",
        "ClusterRoleBinding storage-diskplugin-driver",
        "ConfigMap diskplugin-instance-types",
    ];
    assert_eq!(only(&before, &after), removed);
    let arguments = |kind: &str| -> Vec<String> {
        let containers = one(&objects, kind).containers();
        let args = texts(containers[0].body, "/args").into_iter();
        args.map(str::to_owned).collect()
    };
    let unwanted = ["--events", "--startup-taint", "--instance-types"];
    for arg in arguments("Deployment").iter().chain(&arguments("DaemonSet")) {
        assert!(!unwanted.iter().any(|flag| arg.starts_with(flag)), "{arg}");
    }
    let volumes = list(one(&objects, "DaemonSet").pod().unwrap(), "/volumes");
    assert!(volumes.iter().all(|volume| volume["name"] != "instance-types"));
}

#[test]
fn controller_and_node_mount_the_certificate_of_the_http_port() {
    let Some(objects) = rendered("monitoring") else { return };
    for kind in ["Deployment", "DaemonSet"] {
        let object = one(&objects, kind);
        let volumes = list(object.pod().unwrap(), "/volumes");
        let volume = volumes.into_iter().find(|volume| volume["name"] == "tls").unwrap();
        assert_eq!(text(volume, "/secret/secretName"), "disk-tls", "{kind}");
        // 0440, which is octal only to Kubernetes.
        assert_eq!(volume["secret"]["defaultMode"], json!(440.0), "{kind}");
        let containers = object.containers();
        let mounts = list(containers[0].body, "/volumeMounts");
        let mount = mounts.into_iter().find(|mount| mount["name"] == "tls").unwrap();
        // A directory without subPath, so that kubelet updates it.
        let expected = json!({"name": "tls", "mountPath": "/etc/diskplugin-tls", "readOnly": true});
        assert_eq!(*mount, expected, "{kind}");
        let args = texts(containers[0].body, "/args");
        for flag in [
            "--http-tls-cert-file=/etc/diskplugin-tls/tls.crt",
            "--http-tls-key-file=/etc/diskplugin-tls/tls.key",
        ] {
            assert!(args.contains(&flag), "{kind}: {args:?}");
        }
    }
}

#[test]
fn pod_monitors_scrape_ports_of_the_pods_with_the_labels_of_the_alerts() {
    let Some(objects) = rendered("monitoring") else { return };
    let pods = |component: &str| {
        let kind = match component {
            "node" => "DaemonSet",
            _ => "Deployment",
        };
        one(&objects, kind)
    };
    let monitors = of_kind(&objects, "PodMonitor");
    assert_eq!(monitors.len(), 2);
    let mut jobs = BTreeSet::new();
    for monitor in monitors {
        let component = text(&monitor.body, "/metadata/labels/app.kubernetes.io~1component");
        assert_eq!(monitor.name, format!("storage-diskplugin-{component}"));
        // By which Prometheus selects it.
        assert_eq!(text(&monitor.body, "/metadata/labels/release"), "prometheus");
        assert_eq!(
            monitor.body["spec"]["namespaceSelector"],
            json!({"matchNames": ["storage"]})
        );
        let containers = pods(component).containers();
        let ports = containers.iter().flat_map(|it| list(it.body, "/ports"));
        let ports: BTreeSet<&str> = ports.map(|port| text(port, "/name")).collect();
        let endpoints = list(&monitor.body, "/spec/podMetricsEndpoints");
        let scraped: BTreeSet<&str> = endpoints.iter().map(|it| text(it, "/port")).collect();
        assert_eq!(scraped, ports, "{}", monitor.at());
        for endpoint in endpoints {
            let is_driver = text(endpoint, "/port") == "health";
            assert_eq!(
                endpoint.get("scheme"),
                is_driver.then_some(&json!("https")),
                "{endpoint}"
            );
            let ca = json!({"secret": {"name": "disk-metrics-ca", "key": "ca.crt"}});
            let tls = json!({"serverName": "diskplugin.storage.svc", "ca": ca});
            assert_eq!(endpoint.get("tlsConfig"), is_driver.then_some(&tls), "{endpoint}");
            // Nodes cannot review tokens.
            let token = json!({"credentials": {"name": "disk-metrics-token", "key": "token"}});
            let asks = is_driver && component == "controller";
            assert_eq!(endpoint.get("authorization"), asks.then_some(&token), "{endpoint}");
            assert_eq!(text(endpoint, "/path"), "/metrics");
            assert_eq!(text(endpoint, "/interval"), "15s");
            let job = text(endpoint, "/relabelings/0/replacement");
            let label = |source: &str, target: &str| json!({"sourceLabels": [format!("__meta_kubernetes_pod_{source}")], "targetLabel": target});
            let expected = [
                json!({"targetLabel": "job", "replacement": job}),
                label("node_name", "node"),
                label("label_app_kubernetes_io_instance", "release"),
            ];
            assert_eq!(endpoint["relabelings"], json!(expected));
            jobs.insert(job);
        }
    }
    let expected = ["controller", "node", "sidecars"].map(|role| format!("diskplugin-{role}"));
    assert!(jobs.iter().eq(expected.iter()), "{jobs:?}");
}

/// Only controllers have a token; nodes must not get one for this.
#[test]
fn only_the_controller_reviews_tokens() {
    let Some(objects) = rendered("monitoring") else { return };
    let reviews = |kind: &str| {
        let containers = one(&objects, kind).containers();
        texts(containers[0].body, "/args").contains(&"--http-authorization=token-review")
    };
    assert!(reviews("Deployment") && !reviews("DaemonSet"));
    let bindings = of_kind(&objects, "ClusterRoleBinding").into_iter();
    let delegators: Vec<_> = bindings
        .filter(|it| it.body["roleRef"]["name"] == "system:auth-delegator")
        .flat_map(|it| list(&it.body, "/subjects"))
        .collect();
    let account = json!({"kind": "ServiceAccount", "name": "diskplugin-controller", "namespace": "storage"});
    assert_eq!(delegators, [&account]);
}

#[test]
fn the_rule_and_the_dashboards_are_the_files_of_the_chart() {
    let files = "deploy/helm/diskplugin/files";
    let Some(objects) = rendered("monitoring") else { return };
    let rules = read(format!("{files}/alerts.yaml"));
    let url = "https://git.example.com/diskplugin/blob/main";
    let rules = rules.replace("runbook_url: ", &format!("runbook_url: {url}/"));
    let rules = crate::render::yaml(&rules).remove(0);
    let rule = one(&objects, "PrometheusRule");
    assert_eq!(rule.body["spec"], rules);
    assert_eq!(text(&rule.body, "/metadata/labels/release"), "prometheus");
    let config_maps = of_kind(&objects, "ConfigMap").into_iter();
    let dashboards: Vec<_> = config_maps
        .filter(|it| it.body.pointer("/metadata/labels/grafana_dashboard") == Some(&json!("1")))
        .collect();
    assert_eq!(dashboards.len(), 3);
    for dashboard in dashboards {
        let annotations = &dashboard.body["metadata"]["annotations"];
        assert_eq!(*annotations, json!({"grafana_folder": "Storage"}));
        let data = dashboard.body["data"].as_object().unwrap();
        for (name, content) in data {
            let file = name.strip_prefix("diskplugin-").unwrap();
            let source = read(format!("{files}/dashboards/{file}"));
            assert_eq!(content.as_str().unwrap().trim_end(), source.trim_end(), "{name}");
        }
    }
}

/// Prometheus reaches the scraped ports, and no other port is open.
#[test]
fn network_policies_open_exactly_the_scraped_ports() {
    let Some(objects) = rendered("monitoring") else { return };
    for monitor in of_kind(&objects, "PodMonitor") {
        let component = "/metadata/labels/app.kubernetes.io~1component";
        let policies = of_kind(&objects, "NetworkPolicy").into_iter();
        let mut policy = policies.filter(|it| text(&it.body, component) == text(&monitor.body, component));
        let policy = policy.next().unwrap();
        let endpoints = list(&monitor.body, "/spec/podMetricsEndpoints");
        let scraped: Vec<_> = endpoints.iter().map(|it| text(it, "/port")).collect();
        let ports = list(&policy.body, "/spec/ingress/0/ports");
        let opened: Vec<_> = ports.iter().map(|it| text(it, "/port")).collect();
        assert_eq!(opened, scraped);
    }
}

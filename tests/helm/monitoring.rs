//! The HTTP port: HTTPS, who may read the metrics, what Prometheus scrapes.

use std::collections::BTreeSet;

use serde_json::json;

use crate::render::{Object, all, list, read, text, texts, variant};
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
    assert_eq!(schemes.len(), 2, "variants with and without are needed");
}

#[test]
fn pod_monitors_scrape_ports_of_the_pods_with_the_labels_of_the_alerts() {
    let objects = variant("monitoring");
    let pods = |component: &str| {
        let kind = match component {
            "node" => "DaemonSet",
            _ => "Deployment",
        };
        of_kind(&objects, kind)[0]
    };
    let monitors = of_kind(&objects, "PodMonitor");
    assert_eq!(monitors.len(), 2);
    let mut jobs = BTreeSet::new();
    for monitor in monitors {
        let component = "/metadata/labels/app.kubernetes.io~1component";
        let containers = pods(text(&monitor.body, component)).containers();
        let ports = containers.iter().flat_map(|it| list(it.body, "/ports"));
        let ports: BTreeSet<&str> = ports.map(|port| text(port, "/name")).collect();
        let endpoints = list(&monitor.body, "/spec/podMetricsEndpoints");
        let scraped: BTreeSet<&str> = endpoints.iter().map(|it| text(it, "/port")).collect();
        assert_eq!(scraped, ports, "{}", monitor.at());
        for endpoint in endpoints {
            let is_driver = text(endpoint, "/port") == "health";
            assert_eq!(endpoint.get("scheme").is_some(), is_driver, "{endpoint}");
            let targets: Vec<_> = list(endpoint, "/relabelings")
                .iter()
                .map(|relabeling| text(relabeling, "/targetLabel"))
                .collect();
            assert_eq!(targets, ["job", "node", "release"], "{endpoint}");
            assert_eq!(
                text(endpoint, "/relabelings/2/sourceLabels/0"),
                "__meta_kubernetes_pod_label_app_kubernetes_io_instance"
            );
            jobs.insert(text(endpoint, "/relabelings/0/replacement"));
        }
    }
    let expected = ["controller", "node", "sidecars"].map(|role| format!("diskplugin-{role}"));
    assert!(jobs.iter().eq(expected.iter()), "{jobs:?}");
}

/// Only controllers have a token; nodes must not get one for this.
#[test]
fn only_the_controller_reviews_tokens() {
    let objects = variant("monitoring");
    let reviews = |kind: &str| {
        let object = of_kind(&objects, kind)[0];
        let containers = object.containers();
        texts(containers[0].body, "/args").contains(&"--http-authorization=token-review")
    };
    assert!(reviews("Deployment") && !reviews("DaemonSet"));
    let bindings = of_kind(&objects, "ClusterRoleBinding").into_iter();
    let delegators: Vec<_> = bindings
        .filter(|it| text(&it.body, "/roleRef/name") == "system:auth-delegator")
        .flat_map(|it| list(&it.body, "/subjects"))
        .map(|subject| text(subject, "/name"))
        .collect();
    assert_eq!(delegators, ["diskplugin-controller"]);
}

#[test]
fn the_rule_and_the_dashboards_are_the_files_of_the_chart() {
    let files = "deploy/helm/diskplugin/files";
    let objects = variant("monitoring");
    let rules = read(format!("{files}/rules.yaml"));
    let url = "https://git.example.com/diskplugin/blob/main";
    let rules = rules.replace("runbook_url: ", &format!("runbook_url: {url}/"));
    let rules = crate::render::yaml(&rules).remove(0);
    let rendered = of_kind(&objects, "PrometheusRule");
    assert_eq!(rendered.len(), 1);
    assert_eq!(rendered[0].body["spec"], rules);
    let config_maps = of_kind(&objects, "ConfigMap").into_iter();
    let dashboards: Vec<_> = config_maps
        .filter(|it| it.body.pointer("/metadata/labels/grafana_dashboard") == Some(&json!("1")))
        .collect();
    assert_eq!(dashboards.len(), 3);
    for dashboard in dashboards {
        let data = dashboard.body["data"].as_object().unwrap();
        for (name, content) in data {
            let file = name.strip_prefix("diskplugin-").unwrap();
            let source = read(format!("{files}/dashboards/{file}"));
            assert_eq!(content.as_str().unwrap().trim_end(), source.trim_end(), "{name}");
        }
    }
}

/// Prometheus reaches what it scrapes, and nothing else is open.
#[test]
fn network_policies_open_exactly_the_scraped_ports() {
    let objects = variant("monitoring");
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

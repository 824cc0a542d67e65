//! The Deployments and DaemonSets that run the driver.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{Container, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;

use super::list::list;
use super::{Cluster, Result};
use crate::model::DriverName;

/// A Deployment or DaemonSet that runs a driver of this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    pub namespace: String,
    pub name: String,
    /// The images of its containers.
    pub images: Vec<String>,
    /// 1 for a DaemonSet.
    pub replicas: i32,
}

impl Workload {
    /// The controllers, in this namespace or in all.
    pub async fn deployments(cluster: &Cluster, driver: &DriverName, namespace: Option<&str>) -> Result<Vec<Self>> {
        let api: Api<Deployment> = match namespace {
            Some(namespace) => Api::namespaced(cluster.client(), namespace),
            None => Api::all(cluster.client()),
        };
        let found = list(&api, "deployments").await?.into_iter().filter_map(|one| {
            let spec = one.spec?;
            of(one.metadata, spec.template.spec?, spec.replicas, driver)
        });
        Ok(found.collect())
    }

    /// The node plugins in all namespaces.
    pub async fn daemon_sets(cluster: &Cluster, driver: &DriverName) -> Result<Vec<Self>> {
        let api: Api<DaemonSet> = Api::all(cluster.client());
        let found = list(&api, "daemonsets").await?.into_iter();
        let found = found.filter_map(|one| of(one.metadata, one.spec?.template.spec?, None, driver));
        Ok(found.collect())
    }
}

fn of(metadata: ObjectMeta, pod: PodSpec, replicas: Option<i32>, driver: &DriverName) -> Option<Workload> {
    let containers = pod.containers;
    containers.iter().any(|one| runs(one, driver)).then(|| Workload {
        namespace: metadata.namespace.unwrap_or_default(),
        name: metadata.name.unwrap_or_default(),
        images: containers.into_iter().filter_map(|one| one.image).collect(),
        replicas: replicas.unwrap_or(1),
    })
}

/// Whether the container has `--driver-name` with this name.
fn runs(container: &Container, driver: &DriverName) -> bool {
    let args = container.args.iter().flatten();
    let words: Vec<_> = args.flat_map(|arg| arg.splitn(2, '=')).collect();
    words
        .windows(2)
        .any(|pair| pair[0] == "--driver-name" && pair[1] == driver.as_str())
}

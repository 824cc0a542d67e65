//! What an installation of the driver consists of, read once.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use k8s_openapi::api::core::v1::{Container, Node, PodSpec};
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode, StorageClass};
use kube::Api;
use kube::api::PostParams;

use super::access::soon;
use super::error::code;
use super::list::list;
use super::{Cluster, ListError};
use crate::model::DriverName;
use crate::model::topology::ZONE_KEY;

/// The annotation of a default StorageClass.
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

/// The fields of the CSIDriver object that the driver depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsiDriverSpec {
    pub attach_required: bool,
    pub storage_capacity: bool,
    pub fs_group_policy: Option<String>,
}

/// A Deployment or DaemonSet that runs a driver of this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// `Deployment` or `DaemonSet`.
    pub kind: &'static str,
    /// `namespace/name`.
    pub name: String,
    /// The images of its containers.
    pub images: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRegistration {
    pub name: String,
    /// Whether its CSINode has the driver.
    pub is_registered: bool,
    /// Whether it has the label of its zone.
    pub has_zone: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultClass {
    pub name: String,
    pub provisioner: String,
}

impl Cluster {
    /// The CSIDriver object of this driver.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn csi_driver(&self, driver: &DriverName) -> Result<Option<CsiDriverSpec>, ListError> {
        let api: Api<CSIDriver> = Api::all(self.client());
        let failed = |outcome| ListError::new("csidrivers", outcome);
        let spec = match soon().bound(api.get(driver.as_str())).await {
            Ok(Ok(found)) => found.spec,
            Ok(Err(error)) if code(&error) == Some(404) => return Ok(None),
            Ok(Err(error)) => return Err(failed(Ok(error))),
            Err(late) => return Err(failed(Err(late))),
        };
        Ok(Some(CsiDriverSpec {
            attach_required: spec.attach_required.unwrap_or(true),
            storage_capacity: spec.storage_capacity.unwrap_or(false),
            fs_group_policy: spec.fs_group_policy,
        }))
    }

    /// The Deployments and DaemonSets that run a driver of this name.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub async fn workloads(&self, driver: &DriverName) -> Result<Vec<Workload>, ListError> {
        let mut found = Vec::new();
        for object in list::<Deployment>(&Api::all(self.client()), "deployments").await? {
            let pod = object.spec.and_then(|spec| spec.template.spec);
            found.extend(workload(
                "Deployment",
                object.metadata.namespace,
                object.metadata.name,
                pod,
                driver,
            ));
        }
        for object in list::<DaemonSet>(&Api::all(self.client()), "daemonsets").await? {
            let pod = object.spec.and_then(|spec| spec.template.spec);
            found.extend(workload(
                "DaemonSet",
                object.metadata.namespace,
                object.metadata.name,
                pod,
                driver,
            ));
        }
        Ok(found)
    }

    /// All nodes.
    ///
    /// # Errors
    /// If Nodes or CSINodes cannot be listed.
    pub async fn registrations(&self, driver: &DriverName) -> Result<Vec<NodeRegistration>, ListError> {
        let nodes = list::<Node>(&Api::all(self.client()), "nodes").await?;
        let registered = list::<CSINode>(&Api::all(self.client()), "csinodes").await?;
        let registered: BTreeSet<_> = registered
            .into_iter()
            .filter(|node| node.spec.drivers.iter().any(|row| row.name == driver.as_str()))
            .filter_map(|node| node.metadata.name)
            .collect();
        let rows = nodes.into_iter().filter_map(|node| {
            let name = node.metadata.name?;
            Some(NodeRegistration {
                is_registered: registered.contains(&name),
                has_zone: node.metadata.labels.is_some_and(|labels| labels.contains_key(ZONE_KEY)),
                name,
            })
        });
        Ok(rows.collect())
    }

    /// The default StorageClasses.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub async fn default_classes(&self) -> Result<Vec<DefaultClass>, ListError> {
        let classes = list::<StorageClass>(&Api::all(self.client()), "storageclasses").await?;
        let defaults = classes.into_iter().filter(|class| {
            let annotations = class.metadata.annotations.as_ref();
            annotations
                .and_then(|all| all.get(DEFAULT_CLASS))
                .is_some_and(|value| value == "true")
        });
        Ok(defaults
            .map(|class| DefaultClass {
                name: class.metadata.name.unwrap_or_default(),
                provisioner: class.provisioner,
            })
            .collect())
    }

    /// Whether the user of this client has a permission, in all namespaces.
    ///
    /// # Errors
    /// The review fails.
    pub async fn may(&self, verb: &str, group: &str, resource: &str) -> Result<bool, ListError> {
        let attributes = ResourceAttributes {
            verb: Some(verb.to_owned()),
            group: Some(group.to_owned()),
            resource: Some(resource.to_owned()),
            ..ResourceAttributes::default()
        };
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(attributes),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let api: Api<SelfSubjectAccessReview> = Api::all(self.client());
        let failed = |outcome| ListError::new("selfsubjectaccessreviews", outcome);
        let created = soon().bound(api.create(&PostParams::default(), &review)).await;
        let created = created.map_err(|late| failed(Err(late)))?;
        let created = created.map_err(|error| failed(Ok(error)))?;
        Ok(created.status.is_some_and(|status| status.allowed))
    }
}

fn workload(
    kind: &'static str,
    namespace: Option<String>,
    name: Option<String>,
    pod: Option<PodSpec>,
    driver: &DriverName,
) -> Option<Workload> {
    let containers = pod?.containers;
    containers.iter().any(|one| runs(one, driver)).then(|| Workload {
        kind,
        name: format!("{}/{}", namespace.unwrap_or_default(), name.unwrap_or_default()),
        images: containers.into_iter().filter_map(|one| one.image).collect(),
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

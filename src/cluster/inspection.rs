//! The objects of an installation of the driver, and the rights of a user.

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use k8s_openapi::api::storage::v1::{CSIDriver, StorageClass};
use kube::Api;
use kube::api::PostParams;

use super::access::{request, request_optional};
use super::list::list;
use super::{Cluster, Result};
use crate::model::DriverName;

/// The annotation of a default StorageClass.
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

/// The fields of the CSIDriver object that the driver depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsiDriverSpec {
    pub attach_required: bool,
    pub storage_capacity: bool,
    pub fs_group_policy: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultClass {
    pub name: String,
    pub provisioner: String,
}

impl Cluster {
    /// The CSIDriver object of this driver.
    pub async fn csi_driver(&self, driver: &DriverName) -> Result<Option<CsiDriverSpec>> {
        let api: Api<CSIDriver> = Api::all(self.client());
        let found = request_optional("read the CSIDriver", api.get(driver.as_str())).await?;
        Ok(found.map(|found| CsiDriverSpec {
            attach_required: found.spec.attach_required.unwrap_or(true),
            storage_capacity: found.spec.storage_capacity.unwrap_or(false),
            fs_group_policy: found.spec.fs_group_policy,
        }))
    }

    /// The default StorageClasses.
    pub async fn default_classes(&self) -> Result<Vec<DefaultClass>> {
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
    pub async fn may(&self, verb: &str, group: &str, resource: &str) -> Result<bool> {
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
        let created = request("review the rights", api.create(&PostParams::default(), &review)).await?;
        Ok(created.status.is_some_and(|status| status.allowed))
    }
}

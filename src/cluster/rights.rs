//! The rights of the user of a client.

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};

use super::{Cluster, Result};

impl Cluster {
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
        let status = self.review("review the rights", &review).await?.status;
        Ok(status.is_some_and(|status| status.allowed))
    }
}

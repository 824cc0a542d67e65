//! Reviews of tokens and rights. HTTP requests are authenticated and authorized by their bearer token as by kubelet and
//! kube-rbac-proxy: TokenReview, and SubjectAccessReview for the path.

use std::fmt::Debug;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
    SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::access::request;
use super::{Cluster, Result};

/// Whether a request is permitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Allowed,
    /// The token is invalid, or of another cluster.
    Unauthenticated,
    /// The user of the token may not read the path.
    Forbidden,
}

impl Cluster {
    /// Whether the user of the token may read the path.
    pub async fn may_get(&self, token: &str, path: &str) -> Result<Decision> {
        let Some(user) = self.authenticate(token).await? else {
            return Ok(Decision::Unauthenticated);
        };
        Ok(match self.authorize(user, path).await? {
            true => Decision::Allowed,
            false => Decision::Forbidden,
        })
    }

    async fn authenticate(&self, token: &str) -> Result<Option<UserInfo>> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: Some(token.to_owned()),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let status = self.review("create a TokenReview", &review).await?.status;
        let status = status.filter(|status| status.authenticated == Some(true));
        Ok(status.and_then(|status| status.user))
    }

    async fn authorize(&self, user: UserInfo, path: &str) -> Result<bool> {
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: user.username,
                groups: user.groups,
                uid: user.uid,
                extra: user.extra,
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some(path.to_owned()),
                    verb: Some("get".to_owned()),
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let status = self.review("create a SubjectAccessReview", &review).await?.status;
        Ok(status.is_some_and(|status| status.allowed))
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
        let status = self.review("review the rights", &review).await?.status;
        Ok(status.is_some_and(|status| status.allowed))
    }

    /// Creates a review, which the API server does not store. Returns it with its result.
    async fn review<K>(&self, step: &str, review: &K) -> Result<K>
    where
        K: Resource<DynamicType = ()> + Serialize + Clone + DeserializeOwned + Debug + Sync,
    {
        let api: Api<K> = Api::all(self.client());
        request(step, api.create(&PostParams::default(), review)).await
    }
}

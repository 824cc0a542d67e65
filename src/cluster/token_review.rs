//! Authenticates and authorizes HTTP requests by their bearer token, as kubelet and kube-rbac-proxy do: TokenReview,
//! and SubjectAccessReview for the path.

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};

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
}

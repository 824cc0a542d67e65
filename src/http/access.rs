//! Who may read the pages with data about calls and volumes. The probes of kubelet are open.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Mutex;
use std::time::Duration;

use http::{HeaderMap, header};
use sha2::{Digest, Sha256};

use crate::base::{Deadline, LogOnce, error_chain, lock};
use crate::cluster::review::Decision;
use crate::cluster::{self, Cluster};

/// How long a decision is reused, and how many are kept. Prometheus scrapes every few seconds with the same token.
const TTL: Duration = Duration::from_secs(60);
const MAX_DECISIONS: usize = 64;

/// The hash of a token, and a path.
type Key = ([u8; 32], String);

/// Decides whether the user of a token may read a path. A function, so that a node, which has none, does not contain
/// the client of the API server.
type Review = Box<dyn Fn(String, String) -> BoxFuture<cluster::Result<Decision>> + Send + Sync>;
type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Checks the bearer tokens of requests; without a review, every request is allowed.
#[derive(Default)]
pub(crate) struct Authorizer {
    review: Option<Review>,
    /// The newest first, each until it expires.
    decisions: Mutex<VecDeque<(Key, Deadline, Decision)>>,
    log_once: LogOnce,
}

impl std::fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reviews = self.review.is_some();
        f.debug_struct("Authorizer")
            .field("reviews", &reviews)
            .finish_non_exhaustive()
    }
}

impl Authorizer {
    /// Allows what the API server allows.
    pub(crate) fn new(cluster: Cluster) -> Self {
        let review: Review = Box::new(move |token, path| {
            let cluster = cluster.clone();
            Box::pin(async move { cluster.may_get(&token, &path).await })
        });
        Self {
            review: Some(review),
            ..Self::default()
        }
    }

    /// The decision for a request; none if the request to the API server failed.
    pub(super) async fn check(&self, headers: &HeaderMap, path: &str) -> Option<Decision> {
        let Some(review) = &self.review else {
            return Some(Decision::Allowed);
        };
        let Some(token) = bearer_token(headers) else {
            return Some(Decision::Unauthenticated);
        };
        let key = (Sha256::digest(token).into(), path.to_owned());
        if let Some(decision) = self.known(&key) {
            return Some(decision);
        }
        match review(token.to_owned(), path.to_owned()).await {
            Ok(decision) => {
                self.log_once.should_log("review", "");
                self.remember(key, decision);
                Some(decision)
            }
            Err(error) => {
                let error = error_chain(&error);
                if self.log_once.should_log("review", &error) {
                    tracing::warn!(error, "requests to the HTTP port cannot be authorized");
                }
                None
            }
        }
    }

    fn known(&self, key: &Key) -> Option<Decision> {
        let decisions = lock(&self.decisions);
        let mut valid = decisions.iter().filter(|(_, expires, _)| !expires.has_passed());
        valid.find(|(known, ..)| known == key).map(|(.., decision)| *decision)
    }

    fn remember(&self, key: Key, decision: Decision) {
        let mut decisions = lock(&self.decisions);
        // Many invalid tokens must not keep the token of Prometheus from being remembered.
        decisions.truncate(MAX_DECISIONS - 1);
        decisions.push_front((key, Deadline::after(TTL), decision));
    }
}

fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bearer_tokens_are_read() {
        for (value, token) in [
            ("Bearer abc", Some("abc")),
            ("bearer  abc ", Some("abc")),
            ("Basic abc", None),
            ("Bearer ", None),
            ("abc", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            assert_eq!(bearer_token(&headers), token, "{value:?}");
        }
        assert_eq!(bearer_token(&HeaderMap::new()), None);
    }

    #[tokio::test]
    async fn without_a_reviewer_every_request_is_allowed() {
        let access = Authorizer::default().check(&HeaderMap::new(), "/metrics").await;
        assert_eq!(access, Some(Decision::Allowed));
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_decision_is_forgotten_first() {
        let authorizer = Authorizer::default();
        let key = |number: u8| ([number; 32], "/metrics".to_owned());
        for number in 0..=u8::try_from(MAX_DECISIONS).unwrap() {
            authorizer.remember(key(number), Decision::Allowed);
            tokio::time::advance(Duration::from_millis(10)).await;
        }
        assert_eq!(authorizer.known(&key(0)), None);
        assert_eq!(authorizer.known(&key(1)), Some(Decision::Allowed));
        assert_eq!(authorizer.known(&key(64)), Some(Decision::Allowed));
    }
}

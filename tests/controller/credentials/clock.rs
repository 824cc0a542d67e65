//! A machine whose clock differs from that of the cloud by more than the cloud accepts.

use std::sync::Arc;

use ecs::credential::{AssumedRole, Cache, CredentialProvider, OidcRole};
use jiff::SignedDuration;

use crate::common::oidc::PROVIDER;
use crate::credentials::lab::{Lab, SCHEMES, attach, key, list, session};

/// In both directions, just beyond the limit and far.
fn differences() -> impl Iterator<Item = SignedDuration> {
    let minutes = [16, 365 * 24 * 60];
    let both = minutes.into_iter().flat_map(|minutes| [minutes, -minutes]);
    both.map(SignedDuration::from_mins)
}

#[tokio::test]
async fn calls_are_signed_with_the_clock_of_the_cloud() {
    for by in differences() {
        for scheme in SCHEMES {
            let lab = Lab::ahead(by).await;
            let client = lab.client(key(), scheme);
            // A call that is not repeatable was not executed, and is repeated.
            let error = attach(&client).await.unwrap_err();
            assert_eq!(error.code(), Some("InvalidDiskId.NotFound"), "{by} {error}");
            let before = lab.cloud.counts();
            for _ in 0..3 {
                list(&client).await.unwrap();
            }
            assert_eq!(lab.calls("DescribeDisks"), (3, 0), "{before:?}");
            let found = client.server_clock().local_ahead().unwrap();
            assert!((found - by).abs() < SignedDuration::from_secs(5), "{found}");
        }
    }
}

#[tokio::test]
async fn roles_are_assumed_with_the_clock_of_the_cloud() {
    for by in differences() {
        for scheme in SCHEMES {
            let lab = Lab::ahead(by).await;
            let cached = |role: Arc<dyn CredentialProvider>| -> Arc<dyn CredentialProvider> {
                Arc::new(Cache::new(role, Arc::new(lab.clock.clone())))
            };
            let assumed = AssumedRole::new(key(), lab.sts(scheme), session());
            list(&lab.client(cached(Arc::new(assumed)), scheme)).await.unwrap();

            let lab = Lab::ahead(by).await;
            let oidc = OidcRole::new(lab.sts(scheme), PROVIDER.to_owned(), lab.token_file(), session());
            let cached = Arc::new(Cache::new(Arc::new(oidc), Arc::new(lab.clock.clone())));
            list(&lab.client(cached, scheme)).await.unwrap();
        }
    }
}

//! Each source of credentials against the fake cloud over HTTP: signatures, renewal and errors.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use diskplugin::base::Deadline;
use diskplugin::base::error_chain;
use ecs::credential::{CredentialError, CredentialProvider, Credentials, Directory};
use ecs::sign::Scheme;
use ecs::{DescribeDisks, Kind};
use fake_ecs::options::{DEFAULT_KEY, DEFAULT_SECRET};
use serde_json::json;

mod clock;
mod lab;
mod metadata;

use lab::{Lab, SCHEMES, attach, cached, key, list};

/// Advances the clock until rejected credentials may be renewed.
async fn wait_until_renewable() {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(10)).await;
    tokio::time::resume();
}

#[tokio::test]
async fn an_oidc_role_signs_calls_with_both_signature_versions() {
    let lab = Lab::new().await;
    for scheme in SCHEMES {
        let client = lab.client(lab.oidc(), scheme);
        list(&client).await.unwrap();
        list(&client).await.unwrap();
    }
    assert_eq!(lab.calls("AssumeRoleWithOIDC"), (2, 0));
}

#[tokio::test]
async fn a_role_can_be_assumed_with_any_source() {
    let lab = Lab::new().await;
    for scheme in SCHEMES {
        for base in [key(), lab.oidc(), cached(lab.instance(None, true))] {
            let client = lab.client(lab.assumed(base, scheme), scheme);
            list(&client).await.unwrap();
        }
    }
    assert_eq!(lab.calls("AssumeRole"), (6, 0));
}

#[tokio::test]
async fn parallel_calls_with_expired_credentials_cause_one_renewal_and_one_retry_each() {
    let lab = Lab::new().await;
    let client = lab.client(lab.oidc(), Scheme::V1);
    list(&client).await.unwrap();
    wait_until_renewable().await;
    lab.expire().await;
    lab.cloud.clear_calls();
    let (a, b, c) = tokio::join!(list(&client), list(&client), list(&client));
    let (d, e, f) = tokio::join!(list(&client), list(&client), list(&client));
    for outcome in [a, b, c, d, e, f] {
        outcome.unwrap();
    }
    assert_eq!(lab.calls("AssumeRoleWithOIDC"), (1, 0));
    let (calls, refused) = lab.calls("DescribeDisks");
    assert!((1..=3).contains(&refused), "{refused}");
    assert_eq!(calls, 6 + refused);
}

#[tokio::test]
async fn a_write_with_expired_credentials_is_retried_once() {
    let lab = Lab::new().await;
    let client = lab.client(lab.oidc(), Scheme::V3);
    list(&client).await.unwrap();
    wait_until_renewable().await;
    lab.expire().await;
    let error = attach(&client).await.unwrap_err();
    // The second call was signed correctly: it fails because of its disk.
    assert_eq!(error.kind(), Kind::NotFound, "{error}");
    assert_eq!(lab.calls("AttachDisk"), (2, 2));
}

#[tokio::test]
async fn an_expired_key_under_an_assumed_role_is_renewed_too() {
    let lab = Lab::new().await;
    let client = lab.client(lab.assumed(lab.oidc(), Scheme::V1), Scheme::V1);
    list(&client).await.unwrap();
    wait_until_renewable().await;
    lab.expire().await;
    list(&client).await.unwrap();
    assert_eq!(lab.calls("AssumeRoleWithOIDC"), (2, 0));
    assert_eq!(lab.calls("AssumeRole"), (3, 1));
}

#[tokio::test]
async fn an_unknown_key_costs_one_call_and_the_error_names_its_source() {
    let lab = Lab::new().await;
    let secret = lab.dir.path().join("secret");
    std::fs::create_dir(&secret).unwrap();
    std::fs::write(secret.join("access-key-id"), "LTAI5tSTRANGER").unwrap();
    std::fs::write(secret.join("access-key-secret"), "hidden-secret").unwrap();
    let client = lab.client(Arc::new(Directory::new(&secret)), Scheme::V1);
    let error = attach(&client).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Denied, "{error}");
    let text = error_chain(&error);
    let place = format!("came from the Secret directory {}", secret.display());
    assert!(text.contains(&place), "{text}");
    assert!(!text.contains("STRANGER"), "{text}");
    assert_eq!(lab.calls("AttachDisk"), (1, 1));
}

/// A different key each time: a Secret that is replaced between reading it and the call.
#[derive(Debug)]
struct Replaced {
    keys: Vec<Credentials>,
    next: AtomicUsize,
}

#[async_trait::async_trait]
impl CredentialProvider for Replaced {
    async fn provide(&self) -> Result<Credentials, CredentialError> {
        // The transport requests a key to sign an attempt, and another one to compare after a rejection.
        let asked = self.next.fetch_add(1, Ordering::SeqCst);
        let key = self.keys.get(asked.div_ceil(2)).or(self.keys.last()).unwrap();
        Ok(key.clone().with_origin("a Secret that is replaced"))
    }
}

fn replaced(keys: &[(&str, &str)]) -> Arc<dyn CredentialProvider> {
    let keys = keys.iter();
    Arc::new(Replaced {
        keys: keys.map(|(key, secret)| Credentials::new(*key, *secret)).collect(),
        next: AtomicUsize::new(0),
    })
}

#[tokio::test]
async fn a_replaced_secret_costs_one_retry_for_any_rejection() {
    let lab = Lab::new().await;
    lab.configure(json!({"inactive_keys": ["LTAI5tOLD"]}));
    for (old, scheme) in [
        (("LTAI5tUNKNOWN", "x"), Scheme::V1),
        (("LTAI5tOLD", "x"), Scheme::V3),
        ((DEFAULT_KEY, "another"), Scheme::V1),
    ] {
        let keys = replaced(&[old, (DEFAULT_KEY, DEFAULT_SECRET)]);
        let client = lab.client(keys, scheme);
        lab.cloud.clear_calls();
        let error = attach(&client).await.unwrap_err();
        assert_eq!(error.kind(), Kind::NotFound, "{}", error_chain(&error));
        assert_eq!(lab.calls("AttachDisk"), (2, 2));
    }
}

#[tokio::test]
async fn a_second_rejection_is_final_even_with_a_new_key() {
    let lab = Lab::new().await;
    let keys: Vec<String> = (0..9).map(|n| format!("LTAI5tUNKNOWN{n}")).collect();
    let keys: Vec<_> = keys.iter().map(|key| (key.as_str(), "x")).collect();
    let client = lab.client(replaced(&keys), Scheme::V1);
    let error = list(&client).await.unwrap_err();
    let text = error_chain(&error);
    assert!(text.contains("came from a Secret that is replaced"), "{text}");
    assert_eq!(lab.calls("DescribeDisks"), (2, 2));
}

#[tokio::test]
async fn the_token_file_is_read_for_each_renewal() {
    let lab = Lab::new().await;
    let client = lab.client(lab.oidc(), Scheme::V1);
    list(&client).await.unwrap();
    wait_until_renewable().await;
    // The first token has expired.
    let old = lab.write_token(-1);
    lab.expire().await;
    let text = error_chain(&list(&client).await.unwrap_err());
    assert!(text.contains("OIDCToken.Expired"), "{text}");
    for part in old.split('.') {
        assert!(!text.contains(part), "{text}");
    }
    wait_until_renewable().await;
    lab.write_token(600);
    list(&client).await.unwrap();
}

#[tokio::test]
async fn an_unreachable_token_service_is_not_reported_as_missing_permissions() {
    let lab = Lab::new().await;
    lab.configure(json!({"sts": {"unreachable": true}}));
    let client = lab.client(lab.oidc(), Scheme::V1);
    let deadline = Deadline::after(Duration::from_secs(2));
    let query = DescribeDisks::default();
    let error = client.describe_disks(deadline, &query).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unreachable, "{error}");
    let text = error_chain(&error);
    assert!(text.contains("AssumeRoleWithOIDC failed: no response"), "{text}");
    lab.configure(json!({"sts": {"unreachable": false, "error":
        {"status": 403, "code": "NoPermission"}}}));
    wait_until_renewable().await;
    let error = list(&client).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Credentials, "{error}");
    assert!(error_chain(&error).contains("NoPermission"), "{}", error_chain(&error));
    assert_eq!(lab.calls("DescribeDisks"), (0, 0));
}

#[tokio::test]
async fn the_instance_role_is_found_with_and_without_metadata_tokens() {
    let lab = Lab::new().await;
    lab.configure(json!({"metadata": {"token_required": true}}));
    for tokenless in [true, false] {
        let found = lab.instance(None, tokenless).provide().await.unwrap();
        assert_eq!(&*found.origin, "the instance role diskplugin-node");
    }
    // A metadata service without tokens.
    lab.configure(json!({"metadata": {"token_required": false, "no_tokens": true}}));
    assert!(lab.instance(None, true).provide().await.is_ok());
    let error = lab.instance(None, false).provide().await.unwrap_err();
    assert!(error_chain(&error).contains("HTTP 404"), "{}", error_chain(&error));
    // A metadata service that requires tokens but issues none.
    lab.configure(json!({"metadata": {"token_required": true, "no_tokens": true}}));
    let error = lab.instance(None, true).provide().await.unwrap_err();
    assert!(error_chain(&error).contains("HTTP 403"), "{}", error_chain(&error));
}

#[tokio::test]
async fn an_instance_without_the_role_is_reported() {
    let lab = Lab::new().await;
    let error = lab.instance(Some("other"), true).provide().await;
    assert!(error.unwrap_err().to_string().contains("no RAM role \"other\""));
    let error = lab.instance(Some("../../x"), true).provide().await;
    assert!(!error.unwrap_err().is_transient());
    lab.configure(json!({"metadata": {"role": null}}));
    // A merge patch resets a field to its default; an empty name means no role.
    lab.configure(json!({"metadata": {"role": ""}}));
    let role = lab.role_of(None, true, true);
    let text = role.provide().await.unwrap_err().to_string();
    assert!(text.contains("set ACCESS_KEY_ID"), "{text}");
    assert!(text.contains("the instance has no RAM role"), "{text}");
    lab.configure(json!({"metadata": {"unreachable": true}}));
    let error = lab.instance(None, true).provide().await.unwrap_err();
    assert!(error.is_transient(), "{error}");
}

#[tokio::test]
async fn credentials_of_the_instance_role_rotate_without_failed_calls() {
    let lab = Lab::new().await;
    lab.configure(json!({"metadata": {"credential_lifetime": "4s"}}));
    let client = lab.client(cached(lab.instance(None, true)), Scheme::V3);
    let end = tokio::time::Instant::now() + Duration::from_secs(7);
    while tokio::time::Instant::now() < end {
        list(&client).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(lab.calls("DescribeDisks").1, 0);
}

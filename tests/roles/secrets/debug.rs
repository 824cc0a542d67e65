//! Debug output of types with secrets does not contain the secrets.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use clap::Parser;
use diskplugin::app::Cli;
use diskplugin::base::SystemClock;
use ecs::credential::{
    AssumedRole, Cache, CredentialProvider, Credentials, Directory, Environment, OidcRole, RoleSession, Sts,
};
use ecs::sign::{API_VERSION, Scheme, UnsignedRequest};
use ecs::{Client, ServerClock, Settings};
use fake_ecs::{Cloud, Options};

use crate::secrets::hidden::ODD;

fn prints_no_secret(value: &impl Debug) {
    ODD.absent_from(&format!("{value:?}"), "");
    ODD.absent_from(&format!("{value:#?}"), "");
}

fn credentials() -> Credentials {
    let mut credentials = Credentials::new(ODD.key, ODD.secret);
    credentials.security_token = Some(ODD.token.to_owned().into());
    credentials
}

#[tokio::test]
async fn credentials_and_their_sources_print_no_secret() {
    prints_no_secret(&credentials());
    let environment = Environment::read(|name| {
        let value = match name {
            "ACCESS_KEY_ID" => ODD.key,
            "ACCESS_KEY_SECRET" => ODD.secret,
            _ => ODD.token,
        };
        Some(value.to_owned())
    });
    prints_no_secret(&environment.provide().await);
    prints_no_secret(&environment);
    let dir = tempfile::tempdir().unwrap();
    for (name, value) in [
        ("access-key-id", ODD.key),
        ("access-key-secret", ODD.secret),
        ("security-token", ODD.token),
    ] {
        std::fs::write(dir.path().join(name), value).unwrap();
    }
    let directory = Directory::new(dir.path());
    prints_no_secret(&directory.provide().await);
    prints_no_secret(&directory);
}

#[tokio::test]
async fn roles_and_cached_credentials_print_no_secret() {
    let clock = || Arc::new(SystemClock);
    let cache = Cache::new(Arc::new(credentials()), clock());
    prints_no_secret(&cache.provide().await);
    prints_no_secret(&cache);
    let sts = Arc::new(
        Sts::new(
            "http://127.0.0.1:9".parse().unwrap(),
            Scheme::V3,
            ServerClock::new(clock()),
        )
        .unwrap(),
    );
    let session = || RoleSession {
        role_arn: "acs:ram::1:role/r".to_owned(),
        name: "test".to_owned(),
        duration: None,
        external_id: None,
    };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    std::fs::write(&file, format!("{}.{}.x", ODD.token, ODD.secret)).unwrap();
    let oidc = OidcRole::new(Arc::clone(&sts), "p".to_owned(), file, session());
    prints_no_secret(&oidc.provide().await);
    prints_no_secret(&oidc);
    let assumed = AssumedRole::new(Arc::new(credentials()), sts, session());
    prints_no_secret(&assumed.provide().await);
    prints_no_secret(&assumed);
}

#[test]
fn the_client_and_signed_requests_print_no_secret() {
    let settings = || Settings {
        server: "http://127.0.0.1:9".parse().unwrap(),
        region: "cn-beijing".parse().unwrap(),
        scheme: Scheme::V3,
        credentials: Arc::new(credentials()),
        clock: ServerClock::new(Arc::new(SystemClock)),
    };
    prints_no_secret(&settings());
    prints_no_secret(&Client::new(settings()).unwrap());
    let (credentials, params) = (credentials(), BTreeMap::new());
    let attempt = UnsignedRequest {
        action: "DescribeDisks",
        version: API_VERSION,
        params: &params,
        host: "ecs.example",
        credentials: &credentials,
        time: jiff::Timestamp::UNIX_EPOCH,
        nonce: "n",
    };
    prints_no_secret(&attempt);
    for scheme in [Scheme::V1, Scheme::V3] {
        prints_no_secret(&scheme.sign(&attempt));
    }
}

#[test]
fn the_key_of_the_fake_cloud_is_not_printed() {
    let flags = [
        format!("--access-key-id={}", ODD.key),
        format!("--access-key-secret={}", ODD.secret),
    ];
    let options = Options::from_flags(flags.each_ref().map(String::as_str)).unwrap();
    prints_no_secret(&Cloud::in_memory(&options, Arc::new(fake_ecs::SystemClock)));
    prints_no_secret(&options);
    for role in ["mock-cloud", "all-in-one"] {
        let line = ["diskplugin", role]
            .into_iter()
            .chain(flags.each_ref().map(String::as_str));
        prints_no_secret(&Cli::try_parse_from(line).unwrap());
    }
}

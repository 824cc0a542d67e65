//! What holds a secret prints without it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use clap::Parser;
use diskplugin::base::SystemClock;
use diskplugin::cli::Cli;
use diskplugin::cloud::Client;
use diskplugin::cloud::credential::{
    AssumedRole, Cache, Credentials, Directory, Environment, OidcRole, Provide, RoleSession, Sts,
};
use diskplugin::cloud::sign::v3::Canonical;
use diskplugin::cloud::sign::{API_VERSION, Attempt, Scheme};
use diskplugin::cloud::transport::{Settings, Transport};
use diskplugin::sim::{Cloud, Options};

use crate::hidden::ODD;

fn prints_nothing(value: &impl Debug) {
    ODD.absent_from(&format!("{value:?}"), "");
    ODD.absent_from(&format!("{value:#?}"), "");
}

fn credentials() -> Credentials {
    let mut credentials = Credentials::new(ODD.key, ODD.secret);
    credentials.security_token = Some(ODD.token.to_owned().into());
    credentials
}

#[tokio::test]
async fn credentials_and_their_sources_print_nothing() {
    prints_nothing(&credentials());
    let environment = Environment::read(|name| {
        let value = match name {
            "ACCESS_KEY_ID" => ODD.key,
            "ACCESS_KEY_SECRET" => ODD.secret,
            _ => ODD.token,
        };
        Some(value.to_owned())
    });
    prints_nothing(&environment.provide().await);
    prints_nothing(&environment);
    let dir = tempfile::tempdir().unwrap();
    for (name, value) in [
        ("access-key-id", ODD.key),
        ("access-key-secret", ODD.secret),
        ("security-token", ODD.token),
    ] {
        std::fs::write(dir.path().join(name), value).unwrap();
    }
    let directory = Directory::new(dir.path());
    prints_nothing(&directory.provide().await);
    prints_nothing(&directory);
}

#[tokio::test]
async fn a_role_and_what_is_kept_of_it_print_nothing() {
    let clock = || Arc::new(SystemClock);
    let cache = Cache::new(Arc::new(credentials()), clock());
    prints_nothing(&cache.provide().await);
    prints_nothing(&cache);
    let sts = Arc::new(Sts::new("http://127.0.0.1:9", Scheme::V3, clock()).unwrap());
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
    prints_nothing(&oidc.provide().await);
    prints_nothing(&oidc);
    let assumed = AssumedRole::new(Arc::new(credentials()), sts, session());
    prints_nothing(&assumed.provide().await);
    prints_nothing(&assumed);
}

#[test]
fn the_client_and_what_it_signs_print_nothing() {
    let settings = || Settings {
        endpoint: "http://127.0.0.1:9".to_owned(),
        region: "cn-beijing".parse().unwrap(),
        scheme: Scheme::V3,
        credentials: Arc::new(credentials()),
        clock: Arc::new(SystemClock),
    };
    prints_nothing(&settings());
    prints_nothing(&Transport::new(settings()).unwrap());
    prints_nothing(&Client::new(Transport::new(settings()).unwrap()));
    let (credentials, params) = (credentials(), BTreeMap::new());
    let attempt = Attempt {
        action: "DescribeDisks",
        version: API_VERSION,
        params: &params,
        host: "ecs.example",
        credentials: &credentials,
        time: jiff::Timestamp::UNIX_EPOCH,
        nonce: "n",
    };
    prints_nothing(&attempt);
    for scheme in [Scheme::V1, Scheme::V3] {
        prints_nothing(&scheme.sign(&attempt));
    }
    let headers = BTreeMap::from([
        ("x-acs-accesskey-id", ODD.key.to_owned()),
        ("x-acs-security-token", ODD.token.to_owned()),
    ]);
    prints_nothing(&Canonical {
        method: "POST",
        query: &params,
        headers: &headers,
        body_hash: "",
    });
}

#[test]
fn the_fakes_key_does_not_print() {
    let flags = [
        format!("--access-key-id={}", ODD.key),
        format!("--access-key-secret={}", ODD.secret),
    ];
    let options = Options::from_flags(flags.each_ref().map(String::as_str)).unwrap();
    prints_nothing(&Cloud::in_memory(&options, Arc::new(SystemClock)));
    prints_nothing(&options);
    for role in ["mock-cloud", "all-in-one"] {
        let line = ["diskplugin", role]
            .into_iter()
            .chain(flags.each_ref().map(String::as_str));
        prints_nothing(&Cli::try_parse_from(line).unwrap());
    }
}

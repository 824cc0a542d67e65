//! A fake cloud with all sources of credentials.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use diskplugin::base::{Clock, Deadline, SystemClock};
use ecs::credential::{AssumedRole, Cache, CredentialProvider, Credentials, InstanceRole, OidcRole, RoleSession, Sts};
use ecs::metadata::Metadata;
use ecs::sign::Scheme;
use ecs::{Client, DescribeDisks, Error, ServerClock, Settings};
use fake_ecs::options::{DEFAULT_KEY, DEFAULT_SECRET};
use fake_ecs::{Cloud, Options};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::ecs::attach_to;
use crate::common::oidc::{PROVIDER, ROLE, write_token};

pub(crate) const SCHEMES: [Scheme; 2] = [Scheme::V1, Scheme::V3];

/// A fake cloud, and a directory for files that a cluster would mount.
#[derive(Debug)]
pub(crate) struct Lab {
    pub(crate) cloud: Cloud,
    pub(crate) dir: TempDir,
    /// The clock of the client and of the credentials.
    pub(crate) clock: ServerClock,
}

/// The clock of a machine that is ahead by this time.
#[derive(Debug)]
struct Ahead(SignedDuration);

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        SystemClock.now() + self.0
    }
}

impl Lab {
    pub(crate) async fn new() -> Self {
        Self::ahead(SignedDuration::ZERO).await
    }

    /// A client whose clock is ahead of that of the cloud.
    pub(crate) async fn ahead(by: SignedDuration) -> Self {
        let options = Options::from_flags(["--nodes=i-one"]).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let cloud = Cloud::start(
            &options,
            Arc::new(fake_ecs::SystemClock),
            Arc::new(fake_ecs::SystemCommands),
            listener,
        );
        let lab = Self {
            cloud: cloud.await.unwrap(),
            dir: tempfile::tempdir().unwrap(),
            clock: ServerClock::new(Arc::new(Ahead(by))),
        };
        lab.write_token(600);
        lab
    }

    pub(crate) fn url(&self) -> &str {
        self.cloud.endpoint().unwrap()
    }

    pub(crate) fn token_file(&self) -> PathBuf {
        self.dir.path().join("token")
    }

    /// Writes a token, as the cluster does, that expires after this number of seconds.
    pub(crate) fn write_token(&self, seconds: i64) -> String {
        let token = write_token(&self.token_file(), seconds);
        std::fs::write(self.token_file(), format!("{token}\n")).unwrap();
        token
    }

    pub(crate) fn sts(&self, scheme: Scheme) -> Arc<Sts> {
        Arc::new(Sts::new(self.url().parse().unwrap(), scheme, self.clock.clone()).unwrap())
    }

    pub(crate) fn oidc(&self) -> Arc<dyn CredentialProvider> {
        let sts = self.sts(Scheme::V1);
        let role = OidcRole::new(sts, PROVIDER.to_owned(), self.token_file(), session());
        cached(role)
    }

    pub(crate) fn assumed(&self, base: Arc<dyn CredentialProvider>, scheme: Scheme) -> Arc<dyn CredentialProvider> {
        cached(AssumedRole::new(base, self.sts(scheme), session()))
    }

    pub(crate) fn instance(&self, role: Option<&str>, tokenless: bool) -> InstanceRole {
        self.role_of(role, tokenless, false)
    }

    pub(crate) fn role_of(&self, role: Option<&str>, tokenless: bool, last_resort: bool) -> InstanceRole {
        let node = &self.cloud.nodes()[0].id;
        let endpoint = self.cloud.metadata_endpoint(node).unwrap();
        let metadata = Metadata::new(&endpoint, tokenless).unwrap();
        InstanceRole::new(metadata, role.map(str::to_owned), last_resort)
    }

    pub(crate) fn client(&self, credentials: Arc<dyn CredentialProvider>, scheme: Scheme) -> Client {
        let client = Client::new(Settings {
            server: self.url().parse().unwrap(),
            region: "cn-beijing".parse().unwrap(),
            scheme,
            credentials,
            clock: self.clock.clone(),
        });
        client.unwrap()
    }

    #[expect(clippy::needless_pass_by_value, reason = "reads well with json!")]
    pub(crate) fn configure(&self, patch: Value) {
        self.cloud.configure(&patch).unwrap();
    }

    /// Expires all keys of the Security Token Service.
    pub(crate) async fn expire(&self) {
        let url = format!("{}/_control/sessions", self.url());
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = client.post(url).json(&json!({"op": "expire"}));
        assert_eq!(request.send().await.unwrap().status(), 200);
    }

    /// The number of calls and the number of rejected ones.
    pub(crate) fn calls(&self, action: &str) -> (u64, u64) {
        let counts = self.cloud.counts();
        let count = counts.get(action).copied().unwrap_or_default();
        (count.calls, count.refused)
    }
}

pub(crate) fn session() -> RoleSession {
    RoleSession {
        role_arn: ROLE.to_owned(),
        name: "test".to_owned(),
        duration: None,
        external_id: None,
    }
}

pub(crate) fn cached(source: impl CredentialProvider + 'static) -> Arc<dyn CredentialProvider> {
    Arc::new(Cache::new(Arc::new(source), Arc::new(SystemClock)))
}

pub(crate) fn key() -> Arc<dyn CredentialProvider> {
    Arc::new(Credentials::new(DEFAULT_KEY, DEFAULT_SECRET))
}

pub(crate) async fn list(client: &Client) -> Result<(), Error> {
    let deadline = Deadline::after(Duration::from_secs(20));
    let query = DescribeDisks::default();
    client.describe_disks(deadline, &query).await.map(|_| ())
}

pub(crate) async fn attach(client: &Client) -> Result<(), Error> {
    let deadline = Deadline::after(Duration::from_secs(20));
    let request = attach_to(&"d-none".parse().unwrap(), &"i-one".parse().unwrap());
    client.attach_disk(deadline, &request).await
}

//! The fake cloud as a process of its own, and its control path.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::csi::endpoint;
use super::process::{Process, Start, diskplugin};

/// The key that the fake cloud takes.
pub(crate) const KEY: &str = "LTAI5tFAKECLOUDKEY000001";
/// Its secret.
pub(crate) const SECRET: &str = "fake-cloud-secret";
/// The instances.
pub(crate) const NODES: [&str; 2] = ["i-one", "i-two"];
/// The zone of both.
pub(crate) const ZONE: &str = "cn-beijing-b";

/// A running `diskplugin mock-cloud`.
#[derive(Debug)]
pub(crate) struct Fake {
    pub(crate) process: Process,
    pub(crate) url: String,
    http: reqwest::Client,
}

impl Fake {
    /// Starts one with these further flags, on a port that was free.
    pub(crate) async fn start(flags: &[&str]) -> Self {
        Self::of(Self::command(flags)).await
    }

    /// Like `start`, telling all that it can tell.
    pub(crate) async fn start_loud(flags: &[&str]) -> Self {
        Self::of(Self::command(flags).env("RUST_LOG", "trace,h2=trace")).await
    }

    /// Starts one without instances, which ends when the thread that starts it ends.
    pub(crate) async fn start_tied(flags: &[&str]) -> Self {
        let start = Start::tied(env!("CARGO_BIN_EXE_diskplugin"));
        let start = start.args(["mock-cloud", "--listen=127.0.0.1:0", "--nodes=0"]);
        Self::of(start.args(flags)).await
    }

    fn command(flags: &[&str]) -> Start {
        let nodes = NODES.map(|node| format!("{node}={ZONE}")).join(",");
        let start = diskplugin(["mock-cloud", "--listen=127.0.0.1:0", "--nodes", &nodes]);
        start.args(flags)
    }

    async fn of(start: Start) -> Self {
        let mut process = start.spawn();
        process.says("--ecs-endpoint http://").await;
        let stdout = process.stdout();
        let url = stdout
            .split("--ecs-endpoint ")
            .nth(1)
            .and_then(|rest| rest.split_whitespace().next())
            .expect("it was printed")
            .to_owned();
        let http = reqwest::Client::builder()
            .timeout(Duration::from_secs(10))
            .no_proxy()
            .build()
            .expect("a client without settings");
        Self { process, url, http }
    }

    /// Where this instance finds its metadata.
    pub(crate) fn metadata(&self, node: &str) -> String {
        format!("--metadata-endpoint={}/imds/{node}", self.url)
    }

    /// A controller on it, without credentials.
    pub(crate) fn controller(&self, socket: &Path) -> Start {
        diskplugin([
            "controller",
            "--region=cn-beijing",
            "--cluster-id=c-test",
            &format!("--zone={ZONE}"),
            &format!("--ecs-endpoint={}", self.url),
            &endpoint(socket),
        ])
    }

    /// The answer of the control path.
    pub(crate) async fn control(&self, path: &str) -> Value {
        let url = format!("{}/_control/{path}", self.url);
        let answer = self.http.get(url).send().await.expect("the fake answers");
        answer.json().await.expect("the fake answers in JSON")
    }

    /// The keys that the metadata service gives an instance for its role.
    pub(crate) async fn role_keys(&self, node: &str) -> Value {
        let path = "latest/meta-data/ram/security-credentials/diskplugin-node";
        let url = format!("{}/imds/{node}/{path}", self.url);
        let answer = self.http.get(url).send().await.expect("the fake answers");
        answer.json().await.expect("the fake answers in JSON")
    }

    /// Changes the configuration.
    pub(crate) async fn configure(&self, patch: Value) {
        let url = format!("{}/_control/config", self.url);
        let answer = self.http.patch(url).json(&patch).send().await;
        let answer = answer.expect("the fake answers");
        assert!(answer.status().is_success(), "{:?}", answer.text().await);
    }

    /// Adds, starts, stops or removes an instance, as the control path describes it.
    pub(crate) async fn instance(&self, order: Value) {
        let url = format!("{}/_control/instances", self.url);
        let answer = self.http.post(url).json(&order).send().await;
        let answer = answer.expect("the fake answers");
        assert!(
            answer.status().is_success(),
            "{order}: {:?}",
            answer.text().await
        );
    }

    /// How often the action was called.
    pub(crate) async fn count(&self, action: &str) -> u64 {
        let calls = self.control("calls").await;
        calls["counts"][action]["calls"].as_u64().unwrap_or(0)
    }

    /// All calls, each an object.
    pub(crate) async fn calls(&self) -> Vec<Value> {
        let mut calls = self.control("calls").await;
        serde_json::from_value(calls["calls"].take()).expect("a list")
    }

    /// All disks, each an object.
    pub(crate) async fn disks(&self) -> Vec<Value> {
        let mut state = self.control("state").await;
        serde_json::from_value(state["disks"].take()).expect("a list")
    }
}

impl Start {
    /// With the fake cloud's key, under the project's own names.
    pub(crate) fn keys(self) -> Self {
        self.env("ACCESS_KEY_ID", KEY)
            .env("ACCESS_KEY_SECRET", SECRET)
    }
}

//! The fake cloud as a process, and its control API.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::csi::endpoint;
use super::process::{Process, Start, diskplugin};

pub(crate) const KEY: &str = "LTAI5tFAKECLOUDKEY000001";
pub(crate) const SECRET: &str = "fake-cloud-secret";
pub(crate) const NODES: [&str; 2] = ["i-one", "i-two"];
/// The zone of both instances.
pub(crate) const ZONE: &str = "cn-beijing-b";

/// A running `diskplugin mock-cloud`.
#[derive(Debug)]
pub(crate) struct Fake {
    pub(crate) process: Process,
    pub(crate) url: String,
    http: reqwest::Client,
}

impl Fake {
    /// Starts it with additional flags, on a free port.
    pub(crate) async fn start(flags: &[&str]) -> Self {
        Self::of(Self::command(flags)).await
    }

    /// Like `start`, at log level trace.
    pub(crate) async fn start_verbose(flags: &[&str]) -> Self {
        Self::of(Self::command(flags).env("RUST_LOG", "trace,h2=trace")).await
    }

    /// Starts it without instances; it ends with the current thread.
    pub(crate) async fn start_with_pdeathsig(flags: &[&str]) -> Self {
        let start = Start::with_pdeathsig(env!("CARGO_BIN_EXE_diskplugin"));
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
        process.wait_for_output("--ecs-endpoint http://").await;
        let stdout = process.stdout();
        let url = stdout
            .split("--ecs-endpoint ")
            .nth(1)
            .and_then(|rest| rest.split_whitespace().next())
            .expect("the endpoint was printed")
            .to_owned();
        let http = reqwest::Client::builder()
            .timeout(Duration::from_secs(60))
            .no_proxy()
            .build()
            .expect("a client without settings");
        Self { process, url, http }
    }

    /// The flag `--metadata-endpoint` for an instance.
    pub(crate) fn metadata(&self, node: &str) -> String {
        format!("--metadata-endpoint={}/imds/{node}", self.url)
    }

    /// A controller that uses it, without credentials.
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

    async fn get(&self, path: &str) -> Value {
        let response = self.http.get(format!("{}/{path}", self.url)).send().await;
        let response = response.expect("the fake cloud responds");
        response.json().await.expect("the response is JSON")
    }

    async fn send(&self, method: reqwest::Method, path: &str, order: Value) {
        let url = format!("{}/_control/{path}", self.url);
        let response = self.http.request(method, url).json(&order).send().await;
        let response = response.expect("the fake cloud responds");
        assert!(response.status().is_success(), "{order}: {:?}", response.text().await);
    }

    /// The response to `GET /_control/PATH`.
    pub(crate) async fn control(&self, path: &str) -> Value {
        self.get(&format!("_control/{path}")).await
    }

    /// The credentials of the instance's role, from the metadata service.
    pub(crate) async fn role_keys(&self, node: &str) -> Value {
        let path = "latest/meta-data/ram/security-credentials/diskplugin-node";
        self.get(&format!("imds/{node}/{path}")).await
    }

    pub(crate) async fn configure(&self, patch: Value) {
        self.send(reqwest::Method::PATCH, "config", patch).await;
    }

    /// Adds, starts, stops or removes an instance: the body of `POST /_control/instances`.
    pub(crate) async fn instance(&self, order: Value) {
        self.send(reqwest::Method::POST, "instances", order).await;
    }

    /// Completes a detach that the fault `fails-later` blocks.
    pub(crate) async fn release(&self, disk: &str) {
        let order = serde_json::json!({"op": "release", "id": disk});
        self.send(reqwest::Method::POST, "disks", order).await;
    }

    /// The number of calls of an action.
    pub(crate) async fn count(&self, action: &str) -> u64 {
        let calls = self.control("calls").await;
        calls["counts"][action]["calls"].as_u64().unwrap_or(0)
    }

    pub(crate) async fn calls(&self) -> Vec<Value> {
        let mut calls = self.control("calls").await;
        serde_json::from_value(calls["calls"].take()).expect("a list")
    }

    pub(crate) async fn disks(&self) -> Vec<Value> {
        let mut state = self.control("state").await;
        serde_json::from_value(state["disks"].take()).expect("a list")
    }
}

impl Start {
    /// Sets the fake cloud's access key in the driver's environment variables.
    pub(crate) fn keys(self) -> Self {
        self.env("ACCESS_KEY_ID", KEY).env("ACCESS_KEY_SECRET", SECRET)
    }
}

//! A Prometheus server on loopback, and its HTTP API.

use std::net::{Ipv4Addr, TcpListener};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::process::{Process, Start};
use crate::monitoring::files::rules_path;
use crate::running::{SOON, wait};

/// A running server. Dropping it kills it and removes its data.
pub(crate) struct Prometheus {
    process: Process,
    _directory: TempDir,
    url: String,
    client: reqwest::Client,
}

/// The labels that the PodMonitors of the chart set.
fn configuration(target: &str) -> String {
    let mut text = "global: {scrape_interval: 1s, evaluation_interval: 1s}\n".to_owned();
    text.push_str(&format!("rule_files: [{:?}]\nscrape_configs:\n", rules_path()));
    for role in ["controller", "node"] {
        text.push_str(&format!(
            "  - job_name: diskplugin-{role}\n    static_configs:\n      - targets: [{target:?}]\n        \
             labels: {{namespace: storage, release: diskplugin, pod: {role}-0, node: node-1}}\n"
        ));
    }
    text
}

impl Prometheus {
    /// Scrapes this `HOST:PORT` as a controller and as a node.
    pub(crate) async fn start(target: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("prometheus.yaml"), configuration(target)).unwrap();
        // It cannot choose a port itself.
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let process = Start::of("prometheus")
            .args([
                format!("--config.file={}", path("prometheus.yaml").display()),
                format!("--storage.tsdb.path={}", path("data").display()),
                format!("--web.listen-address={address}"),
                "--enable-feature=exemplar-storage".to_owned(),
            ])
            .spawn();
        let client = reqwest::Client::builder().timeout(SOON).no_proxy();
        let mut server = Self {
            process,
            _directory: directory,
            url: format!("http://{address}"),
            client: client.build().unwrap(),
        };
        server.wait_until_ready().await;
        server
    }

    async fn wait_until_ready(&mut self) {
        let ready = format!("{}/-/ready", self.url);
        wait("prometheus is ready", async || {
            assert!(!self.process.is_over(), "{}", self.process.stderr());
            let response = self.client.get(&ready).send().await;
            response.is_ok_and(|response| response.status().is_success())
        })
        .await;
    }

    /// The field `data` of a response of the API.
    pub(crate) async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value, String> {
        let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let pairs = query.iter().map(|(key, value)| format!("{key}={}", encode(value)));
        let url = format!("{}/api/v1/{path}?{}", self.url, pairs.collect::<Vec<_>>().join("&"));
        let response = self.client.get(url).send().await.unwrap();
        let mut body: Value = response.json().await.unwrap();
        match body["status"] == "success" {
            true => Ok(body["data"].take()),
            false => Err(body["error"].to_string()),
        }
    }

    /// The values of a query that are numbers, now.
    pub(crate) async fn instant(&self, query: &str) -> Result<Vec<f64>, String> {
        let data = self.get("query", &[("query", query)]).await?;
        let series = data["result"].as_array().unwrap().iter();
        Ok(numbers(series.map(|series| &series["value"])))
    }

    /// The same over the last minutes.
    pub(crate) async fn range(&self, query: &str) -> Result<Vec<f64>, String> {
        let now = self.get("query", &[("query", "time()")]).await?;
        let now = now["result"][0].as_f64().unwrap();
        let (start, end) = ((now - 120.0).to_string(), now.to_string());
        let parameters = [("query", query), ("start", &start), ("end", &end), ("step", "1")];
        let data = self.get("query_range", &parameters).await?;
        let series = data["result"].as_array().unwrap().iter();
        Ok(numbers(series.flat_map(|series| series["values"].as_array().unwrap())))
    }
}

/// The numbers of samples, each a time and a value as text. A quotient of zeros is none.
fn numbers<'a>(samples: impl Iterator<Item = &'a Value>) -> Vec<f64> {
    let values = samples.map(|sample| sample[1].as_str().unwrap().parse::<f64>().unwrap());
    values.filter(|value| !value.is_nan()).collect()
}

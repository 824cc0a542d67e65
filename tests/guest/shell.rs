//! Runs commands in the guest through the agent that its init starts.

use std::net::Ipv4Addr;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::machine::Guest;

/// Timeout of a command on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(90);

/// The result of a command in the guest.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: i32,
    /// Stdout and stderr, without trailing whitespace.
    pub(crate) text: String,
}

impl Guest {
    /// Runs a bash script that must succeed; returns its output.
    pub(crate) async fn sh(&self, script: &str) -> String {
        let output = self.try_sh(script).await;
        assert_eq!(output.code, 0, "in the guest: {script}\n{}", output.text);
        output.text
    }

    /// Runs a bash script.
    pub(crate) async fn try_sh(&self, script: &str) -> Output {
        let response = timeout(TIMEOUT, self.send(script)).await;
        let response = response.unwrap_or_else(|_| panic!("timeout after {TIMEOUT:?}: {script}"));
        let response = response.unwrap_or_else(|error| panic!("no response: {error}: {script}"));
        let (text, code) = response
            .trim_end()
            .rsplit_once("\nexit ")
            .unwrap_or_else(|| panic!("the output is incomplete: {script}\n{response}"));
        Output {
            code: code.parse().expect("the agent writes a number"),
            text: text.trim_end().to_owned(),
        }
    }

    async fn send(&self, script: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.shell)).await?;
        let line = BASE64_STANDARD.encode(format!("set -e -o pipefail\n{script}"));
        stream.write_all(format!("{line}\n").as_bytes()).await?;
        let mut response = Vec::new();
        stream.read_to_end(&mut response).await?;
        Ok(String::from_utf8_lossy(&response).into_owned())
    }
}

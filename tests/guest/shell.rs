//! Commands in the guest, through the door that its init opens.

use std::net::Ipv4Addr;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::machine::Guest;

/// Longer than any command takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// What a command in the guest came to.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: i32,
    /// Both streams, without the last line's end.
    pub(crate) text: String,
}

impl Guest {
    /// Runs a bash script that must succeed; what it printed.
    pub(crate) async fn sh(&self, script: &str) -> String {
        let output = self.try_sh(script).await;
        assert_eq!(output.code, 0, "in the guest: {script}\n{}", output.text);
        output.text
    }

    /// Runs a bash script.
    pub(crate) async fn try_sh(&self, script: &str) -> Output {
        let answer = timeout(PATIENCE, self.ask(script)).await;
        let answer = answer.unwrap_or_else(|_| panic!("not within {PATIENCE:?}: {script}"));
        let answer = answer.unwrap_or_else(|error| panic!("no answer: {error}: {script}"));
        let (text, code) = answer
            .trim_end()
            .rsplit_once("\nexit ")
            .unwrap_or_else(|| panic!("it was cut off: {script}\n{answer}"));
        Output {
            code: code.parse().expect("the agent writes a number"),
            text: text.trim_end().to_owned(),
        }
    }

    async fn ask(&self, script: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.shell)).await?;
        let line = BASE64_STANDARD.encode(format!("set -e -o pipefail\n{script}"));
        stream.write_all(format!("{line}\n").as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

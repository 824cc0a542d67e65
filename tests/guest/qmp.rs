//! QEMU's control protocol over its unix socket.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout, timeout_at};

/// Timeout of a command on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The time that one waiting caller reads messages for all callers.
const READ_TIME: Duration = Duration::from_millis(20);

/// A connection that any number of callers share.
#[derive(Debug)]
pub(crate) struct Qmp {
    next: AtomicU64,
    writer: Mutex<OwnedWriteHalf>,
    inbox: Mutex<Inbox>,
}

#[derive(Debug)]
struct Inbox {
    lines: Lines<BufReader<OwnedReadHalf>>,
    /// Messages that no caller has received yet, in the order of arrival.
    unread: Vec<Value>,
}

impl Qmp {
    /// Connects if QEMU listens on the socket, and negotiates capabilities.
    pub(crate) async fn connect(socket: &Path) -> Option<Self> {
        use tokio::io::AsyncBufReadExt as _;
        let stream = UnixStream::connect(socket).await.ok()?;
        let (reader, writer) = stream.into_split();
        let qmp = Self {
            next: AtomicU64::new(0),
            writer: Mutex::new(writer),
            inbox: Mutex::new(Inbox {
                lines: BufReader::new(reader).lines(),
                unread: Vec::new(),
            }),
        };
        qmp.receive("QEMU's greeting", |message| message.get("QMP").is_some())
            .await;
        qmp.run("qmp_capabilities", json!({})).await;
        Some(qmp)
    }

    /// Runs a command that must succeed; returns its response.
    pub(crate) async fn run(&self, command: &str, arguments: Value) -> Value {
        let response = self.try_run(command, arguments.clone()).await;
        response.unwrap_or_else(|error| panic!("{command} {arguments}: {error}"))
    }

    /// Runs a command; returns its response or QEMU's error message.
    pub(crate) async fn try_run(&self, command: &str, arguments: Value) -> Result<Value, String> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let line = json!({ "execute": command, "arguments": arguments, "id": id });
        let mut writer = self.writer.lock().await;
        writer
            .write_all(format!("{line}\n").as_bytes())
            .await
            .expect("QEMU reads its commands");
        drop(writer);
        let mut response = self.receive(command, |message| message["id"] == id).await;
        match response.get_mut("return") {
            Some(value) => Ok(value.take()),
            None => Err(response["error"]["desc"].to_string()),
        }
    }

    /// Waits for an event, which may have arrived already; returns its data.
    pub(crate) async fn event(&self, name: &str, is_it: impl Fn(&Value) -> bool + Send + Sync) -> Value {
        let mut event = self
            .receive(name, |message| message["event"] == name && is_it(&message["data"]))
            .await;
        event["data"].take()
    }

    /// The output of a command of the human monitor.
    pub(crate) async fn monitor(&self, line: &str) -> String {
        let response = self.run("human-monitor-command", json!({ "command-line": line })).await;
        response.as_str().expect("a string").to_owned()
    }

    /// Removes the first message of this kind. A waiting caller reads the messages of all callers.
    async fn receive(&self, what: &str, is_it: impl Fn(&Value) -> bool + Send + Sync) -> Value {
        let end = Instant::now() + TIMEOUT;
        loop {
            let inbox = timeout_at(end, self.inbox.lock()).await;
            let mut inbox = inbox.unwrap_or_else(|_| panic!("timeout after {TIMEOUT:?}: {what}"));
            if let Some(at) = inbox.unread.iter().position(&is_it) {
                return inbox.unread.remove(at);
            }
            if let Ok(line) = timeout(READ_TIME, inbox.lines.next_line()).await {
                let line = line.expect("the socket can be read");
                let line = line.unwrap_or_else(|| panic!("QEMU ended before {what}"));
                let message = serde_json::from_str(&line).expect("QEMU sends JSON");
                inbox.unread.push(message);
            }
            drop(inbox);
            assert!(Instant::now() < end, "timeout after {TIMEOUT:?}: {what}");
            tokio::task::yield_now().await;
        }
    }
}

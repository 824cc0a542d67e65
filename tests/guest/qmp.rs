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

/// Longer than any command takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long one waiter reads for all others.
const TURN: Duration = Duration::from_millis(20);

/// A connection. Any number of callers share it.
#[derive(Debug)]
pub(crate) struct Qmp {
    next: AtomicU64,
    writer: Mutex<OwnedWriteHalf>,
    inbox: Mutex<Inbox>,
}

#[derive(Debug)]
struct Inbox {
    lines: Lines<BufReader<OwnedReadHalf>>,
    /// What nobody has asked for yet, in the order in which it came.
    unread: Vec<Value>,
}

impl Qmp {
    /// Connects, where somebody listens, and goes through the greeting.
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
        qmp.take("QEMU's greeting", |message| message.get("QMP").is_some())
            .await;
        qmp.run("qmp_capabilities", json!({})).await;
        Some(qmp)
    }

    /// A command that must succeed; its answer.
    pub(crate) async fn run(&self, command: &str, arguments: Value) -> Value {
        let answer = self.try_run(command, arguments.clone()).await;
        answer.unwrap_or_else(|error| panic!("{command} {arguments}: {error}"))
    }

    /// A command; its answer, or what QEMU says against it.
    pub(crate) async fn try_run(&self, command: &str, arguments: Value) -> Result<Value, String> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let line = json!({ "execute": command, "arguments": arguments, "id": id });
        let mut writer = self.writer.lock().await;
        writer
            .write_all(format!("{line}\n").as_bytes())
            .await
            .expect("QEMU reads its commands");
        drop(writer);
        let mut answer = self.take(command, |message| message["id"] == id).await;
        match answer.get_mut("return") {
            Some(value) => Ok(value.take()),
            None => Err(answer["error"]["desc"].to_string()),
        }
    }

    /// Waits for an event, which may have come already; its data.
    pub(crate) async fn event(&self, name: &str, is_it: impl Fn(&Value) -> bool + Send + Sync) -> Value {
        let mut event = self
            .take(name, |message| message["event"] == name && is_it(&message["data"]))
            .await;
        event["data"].take()
    }

    /// What an old-fashioned command for people prints.
    pub(crate) async fn monitor(&self, line: &str) -> String {
        let answer = self.run("human-monitor-command", json!({ "command-line": line })).await;
        answer.as_str().expect("a text").to_owned()
    }

    /// Takes the first message of this kind. Whoever waits reads for all.
    async fn take(&self, what: &str, is_it: impl Fn(&Value) -> bool + Send + Sync) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let inbox = timeout_at(end, self.inbox.lock()).await;
            let mut inbox = inbox.unwrap_or_else(|_| panic!("not within {PATIENCE:?}: {what}"));
            if let Some(at) = inbox.unread.iter().position(&is_it) {
                return inbox.unread.remove(at);
            }
            if let Ok(line) = timeout(TURN, inbox.lines.next_line()).await {
                let line = line.expect("QEMU can be read");
                let line = line.unwrap_or_else(|| panic!("QEMU ended before {what}"));
                let message = serde_json::from_str(&line).expect("QEMU speaks JSON");
                inbox.unread.push(message);
            }
            drop(inbox);
            assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
            tokio::task::yield_now().await;
        }
    }
}

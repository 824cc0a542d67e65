//! Writing events.

use std::collections::HashMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, Recorder, Reporter};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::event::ClusterEvent;
use crate::base::error_chain;
use crate::cluster::access::request;
use crate::cluster::error::is_gone;
use crate::cluster::nodes::Nodes;
use crate::cluster::{Cluster, Result};
use crate::model::DriverName;

/// How long an event counts as a repeat of the previous one, which is also how long recorders remember it.
const KEPT: Duration = Duration::from_mins(6);

/// Writes events one by one. An unavailable API server is logged once, and events are dropped meanwhile: the sidecars
/// repeat the calls that cause them.
pub(super) async fn run(cluster: Cluster, nodes: Nodes, driver: DriverName, mut queue: mpsc::Receiver<ClusterEvent>) {
    let mut writer = Writer::new(cluster.client(), &driver);
    let mut lost = false;
    while let Some(event) = queue.recv().await {
        let Some((event, regarding)) = event.in_kubernetes(&nodes) else {
            continue;
        };
        match writer.write(&event, &regarding).await {
            Ok(()) if std::mem::replace(&mut lost, false) => {
                tracing::info!("events are written again");
            }
            Ok(()) => {}
            Err(error) if !std::mem::replace(&mut lost, true) => {
                tracing::warn!("{}; events are dropped until then", error_chain(&error));
            }
            Err(_) => {}
        }
    }
}

/// Identifies repeats: the reason, and kind, namespace, name and UID of the object.
type Key = (String, [Option<String>; 4]);

/// Writes events, and repeats as a count of the first one. A kube recorder also treats events with other notes as
/// repeats and would show the first cause forever; so each event has its own recorder, replaced when the cause changes.
struct Writer {
    client: Client,
    reporter: Reporter,
    last: HashMap<Key, Last>,
}

/// The event that was written last.
struct Last {
    gist: String,
    when: Instant,
    recorder: Recorder,
}

impl Writer {
    fn new(client: Client, driver: &DriverName) -> Self {
        Self {
            client,
            // Adds the host name, which is the pod's name.
            reporter: Reporter::from(driver.as_str()),
            last: HashMap::new(),
        }
    }

    /// Writes an event. An event of a deleted object is dropped without an error.
    async fn write(&mut self, event: &Event, regarding: &ObjectReference) -> Result<()> {
        let about = [&regarding.kind, &regarding.namespace, &regarding.name, &regarding.uid];
        let key = (event.reason.clone(), about.map(Clone::clone));
        let gist = gist(event.note.as_deref().unwrap_or_default());
        self.last.retain(|_, last| last.when.elapsed() < KEPT);
        let same = self.last.remove(&key).filter(|last| last.gist == gist);
        let repeats = same.is_some();
        let mut recorder = same.map_or_else(|| self.recorder(), |last| last.recorder);
        let mut is_written = publish(&recorder, event, regarding).await?;
        if !is_written && repeats {
            // The first event was deleted.
            recorder = self.recorder();
            is_written = publish(&recorder, event, regarding).await?;
        }
        if is_written {
            let when = Instant::now();
            let last = Last { gist, when, recorder };
            self.last.insert(key, last);
        }
        Ok(())
    }

    fn recorder(&self) -> Recorder {
        Recorder::new(self.client.clone(), self.reporter.clone())
    }
}

/// Returns whether it was written: not if the first event or the namespace of the object does not exist.
async fn publish(recorder: &Recorder, event: &Event, regarding: &ObjectReference) -> Result<bool> {
    let call = async {
        match recorder.publish(event, regarding).await {
            Err(error) if is_gone(&error) => Ok(false),
            outcome => outcome.map(|()| true),
        }
    };
    request("write an event", call).await
}

/// The note without the parts that differ in repeats: request IDs, attempts and durations.
fn gist(note: &str) -> String {
    let mut words = note.split_whitespace();
    let mut kept: Vec<&str> = Vec::new();
    while let Some(word) = words.next() {
        match word.trim_start_matches('(') {
            "RequestId" => drop(words.next()),
            // `3 attempts in 1.5 s`
            "attempts" => {
                kept.pop();
                words.by_ref().take(3).for_each(drop);
            }
            _ => kept.push(word),
        }
    }
    kept.join(" ")
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use kube::runtime::events::EventType;
    use serde_json::{Value, json};

    use super::super::event::machine;
    use super::*;

    /// Method and note of each call.
    type Asked = Arc<Mutex<Vec<(String, String)>>>;

    /// An API server with events, which records the calls.
    fn server() -> (Client, Asked, Arc<Mutex<bool>>) {
        let calls: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
        let emptied: Arc<Mutex<bool>> = Arc::default();
        let (seen, gone) = (Arc::clone(&calls), Arc::clone(&emptied));
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let (seen, gone) = (Arc::clone(&seen), Arc::clone(&gone));
            async move {
                let method = request.method().to_string();
                let body = request.into_body().collect_bytes().await.unwrap();
                let event: Value = serde_json::from_slice(&body).unwrap();
                let note = event["note"].as_str().unwrap_or_default().to_owned();
                seen.lock().unwrap().push((method.clone(), note));
                let missing = method == "PATCH" && *gone.lock().unwrap();
                let (code, body) = match missing {
                    true => (
                        404,
                        json!({"kind": "Status", "apiVersion": "v1", "metadata": {},
                        "status": "Failure", "code": 404, "reason": "NotFound", "message": "no"}),
                    ),
                    false => (200, event),
                };
                let response = http::Response::builder().status(code);
                let response = response.body(kube::client::Body::from(body.to_string().into_bytes()));
                Ok::<_, std::convert::Infallible>(response.unwrap())
            }
        });
        (Client::new(service, "default"), calls, emptied)
    }

    #[tokio::test]
    async fn a_repeat_is_counted_and_another_cause_or_a_removed_event_is_a_new_event() {
        let (client, calls, emptied) = server();
        let mut writer = Writer::new(client, &DriverName::default());
        let write = async |writer: &mut Writer, note: &str| {
            let event = Event {
                type_: EventType::Warning,
                reason: "DiskOutOfStock".to_owned(),
                note: Some(note.to_owned()),
                action: "CreateVolume".to_owned(),
                secondary: None,
            };
            writer.write(&event, &machine("n")).await.unwrap();
            std::mem::take(&mut *calls.lock().unwrap())
        };
        let call = |verb: &str, note: &str| (verb.to_owned(), note.to_owned());
        let first = "a: no (HTTP 403, RequestId A-1, 2 attempts in 0.5 s)";
        assert_eq!(write(&mut writer, first).await, [call("POST", first)]);
        let again = "a: no (HTTP 403, RequestId B-2, 3 attempts in 9.5 s)";
        assert_eq!(write(&mut writer, again).await, [call("PATCH", first)]);
        assert_eq!(write(&mut writer, "b: no").await, [call("POST", "b: no")]);
        assert_eq!(write(&mut writer, "b: no").await, [call("PATCH", "b: no")]);
        *emptied.lock().unwrap() = true;
        let twice = [call("PATCH", "b: no"), call("POST", "b: no")];
        assert_eq!(write(&mut writer, "b: no").await, twice);
    }
}

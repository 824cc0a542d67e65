//! Writing events.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use tokio::sync::mpsc;

use super::{Claim, Happening};
use crate::base::chain::chain;
use crate::cluster::access::soon;
use crate::cluster::nodes::Nodes;
use crate::cluster::{Cluster, Error};
use crate::model::{DriverName, InstanceId};

/// How long a note may be, in bytes (events.k8s.io/v1).
const LONGEST: usize = 1024;

/// Writes what comes, one after the other. An API server that is away is said once; what came meanwhile is lost, for the
/// sidecars repeat what led to it.
pub(super) async fn run(
    cluster: Cluster,
    nodes: Nodes,
    driver: DriverName,
    mut waiting: mpsc::Receiver<Happening>,
) {
    // With the host's name, which is the pod's.
    let reporter = Reporter::from(driver.as_str());
    let recorder = Recorder::new(cluster.client(), reporter);
    let mut lost = false;
    while let Some(happening) = waiting.recv().await {
        for (event, regarding) in events(&happening, &nodes) {
            let written = soon().bound(recorder.publish(&event, &regarding)).await;
            let failed = match written {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(Error::of("write an event", Ok(error))),
                Err(late) => Some(Error::of("write an event", Err(late))),
            };
            match failed {
                None if std::mem::replace(&mut lost, false) => {
                    tracing::info!("events are written again");
                }
                None => {}
                Some(error) if !std::mem::replace(&mut lost, true) => {
                    tracing::warn!("{}; until it can be, events are lost", chain(&error));
                }
                Some(_) => {}
            }
        }
    }
}

/// What is written of it, and where.
fn events(happening: &Happening, nodes: &Nodes) -> Vec<(Event, ObjectReference)> {
    let warning =
        |reason: &str, action: &str, note: String, related: Option<ObjectReference>| Event {
            type_: EventType::Warning,
            reason: reason.to_owned(),
            note: Some(cut(note)),
            action: action.to_owned(),
            secondary: related,
        };
    match happening {
        Happening::SoldOut { claim, reasons } => {
            let event = warning(happening.reason(), "CreateVolume", reasons.clone(), None);
            vec![(event, claim.reference())]
        }
        Happening::InUseElsewhere {
            disk,
            node,
            holder,
            claim,
        } => {
            let (wants, has) = (called(nodes, node), called(nodes, holder));
            let note = format!(
                "disk {disk} cannot be attached to node {wants}: node {has} holds it, and a disk is never taken from a node. \
                 Delete the pod that uses it there, or fence the node if it is dead"
            );
            let holder = nodes.name_of(holder).map(|name| machine(&name));
            let regarding = match claim {
                Some(claim) => Some(claim.reference()),
                None => nodes.name_of(node).map(|name| machine(&name)),
            };
            let event = warning(happening.reason(), "AttachVolume", note, holder);
            regarding
                .map(|regarding| (event, regarding))
                .into_iter()
                .collect()
        }
        Happening::NodeFull {
            node,
            claim,
            reasons,
            ..
        } => {
            // The claim learns it by its pod, which says FailedAttachVolume.
            let related = claim.as_ref().map(Claim::reference);
            let event = warning(happening.reason(), "AttachVolume", reasons.clone(), related);
            let name = nodes.name_of(node);
            name.map(|name| (event, machine(&name)))
                .into_iter()
                .collect()
        }
    }
}

/// The node as people know it.
fn called(nodes: &Nodes, id: &InstanceId) -> String {
    match nodes.name_of(id) {
        Some(name) => format!("{name} ({id})"),
        None => id.to_string(),
    }
}

/// A Node. Its uid is its name, as in the events of kubelet: `kubectl describe node` looks for both.
fn machine(name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Node".to_owned()),
        name: Some(name.to_owned()),
        uid: Some(name.to_owned()),
        ..ObjectReference::default()
    }
}

impl Claim {
    fn reference(&self) -> ObjectReference {
        ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("PersistentVolumeClaim".to_owned()),
            namespace: Some(self.namespace.clone()),
            name: Some(self.name.clone()),
            uid: self.uid.clone(),
            ..ObjectReference::default()
        }
    }
}

/// No longer than a note may be, and cut between two characters.
fn cut(mut note: String) -> String {
    const MORE: &str = " …";
    if note.len() > LONGEST {
        let end = (0..=LONGEST - MORE.len()).rfind(|&end| note.is_char_boundary(end));
        note.truncate(end.unwrap_or(0));
        note.push_str(MORE);
    }
    note
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_cut_between_characters_and_says_so() {
        assert_eq!(cut("short".to_owned()), "short");
        for long in [
            "é".repeat(600),
            format!("x{}", "é".repeat(600)),
            "x".repeat(1025),
        ] {
            let cut = cut(long.clone());
            assert!(
                cut.len() <= LONGEST && cut.len() > LONGEST - 5,
                "{}",
                cut.len()
            );
            assert!(cut.ends_with(" …") && long.starts_with(cut.trim_end_matches(" …")));
        }
    }
}

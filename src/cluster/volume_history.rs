//! What Kubernetes has recorded about one volume: its PersistentVolume, claim, attachments and events.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde::Serialize;

use super::access::request;
use super::list::{list, list_selected};
use super::volume_zones::VolumeZones;
use super::{Cluster, Result};
use crate::model::DriverName;

/// Events of pods that concern volumes.
const POD_REASONS: [&str; 5] = [
    "FailedScheduling",
    "FailedMount",
    "FailedAttachVolume",
    "SuccessfulAttachVolume",
    "FailedMapVolume",
];

const ATTACHED: &str = "attached";

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VolumeHistory {
    pub persistent_volume: Option<String>,
    /// The CSI volume handle, which is the disk ID.
    pub disk: Option<String>,
    /// Namespace and name of the PersistentVolumeClaim.
    pub claim: Option<(String, String)>,
    /// Where the disk is or can be, if that is restricted.
    pub zones: Option<VolumeZones>,
    /// The nodes of the pods that use the claim.
    pub pod_nodes: Vec<String>,
    pub attachments: Vec<AttachmentState>,
    pub events: Vec<VolumeEvent>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttachmentState {
    /// The node as Kubernetes names it.
    pub node: String,
    pub since: Option<Timestamp>,
    /// `attached`, what it waits for, or the last error.
    pub state: String,
}

impl AttachmentState {
    pub fn is_attached(&self) -> bool {
        self.state == ATTACHED
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VolumeEvent {
    /// The last time that it occurred.
    pub time: Option<Timestamp>,
    pub count: i32,
    /// Kind and name of the object.
    pub object: String,
    #[serde(rename = "warning")]
    pub is_warning: bool,
    pub reason: String,
    pub message: String,
}

impl VolumeHistory {
    /// Reads what is recorded about a volume, by disk ID, name of the PersistentVolume, or namespace and name of the
    /// claim. Empty if Kubernetes has no such volume.
    pub async fn read(cluster: &Cluster, driver: &DriverName, volume: &str) -> Result<Self> {
        let mut history = Self::find(cluster, driver, volume).await?;
        if let Some(name) = &history.persistent_volume {
            history.attachments = attachments(cluster, driver, name).await?;
            let events = events(cluster, None, name).await?;
            history.events.extend(events);
        }
        if let Some((namespace, name)) = history.claim.clone() {
            let of_claim = events(cluster, Some(&namespace), &name).await?;
            history.events.extend(of_claim);
            for pod in pods(cluster, &namespace, &name).await? {
                let mut of_pod = events(cluster, Some(&namespace), &pod.name_any()).await?;
                of_pod.retain(|event| POD_REASONS.contains(&event.reason.as_str()));
                history.events.extend(of_pod);
                let node = pod.spec.and_then(|spec| spec.node_name);
                history.pod_nodes.extend(node);
            }
        }
        history.events.sort_by_key(|event| event.time);
        Ok(history)
    }

    /// As [`Self::read`], without attachments, events and pods, which need further rights.
    pub async fn find(cluster: &Cluster, driver: &DriverName, volume: &str) -> Result<Self> {
        match volume.split_once('/') {
            Some((namespace, name)) => of_claim(cluster, namespace, name).await,
            None => of_volume(cluster, driver, volume).await,
        }
    }
}

async fn of_claim(cluster: &Cluster, namespace: &str, name: &str) -> Result<VolumeHistory> {
    let step = format!("read the PersistentVolumeClaim {namespace}/{name}");
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(cluster.client(), namespace);
    let Some(claim) = request(&step, claims.get_opt(name)).await? else {
        return Ok(VolumeHistory::default());
    };
    // external-provisioner names the volume of a pending claim after its UID.
    let named = claim.spec.as_ref().and_then(|spec| spec.volume_name.clone());
    let future = claim.metadata.uid.as_ref().map(|uid| format!("pvc-{uid}"));
    let volumes: Api<PersistentVolume> = Api::all(cluster.client());
    let name_of_volume = named.or(future);
    let bound = match &name_of_volume {
        Some(name) => {
            let step = format!("read the PersistentVolume {name}");
            request(&step, volumes.get_opt(name)).await?
        }
        None => None,
    };
    let class = claim.spec.and_then(|spec| spec.storage_class_name);
    let zones = match (&bound, class) {
        (Some(volume), _) => VolumeZones::of_volume(volume),
        (None, Some(class)) if !class.is_empty() => Box::pin(VolumeZones::of_class(cluster, &class)).await?,
        (None, _) => None,
    };
    Ok(VolumeHistory {
        zones,
        persistent_volume: name_of_volume,
        disk: bound.and_then(|volume| handle(&volume)),
        claim: Some((namespace.to_owned(), name.to_owned())),
        ..VolumeHistory::default()
    })
}

async fn of_volume(cluster: &Cluster, driver: &DriverName, volume: &str) -> Result<VolumeHistory> {
    let volumes: Api<PersistentVolume> = Api::all(cluster.client());
    let step = format!("read the PersistentVolume {volume}");
    let named = request(&step, volumes.get_opt(volume)).await?;
    let found = match named {
        Some(found) => Some(found),
        None => {
            let all = list(&volumes, "persistentvolumes").await?;
            all.into_iter().find(|one| {
                let csi = one.spec.as_ref().and_then(|spec| spec.csi.as_ref());
                csi.is_some_and(|csi| csi.driver == driver.as_str() && csi.volume_handle == volume)
            })
        }
    };
    let Some(found) = found else {
        return Ok(VolumeHistory::default());
    };
    let reference = found.spec.as_ref().and_then(|spec| spec.claim_ref.clone());
    Ok(VolumeHistory {
        zones: VolumeZones::of_volume(&found),
        disk: handle(&found),
        persistent_volume: Some(found.name_any()),
        claim: reference.and_then(|claim| Some((claim.namespace?, claim.name?))),
        ..VolumeHistory::default()
    })
}

fn handle(volume: &PersistentVolume) -> Option<String> {
    let csi = volume.spec.as_ref()?.csi.as_ref()?;
    Some(csi.volume_handle.clone())
}

async fn attachments(cluster: &Cluster, driver: &DriverName, name: &str) -> Result<Vec<AttachmentState>> {
    let api: Api<VolumeAttachment> = Api::all(cluster.client());
    let mut own = list(&api, "volumeattachments").await?;
    own.retain(|one| {
        one.spec.attacher == driver.as_str() && one.spec.source.persistent_volume_name.as_deref() == Some(name)
    });
    let of = |one: VolumeAttachment| {
        let status = one.status.unwrap_or_default();
        let error = status.detach_error.or(status.attach_error);
        let waits = match (one.metadata.deletion_timestamp, status.attached) {
            (Some(_), _) => "waits for the detach",
            (None, true) => ATTACHED,
            (None, false) => "waits for the attach",
        };
        AttachmentState {
            node: one.spec.node_name,
            since: one.metadata.creation_timestamp.map(|time| time.0),
            state: error
                .and_then(|error| error.message)
                .unwrap_or_else(|| waits.to_owned()),
        }
    };
    Ok(own.into_iter().map(of).collect())
}

/// The pods that use the claim and have not terminated.
async fn pods(cluster: &Cluster, namespace: &str, claim: &str) -> Result<Vec<Pod>> {
    let api: Api<Pod> = Api::namespaced(cluster.client(), namespace);
    let mut pods = list(&api, "pods").await?;
    pods.retain(|pod| {
        let volumes = pod.spec.iter().flat_map(|spec| &spec.volumes).flatten();
        let mut claims = volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref());
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        claims.any(|source| source.claim_name == claim) && !matches!(phase, Some("Succeeded" | "Failed"))
    });
    Ok(pods)
}

/// Events about an object; those of objects without a namespace are in any.
async fn events(cluster: &Cluster, namespace: Option<&str>, name: &str) -> Result<Vec<VolumeEvent>> {
    let api: Api<Event> = match namespace {
        Some(namespace) => Api::namespaced(cluster.client(), namespace),
        None => Api::all(cluster.client()),
    };
    let fields = ListParams::default().fields(&format!("involvedObject.name={name}"));
    let events = list_selected(&api, "events", &fields).await?;
    Ok(events.into_iter().map(event).collect())
}

fn event(event: Event) -> VolumeEvent {
    let object = event.involved_object;
    let series = event.series.as_ref();
    let last = series.and_then(|series| series.last_observed_time.clone());
    let time = last.or(event.event_time).map(|time| time.0);
    VolumeEvent {
        time: time
            .or(event.last_timestamp.map(|time| time.0))
            .or(event.metadata.creation_timestamp.map(|time| time.0)),
        count: series.and_then(|series| series.count).or(event.count).unwrap_or(1),
        object: format!(
            "{}/{}",
            object.kind.unwrap_or_default(),
            object.name.unwrap_or_default()
        ),
        is_warning: event.type_.as_deref() == Some("Warning"),
        reason: event.reason.unwrap_or_default(),
        message: event.message.unwrap_or_default(),
    }
}

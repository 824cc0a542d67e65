//! VolumeSnapshotContents and VolumeGroupSnapshotContents. Their CRDs are optional.

use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use serde_json::Value;

use super::object::{Content, ContentKind};
use crate::cluster::access::request;
use crate::cluster::list::list;
use crate::cluster::{Cluster, Error, Result};

/// A CRD of contents, and the fields that differ.
struct Crd {
    kind: ContentKind,
    group: &'static str,
    object_kind: &'static str,
    plural: &'static str,
    /// The handle of a snapshot that exists, and that of one that was imported.
    handles: [&'static str; 2],
    /// The reference to the VolumeSnapshot or VolumeGroupSnapshot.
    reference: &'static str,
    /// The disk or the disks of a snapshot that is being created.
    source: &'static str,
    /// The snapshots of an imported group.
    members: Option<&'static str>,
}

const CRDS: [Crd; 2] = [
    Crd {
        kind: ContentKind::Snapshot,
        group: "snapshot.storage.k8s.io",
        object_kind: "VolumeSnapshotContent",
        plural: "volumesnapshotcontents",
        handles: ["/status/snapshotHandle", "/spec/source/snapshotHandle"],
        reference: "/spec/volumeSnapshotRef",
        source: "/spec/source/volumeHandle",
        members: None,
    },
    Crd {
        kind: ContentKind::Group,
        group: "groupsnapshot.storage.k8s.io",
        object_kind: "VolumeGroupSnapshotContent",
        plural: "volumegroupsnapshotcontents",
        handles: [
            "/status/volumeGroupSnapshotHandle",
            "/spec/source/groupSnapshotHandles/volumeGroupSnapshotHandle",
        ],
        reference: "/spec/volumeGroupSnapshotRef",
        source: "/spec/source/volumeHandles",
        members: Some("/spec/source/groupSnapshotHandles/volumeSnapshotHandles"),
    },
];

/// All contents with the names of their drivers.
pub(super) async fn read_contents(cluster: &Cluster) -> Result<Vec<(String, Content)>> {
    let mut contents = Vec::new();
    for crd in &CRDS {
        let Some(resource) = served(cluster, crd).await? else {
            continue;
        };
        let api: Api<DynamicObject> = Api::all_with(cluster.client(), &resource);
        let objects = list(&api, crd.plural).await?;
        contents.extend(objects.iter().map(|object| crd.parse(object)));
    }
    Ok(contents)
}

impl Cluster {
    /// The CRDs of snapshots that are installed, by their plural names.
    pub async fn snapshot_crds(&self) -> Result<Vec<&'static str>> {
        let mut names = Vec::new();
        for crd in &CRDS {
            match served(self, crd).await {
                Ok(Some(_)) => names.push(crd.plural),
                Ok(None) | Err(Error::NotServed { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(names)
    }
}

/// The resource in the preferred version of its group, or else in the first one that has it; none if the group does not
/// exist. A list that responds with 404 would not distinguish a CRD that is not installed from a wrong URL.
async fn served(cluster: &Cluster, crd: &Crd) -> Result<Option<ApiResource>> {
    let client = cluster.client();
    let groups = request("list the API groups", client.list_api_groups()).await?;
    let mut groups = groups.groups.into_iter();
    let Some(group) = groups.find(|group| group.name == crd.group) else {
        return Ok(None);
    };
    for version in group.preferred_version.into_iter().chain(group.versions) {
        let resources = client.list_api_group_resources(&version.group_version);
        let resources = request("list the API groups", resources).await?;
        if resources.resources.iter().any(|one| one.name == crd.plural) {
            return Ok(Some(ApiResource {
                group: crd.group.to_owned(),
                version: version.version,
                api_version: version.group_version,
                kind: crd.object_kind.to_owned(),
                plural: crd.plural.to_owned(),
            }));
        }
    }
    // As after an incomplete upgrade of the CRDs: the objects may exist.
    let (plural, group) = (crd.plural, crd.group);
    Err(Error::NotServed { plural, group })
}

impl Crd {
    fn parse(&self, object: &DynamicObject) -> (String, Content) {
        let text = |at: &str| object.data.pointer(at).and_then(Value::as_str);
        let reference = |field| text(&format!("{}/{field}", self.reference));
        let driver = text("/spec/driver").unwrap_or_default();
        let handle = self.handles.iter().find_map(|at| text(at));
        let snapshot = reference("namespace").zip(reference("name"));
        let source = handle.is_none().then_some(self.source);
        let used = source.into_iter().chain(self.members);
        let used = used.filter_map(|at| object.data.pointer(at)).flat_map(texts);
        let content = Content {
            kind: self.kind,
            name: object.metadata.name.clone().unwrap_or_default(),
            handle: handle.map(str::to_owned),
            snapshot: snapshot.map(|(namespace, name)| format!("{namespace}/{name}")),
            snapshot_uid: reference("uid").map(str::to_owned),
            used: used.collect(),
        };
        (driver.to_owned(), content)
    }
}

/// A text or a list of texts.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn handle_of_a_created_snapshot_is_in_its_status_and_of_an_imported_one_in_its_spec() {
        let content = |spec: Value, status: Value| {
            let object = object(json!({
                "metadata": {"name": "content"},
                "spec": {
                    "driver": "d", "source": spec,
                    "volumeSnapshotRef": {"namespace": "ns", "name": "snap", "uid": "u"}
                },
                "status": status,
            }));
            CRDS[0].parse(&object)
        };
        let (driver, created) = content(json!({}), json!({"snapshotHandle": "s-1"}));
        assert_eq!((driver.as_str(), created.handle.as_deref()), ("d", Some("s-1")));
        assert_eq!(created.snapshot.as_deref(), Some("ns/snap"));
        let imported = content(json!({"snapshotHandle": "s-2"}), Value::Null).1;
        assert_eq!(imported.handle.as_deref(), Some("s-2"));
        let waiting = content(json!({"volumeHandle": "d-1"}), Value::Null).1;
        assert_eq!(waiting.handle, None);
        assert_eq!(waiting.snapshot_uid.as_deref(), Some("u"));
        assert_eq!(waiting.used, ["d-1"]);
        let source = json!({"volumeHandle": "d-1"});
        let created = content(source, json!({"snapshotHandle": "s-1"})).1;
        assert!(created.used.is_empty(), "the disk is not needed anymore");
    }

    #[test]
    fn handle_of_a_group_is_read_from_its_own_fields() {
        let group = object(json!({
            "metadata": {"name": "content"},
            "spec": {"driver": "d", "volumeGroupSnapshotRef": {"uid": "u"}},
            "status": {"volumeGroupSnapshotHandle": "ssg-1"},
        }));
        let content = CRDS[1].parse(&group).1;
        assert_eq!(content.handle.as_deref(), Some("ssg-1"));
        assert_eq!(content.snapshot_uid.as_deref(), Some("u"));
        let used = |source: Value| {
            let object = object(json!({"metadata": {}, "spec": {"driver": "d", "source": source}}));
            CRDS[1].parse(&object).1.used
        };
        assert_eq!(used(json!({"volumeHandles": ["d-1", "d-2"]})), ["d-1", "d-2"]);
        let imported = json!({"groupSnapshotHandles": {
            "volumeGroupSnapshotHandle": "ssg-1", "volumeSnapshotHandles": ["s-1"]}});
        assert_eq!(used(imported), ["s-1"]);
    }
}

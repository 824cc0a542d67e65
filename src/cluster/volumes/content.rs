//! VolumeSnapshotContents and VolumeGroupSnapshotContents. Their CRDs are optional.

use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use serde_json::Value;

use super::{Content, ContentKind};
use crate::cluster::Cluster;
use crate::cluster::access::soon;
use crate::cluster::list::{ListError, list};

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
    /// Before its UID in the CSI name that the sidecar uses by default.
    name_prefix: &'static str,
}

const CRDS: [Crd; 2] = [
    Crd {
        kind: ContentKind::Snapshot,
        group: "snapshot.storage.k8s.io",
        object_kind: "VolumeSnapshotContent",
        plural: "volumesnapshotcontents",
        handles: ["/status/snapshotHandle", "/spec/source/snapshotHandle"],
        reference: "/spec/volumeSnapshotRef",
        name_prefix: "snapshot-",
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
        name_prefix: "groupsnapshot-",
    },
];

/// All contents with the names of their drivers.
pub(super) async fn read_contents(cluster: &Cluster) -> Result<Vec<(String, Content)>, ListError> {
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

/// The CRDs that are installed.
pub(super) async fn installed(cluster: &Cluster) -> Result<Vec<&'static str>, ListError> {
    let mut names = Vec::new();
    for crd in &CRDS {
        let resource = served(cluster, crd).await?;
        names.extend(resource.map(|_| crd.plural));
    }
    Ok(names)
}

/// The resource in the preferred version of its group; none if the CRD is not installed. A list that responds with 404
/// would not distinguish this from a wrong URL.
async fn served(cluster: &Cluster, crd: &Crd) -> Result<Option<ApiResource>, ListError> {
    let client = cluster.client();
    let failed = |outcome| ListError::new("the API groups", outcome);
    let groups = soon().bound(client.list_api_groups()).await;
    let groups = groups.map_err(|late| failed(Err(late)))?;
    let groups = groups.map_err(|error| failed(Ok(error)))?;
    let Some(group) = groups
        .groups
        .into_iter()
        .find(|group| group.name == crd.group)
    else {
        return Ok(None);
    };
    let preferred = group.preferred_version;
    let Some(version) = preferred.or_else(|| group.versions.into_iter().next()) else {
        return Ok(None);
    };
    let resources = soon()
        .bound(client.list_api_group_resources(&version.group_version))
        .await;
    let resources = resources.map_err(|late| failed(Err(late)))?;
    let resources = resources.map_err(|error| failed(Ok(error)))?;
    let is_served = resources.resources.iter().any(|one| one.name == crd.plural);
    Ok(is_served.then(|| ApiResource {
        group: crd.group.to_owned(),
        version: version.version,
        api_version: version.group_version,
        kind: crd.object_kind.to_owned(),
        plural: crd.plural.to_owned(),
    }))
}

impl Crd {
    fn parse(&self, object: &DynamicObject) -> (String, Content) {
        let text = |at: &str| object.data.pointer(at).and_then(Value::as_str);
        let reference = |field| text(&format!("{}/{field}", self.reference));
        let driver = text("/spec/driver").unwrap_or_default();
        let handle = self.handles.iter().find_map(|at| text(at));
        let snapshot = reference("namespace").zip(reference("name"));
        let content = Content {
            kind: self.kind,
            name: object.metadata.name.clone().unwrap_or_default(),
            handle: handle.map(str::to_owned),
            snapshot: snapshot.map(|(namespace, name)| format!("{namespace}/{name}")),
            csi_name: reference("uid").map(|uid| format!("{}{uid}", self.name_prefix)),
        };
        (driver.to_owned(), content)
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
        assert_eq!(
            (driver.as_str(), created.handle.as_deref()),
            ("d", Some("s-1"))
        );
        assert_eq!(created.snapshot.as_deref(), Some("ns/snap"));
        let imported = content(json!({"snapshotHandle": "s-2"}), Value::Null).1;
        assert_eq!(imported.handle.as_deref(), Some("s-2"));
        let waiting = content(json!({"volumeHandle": "d-1"}), Value::Null).1;
        assert_eq!(waiting.handle, None);
        assert_eq!(waiting.csi_name.as_deref(), Some("snapshot-u"));
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
        assert_eq!(content.csi_name.as_deref(), Some("groupsnapshot-u"));
    }
}

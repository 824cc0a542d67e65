//! A cluster and an account with disks and snapshots, and runs of `diskplugin orphans`.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use ::ecs::{Client, CreateSnapshot};
use diskplugin::base::Deadline;
use diskplugin::model::{ClientToken, Tags, tag};

use crate::common::ecs;
use crate::common::fake::SECRET;
use crate::common::process::{Ended, diskplugin};
use crate::kubernetes::kit::{DRIVER, Kit};
use crate::text::assert_lacks;

pub(crate) const PVS: &str = "/api/v1/persistentvolumes";
pub(crate) const ATTACHMENTS: &str = "/apis/storage.k8s.io/v1/volumeattachments";
pub(crate) const CONTENTS: &str = "/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents";
pub(crate) const GROUPS: &str = "/apis";
/// Exit codes.
pub(crate) const FOUND: Option<i32> = Some(1);
pub(crate) const NOTHING: Option<i32> = Some(0);
pub(crate) const UNAVAILABLE: i32 = 69;

/// A fake cloud with an account, and an API server with the CRD of snapshots.
pub(crate) struct Fixture {
    pub(crate) kit: Kit,
    ecs: Client,
    next: AtomicU32,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let kit = Kit::new(&[]).await;
        let resource = json!({
            "name": "volumesnapshotcontents", "singularName": "", "namespaced": false,
            "kind": "VolumeSnapshotContent", "verbs": ["list"],
        });
        for (version, resources) in [("v1", vec![resource]), ("v2", Vec::new())] {
            let group = format!("snapshot.storage.k8s.io/{version}");
            let list = json!({"groupVersion": group, "resources": resources});
            kit.put(&format!("/apis/{group}"), list);
        }
        let fixture = Self {
            ecs: ecs::client(&kit.fake),
            kit,
            next: AtomicU32::new(0),
        };
        fixture.serve_versions(&["v1"]);
        fixture
    }

    /// Serves these versions of the group of snapshots, the preferred one first; only v1 has contents.
    pub(crate) fn serve_versions(&self, versions: &[&str]) {
        let version =
            |version: &&str| json!({"groupVersion": format!("snapshot.storage.k8s.io/{version}"), "version": version});
        let versions: Vec<_> = versions.iter().map(version).collect();
        let group = json!({
            "name": "snapshot.storage.k8s.io", "versions": versions, "preferredVersion": versions[0],
        });
        self.kit.put(GROUPS, json!({"groups": [group]}));
    }

    fn token(&self) -> ClientToken {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        ClientToken::derive("test", [number.to_string().as_str()])
    }

    /// Disks of this cluster.
    pub(crate) async fn disks<const COUNT: usize>(&self) -> [String; COUNT] {
        let mut disks = [const { String::new() }; COUNT];
        for disk in &mut disks {
            *disk = self.disk(Some("c-test")).await;
        }
        disks
    }

    /// A disk with the tag of this cluster ID.
    pub(crate) async fn disk(&self, owner: Option<&str>) -> String {
        let request = ecs::disk(tags(owner), self.token());
        let id = self.ecs.create_disk(soon(), &request).await.unwrap();
        id.to_string()
    }

    pub(crate) async fn snapshot(&self, disk: &str) -> String {
        let request = CreateSnapshot {
            tags: tags(Some("c-test")),
            token: self.token(),
            ..ecs::snapshot_of(&disk.parse().unwrap(), "snapshot")
        };
        let id = self.ecs.create_snapshot(soon(), &request).await.unwrap();
        id.to_string()
    }

    pub(crate) async fn attach(&self, disk: &str, instance: &str) {
        let request = ecs::attach_to(&disk.parse().unwrap(), &instance.parse().unwrap());
        self.ecs.attach_disk(soon(), &request).await.unwrap();
    }

    pub(crate) fn volume(&self, name: &str, handle: &str, phase: &str) {
        let object = json!({
            "metadata": {},
            "spec": {
                "csi": {"driver": DRIVER, "volumeHandle": handle},
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"namespace": "team", "name": format!("claim-{name}")},
            },
            "status": {"phase": phase},
        });
        self.kit.put(&format!("{PVS}/{name}"), object);
    }

    pub(crate) fn content(&self, name: &str, handle: &str) {
        let object = json!({
            "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent", "metadata": {},
            "spec": {"driver": DRIVER, "volumeSnapshotRef": {}}, "status": {"snapshotHandle": handle},
        });
        self.kit.put(&format!("{CONTENTS}/{name}"), object);
    }

    pub(crate) fn attachment(&self, volume: &str, node: &str) {
        let object = json!({
            "metadata": {},
            "spec": {"attacher": DRIVER, "nodeName": node, "source": {"persistentVolumeName": volume}},
        });
        self.kit.put(&format!("{ATTACHMENTS}/{volume}"), object);
    }

    pub(crate) async fn run(&self, flags: &[&str]) -> Ended {
        let start = diskplugin(["orphans", "--region=cn-beijing", "--cluster-id=c-test"]).keys();
        let ended = start
            .args([format!("--ecs-endpoint={}", self.kit.fake.url)])
            .args([format!("--kubeconfig={}", self.kit.kubeconfig().display())])
            .args(flags)
            .ended()
            .await;
        assert_lacks(&format!("{}{}", ended.stdout, ended.stderr), &[SECRET, "no-secret"]);
        ended
    }

    /// The document of a run with these flags, all resources being old enough.
    pub(crate) async fn report(&self, flags: &[&str]) -> (Option<i32>, Value) {
        let all = [&["--min-age=0s", "--output=json"], flags].concat();
        let ended = self.run(&all).await;
        let document = serde_json::from_str(&ended.stdout);
        let document = document.unwrap_or_else(|_| panic!("{ended:?}"));
        (ended.code, document)
    }

    pub(crate) async fn findings(&self) -> Vec<(String, String)> {
        let (code, document) = self.report(&[]).await;
        let rows = document["items"].as_array().unwrap().iter();
        let text = |row: &Value, field| row[field].as_str().unwrap().to_owned();
        let rows: Vec<_> = rows.map(|row| (text(row, "class"), text(row, "id"))).collect();
        assert_eq!(code, if rows.is_empty() { NOTHING } else { FOUND });
        rows
    }

    /// Deletes this ID, and returns the exit code, the result and the reason.
    pub(crate) async fn delete(&self, id: &str, older_than: &str) -> (Option<i32>, String, String) {
        let flags = ["--delete", id, "--older-than", older_than, "--yes"];
        let (code, document) = self.report(&flags).await;
        let row = &document["deletions"][0];
        assert_eq!(row["id"], id);
        let text = |field| row[field].as_str().unwrap_or_default().to_owned();
        (code, text("result"), text("reason"))
    }

    pub(crate) async fn exists(&self, disk: &str) -> bool {
        self.kit.fake.disks().await.iter().any(|row| row["id"] == disk)
    }
}

fn tags(owner: Option<&str>) -> Tags {
    let owner = owner.map(|owner| (tag::CLUSTER.to_owned(), owner.to_owned()));
    owner.into_iter().collect()
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(30))
}

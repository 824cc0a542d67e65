//! All of it together: control plane, fake cloud, release, and the controller's first pod.

use std::path::PathBuf;

use serde_json::Value;
use tokio::sync::Mutex;

use crate::cloud;
use crate::common::fake::Fake;
use crate::common::process::Start;
use crate::path::{core, grouped};
use crate::patience::until;
use crate::plane::{NAMESPACE, Plane};
use crate::release::{NODE, Release};
use crate::replica::Replica;

/// A cluster with the driver in it. Dropping it ends everything.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) plane: Plane,
    pub(crate) cloud: Fake,
    pub(crate) release: Release,
    /// The pod of the controller that works.
    pub(crate) replica: Mutex<Option<Replica>>,
    /// Whether pods have hosts' names of their own, for which a right is needed.
    pub(crate) names: bool,
    /// What instance types take, as the chart tells the nodes.
    pub(crate) types: PathBuf,
}

impl Cluster {
    /// Starts one, and waits until the sidecars work.
    pub(crate) async fn start() -> Self {
        let (plane, cloud) = tokio::join!(Plane::start(), cloud::start());
        let release = Release::install(&plane, &cloud).await;
        let names = Start::tied("unshare").args(["--uts", "true"]).ended().await;
        let names = names.code == Some(0);
        let first = release.start(&plane, 0, names).await;
        let types = instance_types(&plane).await;
        let cluster = Self {
            plane,
            cloud,
            release,
            replica: Mutex::new(Some(first)),
            names,
            types,
        };
        for lease in LEASES {
            let what = format!("there is a leader of {lease}");
            until(&what, async || cluster.leader(lease).await).await;
        }
        cluster
    }

    /// Who leads one of the sidecars; none where nobody does.
    pub(crate) async fn leader(&self, lease: &str) -> Option<String> {
        let path = grouped("coordination.k8s.io", NAMESPACE, &format!("leases/{lease}"));
        let lease = self.plane.api.get(&path).await?;
        let holder = lease["spec"]["holderIdentity"].as_str()?;
        (!holder.is_empty()).then(|| holder.to_owned())
    }

    /// What the parts said that work on volumes, each with the lines that have one of the words, and its last ones.
    pub(crate) async fn said(&self, words: &[String]) -> String {
        let mut all = self.plane.said().await;
        for replica in self.replica.lock().await.as_ref() {
            let containers = replica.containers.iter();
            all.extend(containers.map(|c| {
                (
                    format!("{}/{} (ended {} times)", replica.name, c.name, c.ends()),
                    c.said(),
                )
            }));
        }
        let parts = all
            .iter()
            .map(|(name, text)| format!("=== {name}\n{}\n", chosen(text, words)));
        parts.collect()
    }
}

/// The leases of the sidecars.
pub(crate) const LEASES: [&str; 4] = [
    "diskplugin-csi-example",
    "external-attacher-leader-diskplugin-csi-example",
    "external-resizer-diskplugin-csi-example",
    "external-snapshotter-leader-diskplugin-csi-example",
];

fn chosen(text: &str, words: &[String]) -> String {
    const MOST: usize = 60;
    const LAST: usize = 8;
    let lines: Vec<&str> = text.lines().collect();
    let (before, last) = lines.split_at(lines.len().saturating_sub(LAST));
    let of_interest = before
        .iter()
        .filter(|line| words.iter().any(|word| line.contains(word)));
    let of_interest: Vec<&str> = of_interest.copied().collect();
    let cut = of_interest.len().saturating_sub(MOST);
    let shown = of_interest[cut..].iter().chain(last);
    shown.map(|line| format!("  {line}\n")).collect()
}

/// Writes what the ConfigMap of the chart says, as kubelet does into a pod.
async fn instance_types(plane: &Plane) -> PathBuf {
    let path = core(
        NAMESPACE,
        &format!("configmaps/{}", NODE.replace("node", "instance-types")),
    );
    let map = plane
        .api
        .get(&path)
        .await
        .expect("the chart has a ConfigMap of instance types");
    let data = map["data"].as_object().expect("a ConfigMap has data");
    let (name, content) = data.iter().next().expect("it has a file");
    let file = plane.directory("instance-types").join(name);
    let content = content
        .as_str()
        .map(str::to_owned)
        .unwrap_or_else(|| Value::to_string(content));
    std::fs::write(&file, content).expect("the directory can be written");
    file
}

//! The nodes of the cluster: the instance, the instance type, the readiness and some taints of each.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Node, NodeCondition};
use k8s_openapi::api::storage::v1::CSINode;
use kube::Api;
use kube::api::ApiResource;
use kube::core::Object;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::Cluster;
use super::follow::{Objects, follow};
use crate::base::Tasks;
use crate::model::{Category, DriverName, InstanceId, topology};

/// The instance type label of a node, set by the cloud controller manager or by the installer of the node.
const TYPE_LABEL: &str = "node.kubernetes.io/instance-type";

/// Prefix of the cloud's instance types; other nodes (virtual ones, of another cloud) are ignored.
const TYPE_PREFIX: &str = "ecs.";

/// The part of a Node's spec that is read. The rest is skipped by the parser.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Spec {
    #[serde(default)]
    pub(super) taints: Vec<Taint>,
}

/// A taint with all fields: a patch must contain the unchanged ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Taint {
    pub(super) key: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) value: String,
    #[serde(flatten)]
    pub(super) rest: serde_json::Map<String, serde_json::Value>,
}

/// The part of a Node's status that is read.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Status {
    #[serde(default)]
    conditions: Vec<NodeCondition>,
}

/// A Node with only the fields that are read.
pub(super) type PartialNode = Object<Spec, Status>;

/// The taint of a node that is down. Kubernetes deletes the pods that do not tolerate it without waiting for their
/// node, and detaches their volumes ("Non-graceful node shutdown").
pub(super) const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

pub(super) fn is_ready(node: &PartialNode) -> bool {
    let conditions = node.status.iter().flat_map(|status| &status.conditions);
    let mut ready = conditions.filter(|one| one.type_ == "Ready");
    ready.any(|one| one.status == "True")
}

pub(super) fn partial_node(cluster: &Cluster) -> Api<PartialNode> {
    Api::all_with(cluster.client(), &ApiResource::erase::<Node>(&()))
}

/// The state kept of a Node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Machine {
    uid: Option<String>,
    instance_type: Option<String>,
    /// Whether it has the startup taint.
    is_tainted: bool,
    is_ready: bool,
    /// The value of its taint [`OUT_OF_SERVICE`].
    out_of_service: Option<String>,
}

/// The state kept of a CSINode with the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RegisteredNode {
    id: InstanceId,
    /// The UID of its Node, from the owner reference that kubelet sets.
    node: Option<String>,
    /// Whether the node has reported a volume limit.
    has_limit: bool,
    /// The disk categories in its topology.
    categories: BTreeSet<Category>,
}

/// The nodes of the cluster, kept up to date by watches. Clones share the state.
#[derive(Debug, Clone)]
pub struct Nodes {
    machines: watch::Receiver<Objects<Machine>>,
    registered: watch::Receiver<Objects<RegisteredNode>>,
}

/// A Node whose CSINode has the driver. A CSINode of an earlier Node with the same name does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub node: String,
    /// The UID of the Node.
    pub uid: String,
    /// Whether the CSINode certainly belongs to this Node: kubelet makes the Node its owner when it creates it.
    pub has_owner: bool,
    pub instance: InstanceId,
    /// Whether the CSINode has a volume limit.
    pub has_limit: bool,
    /// Whether it has the startup taint.
    pub is_tainted: bool,
    pub is_ready: bool,
    /// The value of its out-of-service taint; none if it does not have one.
    pub out_of_service: Option<String>,
}

impl Nodes {
    /// Starts the watches, which run as long as the process: of the CSINodes with this driver and, if `with_nodes`, of
    /// the Nodes with their types, their readiness and their startup taint of this key.
    pub fn watch(cluster: &Cluster, driver: &DriverName, with_nodes: bool, taint: Option<String>) -> Self {
        let tasks = Tasks::default();
        let (sender, machines) = watch::channel(None);
        if with_nodes {
            let keep = move |node: &_| Some(machine(node, taint.as_deref()));
            tasks.spawn(follow("Nodes", partial_node(cluster), keep, sender));
        }
        let (sender, known) = watch::channel(None);
        let (driver, api) = (driver.clone(), Api::all(cluster.client()));
        let keep = move |node: &_| registered(node, &driver);
        tasks.spawn(follow("CSINodes", api, keep, sender));
        Self {
            machines,
            registered: known,
        }
    }

    /// Returns when something has changed since the last time.
    pub async fn changed(&mut self) {
        tokio::select! {
            Ok(()) = self.machines.changed() => {}
            Ok(()) = self.registered.changed() => {}
            // The watches end with the process.
            else => std::future::pending().await,
        }
    }

    /// The name of the Node of this instance, if known.
    pub fn name_of(&self, id: &InstanceId) -> Option<String> {
        let registered = self.registered.borrow();
        let mut registered = registered.iter().flatten();
        let found = registered.find(|(_, registered)| registered.id == *id);
        found.map(|(name, _)| name.clone())
    }

    /// The instances on which the driver is registered.
    pub fn instances(&self) -> BTreeSet<InstanceId> {
        let registered = self.registered.borrow();
        let registered = registered.iter().flatten();
        registered.map(|(_, registered)| registered.id.clone()).collect()
    }

    /// The instance types of all Nodes, also of those without the driver.
    pub fn types(&self) -> BTreeSet<String> {
        let machines = self.machines.borrow();
        let machines = machines.iter().flatten();
        machines
            .filter_map(|(_, machine)| machine.instance_type.clone())
            .collect()
    }

    /// The disk categories that nodes report, each combination once; none until the CSINodes are listed.
    pub fn categories(&self) -> Option<BTreeSet<BTreeSet<Category>>> {
        let registered = self.registered.borrow();
        let reported = registered.as_ref()?.values().map(|node| &node.categories);
        Some(reported.filter(|set| !set.is_empty()).cloned().collect())
    }

    /// Instances with the driver whose Node has no label of the instance type.
    pub fn untyped(&self) -> BTreeSet<InstanceId> {
        let (machines, registered) = (self.machines.borrow(), self.registered.borrow());
        let (Some(machines), Some(registered)) = (&*machines, &*registered) else {
            return BTreeSet::new();
        };
        let untyped = registered.iter().filter(|(name, _)| {
            let machine = machines.get(*name);
            machine.is_none_or(|machine| machine.instance_type.is_none())
        });
        untyped.map(|(_, registered)| registered.id.clone()).collect()
    }

    /// The nodes with the driver.
    pub fn members(&self) -> Vec<Member> {
        let (machines, registered) = (self.machines.borrow(), self.registered.borrow());
        let members = registered.iter().flatten().filter_map(|(name, registered)| {
            let machine = machines.as_ref()?.get(name)?;
            let uid = machine.uid.clone()?;
            let has_owner = registered.node.is_some();
            (!has_owner || registered.node.as_ref() == Some(&uid)).then(|| Member {
                node: name.clone(),
                uid,
                has_owner,
                instance: registered.id.clone(),
                has_limit: registered.has_limit,
                is_tainted: machine.is_tainted,
                is_ready: machine.is_ready,
                out_of_service: machine.out_of_service.clone(),
            })
        });
        members.collect()
    }
}

fn machine(node: &PartialNode, taint: Option<&str>) -> Machine {
    let labels = node.metadata.labels.as_ref();
    let instance_type = labels.and_then(|labels| labels.get(TYPE_LABEL));
    let is_taint = |one: &Taint| Some(one.key.as_str()) == taint;
    let mut out_of_service = node.spec.taints.iter().filter(|one| one.key == OUT_OF_SERVICE);
    Machine {
        uid: node.metadata.uid.clone(),
        instance_type: instance_type.filter(|name| name.starts_with(TYPE_PREFIX)).cloned(),
        is_tainted: node.spec.taints.iter().any(is_taint),
        is_ready: is_ready(node),
        out_of_service: out_of_service.next().map(|one| one.value.clone()),
    }
}

fn registered(node: &CSINode, driver: &DriverName) -> Option<RegisteredNode> {
    let mut drivers = node.spec.drivers.iter();
    let found = drivers.find(|one| one.name == driver.as_str())?;
    let owners = node.metadata.owner_references.iter().flatten();
    let mut nodes = owners.filter(|owner| owner.kind == "Node");
    let keys = found.topology_keys.iter().flatten();
    Some(RegisteredNode {
        // This driver registers only valid instance IDs.
        id: found.node_id.parse().ok()?,
        node: nodes.next().map(|owner| owner.uid.clone()),
        has_limit: found.allocatable.as_ref().is_some_and(|limit| limit.count.is_some()),
        categories: keys.filter_map(|key| topology::category_of(key)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster::follow::{replace, set};

    const KEY: &str = "x/not-ready";

    fn machine_of(body: serde_json::Value) -> Machine {
        let node: PartialNode = serde_json::from_value(body).unwrap();
        machine(&node, Some(KEY))
    }

    fn registered_of(drivers: &serde_json::Value) -> Option<RegisteredNode> {
        let owner = json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u-1"});
        let body = json!({"metadata": {"name": "n", "ownerReferences": [owner]}, "spec": {"drivers": drivers}});
        let node: CSINode = serde_json::from_value(body).unwrap();
        registered(&node, &DriverName::default())
    }

    fn ours(id: &str, count: Option<u32>) -> Option<RegisteredNode> {
        let name = DriverName::default();
        let driver = json!({"name": name.as_str(), "nodeID": id, "topologyKeys": null,
            "allocatable": count.map(|count| json!({"count": count}))});
        registered_of(&json!([{"name": "other", "nodeID": "x", "topologyKeys": []}, driver]))
    }

    #[test]
    fn the_type_and_the_taint_of_a_node_are_kept() {
        let node = |labels: serde_json::Value, taints: serde_json::Value| {
            machine_of(json!({
                "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "u-1", "labels": labels},
                "spec": {"taints": taints, "podCIDR": "10.0.0.0/24"},
                "status": {"images": [{"names": ["a"], "sizeBytes": 1}], "conditions": [
                    {"type": "DiskPressure", "status": "False"}, {"type": "Ready", "status": "True"}]},
            }))
        };
        let ecs = node(
            json!({TYPE_LABEL: "ecs.g6.large"}),
            json!([{"key": KEY, "effect": "NoExecute"}, {"key": OUT_OF_SERVICE, "value": "v", "effect": "NoExecute"}]),
        );
        let expected = Machine {
            uid: Some("u-1".to_owned()),
            instance_type: Some("ecs.g6.large".to_owned()),
            is_tainted: true,
            is_ready: true,
            out_of_service: Some("v".to_owned()),
        };
        assert_eq!(ecs, expected);
        let other = node(json!({TYPE_LABEL: "eci"}), json!([{"key": "y", "effect": "NoExecute"}]));
        assert_eq!((other.instance_type, other.is_tainted), (None, false));
        // An object without any field.
        let bare = machine_of(json!({"metadata": {"name": "n"}, "spec": {}}));
        assert_eq!((bare.instance_type, bare.is_tainted), (None, false));
    }

    #[test]
    fn other_drivers_of_a_csinode_are_ignored() {
        assert!(!ours("i-1", None).unwrap().has_limit);
        assert!(ours("i-1", Some(0)).unwrap().has_limit);
        assert_eq!(ours("not an id", None), None);
        assert_eq!(
            registered_of(&json!([{"name": "other", "nodeID": "i-1", "topologyKeys": []}])),
            None
        );
    }

    #[test]
    fn categories_of_a_node_are_those_of_its_topology_keys() {
        let driver = json!({"name": DriverName::default().as_str(), "nodeID": "i-1", "topologyKeys": [
            "topology.kubernetes.io/zone", "disk.diskplugin.csi.example/cloud_essd"]});
        let node = registered_of(&json!([driver])).unwrap();
        assert_eq!(node.categories, [Category::CloudEssd].into());
        assert!(ours("i-1", None).unwrap().categories.is_empty());
    }

    /// The senders of machines and registered nodes, and the nodes.
    type Senders = (watch::Sender<Objects<Machine>>, watch::Sender<Objects<RegisteredNode>>);

    fn nodes() -> (Senders, Nodes) {
        let ((machines, a), (registered, b)) = (watch::channel(None), watch::channel(None));
        let nodes = Nodes {
            machines: a,
            registered: b,
        };
        ((machines, registered), nodes)
    }

    fn tainted_machine(uid: &str, instance_type: Option<&str>) -> Machine {
        Machine {
            uid: Some(uid.to_owned()),
            instance_type: instance_type.map(str::to_owned),
            is_tainted: true,
            ..Machine::default()
        }
    }

    #[test]
    fn objects_are_kept_until_they_are_deleted_and_only_changes_notify() {
        let ((machines, known), mut nodes) = nodes();
        let mut news = || {
            let changed = [nodes.machines.has_changed(), nodes.registered.has_changed()];
            nodes.machines.mark_unchanged();
            nodes.registered.mark_unchanged();
            changed.map(Result::unwrap)
        };
        let machine = |instance_type: Option<&str>| tainted_machine("u-1", instance_type);
        let all = [("a", machine(Some("ecs.x"))), ("b", machine(None))];
        replace(&machines, all.map(|(name, machine)| (name.to_owned(), machine)).into());
        assert_eq!(news(), [true, false]);
        set(&machines, "a".to_owned(), Some(machine(Some("ecs.x"))));
        assert_eq!(news(), [false, false]);
        set(&known, "a".to_owned(), ours("i-a", None));
        set(&known, "b".to_owned(), ours("i-b", Some(3)));
        assert_eq!(news(), [false, true]);
        assert_eq!(nodes.name_of(&"i-b".parse().unwrap()).as_deref(), Some("b"));
        assert_eq!(nodes.types(), ["ecs.x".to_owned()].into());
        assert_eq!(nodes.untyped(), ["i-b".parse().unwrap()].into());
        let members = nodes.members();
        let members = members.iter().map(|one| (&*one.node, one.is_tainted, one.has_limit));
        assert_eq!(Vec::from_iter(members), [("a", true, false), ("b", true, true)]);

        // The driver is removed from a, and b is deleted, without watch events.
        set(&known, "a".to_owned(), None);
        set(&known, "never".to_owned(), None);
        assert_eq!(nodes.name_of(&"i-a".parse().unwrap()), None);
        replace(&machines, [("a".to_owned(), machine(None))].into());
        assert!(nodes.types().is_empty() && nodes.members().is_empty());
    }

    #[test]
    fn a_recreated_node_waits_until_the_driver_is_registered_on_it() {
        let ((machines, known), nodes) = nodes();
        set(&machines, "a".to_owned(), Some(tainted_machine("new", None)));
        let see = |owner: Option<&str>| {
            let owner = owner.map(|uid| json!({"apiVersion": "v1", "kind": "Node", "name": "a", "uid": uid}));
            let owners = Vec::from_iter(owner);
            let driver = json!({"name": DriverName::default().as_str(), "nodeID": "i-a", "topologyKeys": null});
            let body = json!({"metadata": {"name": "a", "ownerReferences": owners}, "spec": {"drivers": [driver]}});
            let node: CSINode = serde_json::from_value(body).unwrap();
            set(&known, "a".to_owned(), registered(&node, &DriverName::default()));
        };
        see(Some("old"));
        assert_eq!(nodes.members(), []);
        see(None);
        assert!(!nodes.members()[0].has_owner);
        see(Some("new"));
        assert!(nodes.members()[0].has_owner);
        assert_eq!(nodes.members()[0].uid, "new");
    }
}

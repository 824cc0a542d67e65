//! The nodes of the cluster: the instance, the instance type, the readiness and some taints of each.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::storage::v1::CSINode;
use kube::Api;
use kube::api::ApiResource;
use kube::core::Object;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::Cluster;
use super::follow::{WatchEvent, follow};
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
    conditions: Vec<Condition>,
}

#[derive(Debug, Clone, Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

/// A Node with only the fields that are read.
pub(super) type PartialNode = Object<Spec, Status>;

/// The taint of a node that is down. Kubernetes deletes the pods that do not tolerate it without waiting for their
/// node, and detaches their volumes ("Non-graceful node shutdown").
pub(super) const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

pub(super) fn is_ready(node: &PartialNode) -> bool {
    let conditions = node.status.iter().flat_map(|status| &status.conditions);
    let mut ready = conditions.filter(|one| one.kind == "Ready");
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
    tainted: bool,
    is_ready: bool,
    /// The value of its taint [`OUT_OF_SERVICE`].
    out_of_service: Option<String>,
}

/// The state kept of a CSINode with the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RegisteredNode {
    id: InstanceId,
    /// The UID of its Node, if the owner reference has it.
    node: Option<String>,
    /// Whether the node has reported a volume limit.
    has_limit: bool,
    /// The disk categories in its topology.
    categories: BTreeSet<Category>,
}

#[derive(Debug, Default)]
struct State {
    /// By name; none until the first list is complete.
    machines: Option<BTreeMap<String, Machine>>,
    registered: Option<BTreeMap<String, RegisteredNode>>,
}

/// The nodes of the cluster, kept up to date by a watch. Clones share the state.
#[derive(Debug, Clone)]
pub struct Nodes(watch::Receiver<State>);

/// A node with the registered driver and the startup taint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaintedNode {
    pub node: String,
    /// The UID of the Node on which the driver is registered, if known.
    pub uid: Option<String>,
    /// Whether the CSINode has a volume limit.
    pub has_limit: bool,
}

/// A Node whose CSINode has the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub node: String,
    /// The UID of the Node.
    pub uid: String,
    pub instance: InstanceId,
    pub is_ready: bool,
    /// The value of its out-of-service taint; none if it does not have one.
    pub out_of_service: Option<String>,
}

impl Nodes {
    /// Starts the watches, which run as long as the process: of the CSINodes with this driver and, if `with_nodes`, of
    /// the Nodes with their types, their readiness and their startup taint of this key.
    pub fn watch(cluster: &Cluster, driver: &DriverName, with_nodes: bool, taint: Option<String>) -> Self {
        let (sender, receiver) = watch::channel(State::default());
        let tasks = Tasks::default();
        if with_nodes {
            let sender = sender.clone();
            tasks.spawn(follow(
                "Nodes",
                partial_node(cluster),
                move |node| Some(machine(node, taint.as_deref())),
                move |event| note(&sender, event, |state| &mut state.machines),
            ));
        }
        let driver = driver.clone();
        let api: Api<CSINode> = Api::all(cluster.client());
        tasks.spawn(follow(
            "CSINodes",
            api,
            move |node| registered(node, &driver),
            move |event| note(&sender, event, |state| &mut state.registered),
        ));
        Self(receiver)
    }

    /// Returns when something has changed since the last time.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            // The watch ends with the process.
            std::future::pending::<()>().await;
        }
    }

    /// The name of the Node of this instance, if known.
    pub fn name_of(&self, id: &InstanceId) -> Option<String> {
        let state = self.0.borrow();
        let mut registered = state.registered.iter().flatten();
        let found = registered.find(|(_, registered)| registered.id == *id);
        found.map(|(name, _)| name.clone())
    }

    /// The instances on which the driver is registered.
    pub fn instances(&self) -> BTreeSet<InstanceId> {
        let state = self.0.borrow();
        let registered = state.registered.iter().flatten();
        registered.map(|(_, registered)| registered.id.clone()).collect()
    }

    /// The instance types of all Nodes, also of those without the driver.
    pub fn types(&self) -> BTreeSet<String> {
        let state = self.0.borrow();
        let machines = state.machines.iter().flatten();
        machines
            .filter_map(|(_, machine)| machine.instance_type.clone())
            .collect()
    }

    /// The disk categories that nodes report, each combination once; none until the CSINodes are listed.
    pub fn categories(&self) -> Option<BTreeSet<BTreeSet<Category>>> {
        let state = self.0.borrow();
        let nodes = state.registered.as_ref()?.values();
        let reported = nodes.map(|node| &node.categories);
        Some(reported.filter(|set| !set.is_empty()).cloned().collect())
    }

    /// Instances with the driver whose Node has no label of the instance type.
    pub fn untyped(&self) -> BTreeSet<InstanceId> {
        let state = self.0.borrow();
        let (Some(machines), Some(registered)) = (&state.machines, &state.registered) else {
            return BTreeSet::new();
        };
        let untyped = registered.iter().filter(|(name, _)| {
            let machine = machines.get(*name);
            machine.is_none_or(|machine| machine.instance_type.is_none())
        });
        untyped.map(|(_, registered)| registered.id.clone()).collect()
    }

    /// The nodes with the driver. A CSINode of an earlier Node with the same name does not count.
    pub fn members(&self) -> Vec<Member> {
        let state = self.0.borrow();
        let registered = state.registered.iter().flatten();
        let members = registered.filter_map(|(name, registered)| {
            let machine = state.machines.as_ref()?.get(name)?;
            let uid = machine
                .uid
                .clone()
                .filter(|uid| registered.node.as_ref() == Some(uid))?;
            Some(Member {
                node: name.clone(),
                uid,
                instance: registered.id.clone(),
                is_ready: machine.is_ready,
                out_of_service: machine.out_of_service.clone(),
            })
        });
        members.collect()
    }

    /// The nodes with the driver that still have the startup taint.
    pub fn tainted_nodes(&self) -> BTreeSet<TaintedNode> {
        let state = self.0.borrow();
        let machines = state.machines.iter().flatten();
        let tainted = machines.filter(|(_, machine)| machine.tainted);
        tainted
            .filter_map(|(name, machine)| {
                let registered = state.registered.as_ref()?.get(name)?;
                // The CSINode may still be that of a deleted Node with the same name.
                if registered.node.is_some() && registered.node != machine.uid {
                    return None;
                }
                Some(TaintedNode {
                    node: name.clone(),
                    uid: registered.node.clone(),
                    has_limit: registered.has_limit,
                })
            })
            .collect()
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
        tainted: node.spec.taints.iter().any(is_taint),
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

/// Applies an event, and notifies subscribers if the state has changed.
fn note<T: PartialEq>(
    sender: &watch::Sender<State>,
    event: WatchEvent<T>,
    part: impl Fn(&mut State) -> &mut Option<BTreeMap<String, T>>,
) {
    sender.send_if_modified(|state| {
        let part = part(state);
        match event {
            WatchEvent::All(all) => {
                let all = Some(all.into_iter().collect());
                std::mem::replace(part, all) != *part
            }
            WatchEvent::Applied(name, one) => {
                let before = part.get_or_insert_default().insert(name.clone(), one);
                before.as_ref() != part.as_ref().and_then(|part| part.get(&name))
            }
            WatchEvent::Deleted(name) => part.as_mut().is_some_and(|part| part.remove(&name).is_some()),
        }
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KEY: &str = "x/not-ready";

    fn machine_of(body: serde_json::Value) -> Machine {
        let node: PartialNode = serde_json::from_value(body).unwrap();
        machine(&node, Some(KEY))
    }

    fn registered_of(drivers: &serde_json::Value) -> Option<RegisteredNode> {
        let body = json!({"metadata": {"name": "n"}, "spec": {"drivers": drivers}});
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
            tainted: true,
            is_ready: true,
            out_of_service: Some("v".to_owned()),
        };
        assert_eq!(ecs, expected);
        let other = node(json!({TYPE_LABEL: "eci"}), json!([{"key": "y", "effect": "NoExecute"}]));
        assert_eq!((other.instance_type, other.tainted), (None, false));
        // An object without any field.
        let bare = machine_of(json!({"metadata": {"name": "n"}, "spec": {}}));
        assert_eq!((bare.instance_type, bare.tainted), (None, false));
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

    #[test]
    fn objects_are_kept_until_they_are_deleted_and_only_changes_notify() {
        let (sender, receiver) = watch::channel(State::default());
        let mut nodes = Nodes(receiver);
        let mut news = || {
            let is_news = nodes.0.has_changed().unwrap();
            nodes.0.mark_unchanged();
            is_news
        };
        let machine = |instance_type: Option<&str>| Machine {
            uid: Some("u-1".to_owned()),
            instance_type: instance_type.map(str::to_owned),
            tainted: true,
            ..Machine::default()
        };
        let apply_machine = |event| note(&sender, event, |state| &mut state.machines);
        let apply_registered = |event| note(&sender, event, |state| &mut state.registered);
        apply_machine(WatchEvent::All(vec![
            ("a".to_owned(), machine(Some("ecs.x"))),
            ("b".to_owned(), machine(None)),
        ]));
        assert!(news());
        apply_machine(WatchEvent::Applied("a".to_owned(), machine(Some("ecs.x"))));
        assert!(!news());
        apply_registered(WatchEvent::applied("a".to_owned(), ours("i-a", None)));
        apply_registered(WatchEvent::applied("b".to_owned(), ours("i-b", Some(3))));
        assert!(news());
        let known = Nodes(sender.subscribe());
        assert_eq!(known.name_of(&"i-b".parse().unwrap()).as_deref(), Some("b"));
        assert_eq!(known.types(), ["ecs.x".to_owned()].into());
        assert_eq!(known.untyped(), ["i-b".parse().unwrap()].into());
        let tainted_nodes = |name: &str, has_limit| TaintedNode {
            node: name.to_owned(),
            uid: None,
            has_limit,
        };
        assert_eq!(
            known.tainted_nodes(),
            [tainted_nodes("a", false), tainted_nodes("b", true)].into()
        );

        // The driver is removed from a, and b is deleted, without watch events.
        apply_registered(WatchEvent::applied("a".to_owned(), None));
        apply_registered(WatchEvent::Deleted("never".to_owned()));
        assert_eq!(known.name_of(&"i-a".parse().unwrap()), None);
        apply_machine(WatchEvent::All(vec![("a".to_owned(), machine(None))]));
        assert!(known.types().is_empty() && known.tainted_nodes().is_empty());
    }

    #[test]
    fn a_recreated_node_waits_until_the_driver_is_registered_on_it() {
        let (sender, receiver) = watch::channel(State::default());
        let nodes = Nodes(receiver);
        let again = Machine {
            uid: Some("new".to_owned()),
            tainted: true,
            ..Machine::default()
        };
        note(&sender, WatchEvent::Applied("a".to_owned(), again), |state| {
            &mut state.machines
        });
        let see = |owner: &str| {
            let driver = json!({"name": DriverName::default().as_str(), "nodeID": "i-a", "topologyKeys": null});
            let owner = json!({"apiVersion": "v1", "kind": "Node", "name": "a", "uid": owner});
            let body = json!({"metadata": {"name": "a", "ownerReferences": [owner]}, "spec": {"drivers": [driver]}});
            let node: CSINode = serde_json::from_value(body).unwrap();
            let registered = registered(&node, &DriverName::default());
            let event = WatchEvent::applied("a".to_owned(), registered);
            note(&sender, event, |state| &mut state.registered);
        };
        see("old");
        assert_eq!(nodes.tainted_nodes(), BTreeSet::new());
        assert_eq!(nodes.members(), []);
        see("new");
        assert_eq!(nodes.members().len(), 1);
        let wanted = TaintedNode {
            node: "a".to_owned(),
            uid: Some("new".to_owned()),
            has_limit: false,
        };
        assert_eq!(nodes.tainted_nodes(), [wanted].into());
    }
}

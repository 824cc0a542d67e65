//! RBAC: compares the API calls of each sidecar with its role, and checks what must be denied.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::path::{group, grouped};
use crate::plane::NAMESPACE;
use crate::release::{CONTROLLER, KEYS, NODE, token};
use crate::scene::Scene;

/// Where it is logs why rights stay that go unused.
const PAGE: &str = "docs/reference/kubernetes-rights.md";
/// The page's name of the Role in the namespace.
const COMMON: &str = "all (namespace)";
const RBAC: &str = "rbac.authorization.k8s.io";

/// One verb on one resource.
type Right = (String, String);

/// No ServiceAccount of the chart can read Secrets, and the one of the node cannot access volumes either.
pub(crate) async fn secrets(scene: &Scene<'_>) {
    let mut asked = vec![
        (NODE, "list", "nodes"),
        (NODE, "patch", "nodes"),
        (NODE, "get", "volumeattachments"),
        (NODE, "list", "persistentvolumes"),
        (NODE, "patch", "volumeattachments"),
    ];
    for account in [NODE, CONTROLLER] {
        asked.extend(["get", "list", "watch"].map(|verb| (account, verb, "secrets")));
    }
    for (account, verb, resource) in asked {
        let who = format!("--as=system:serviceaccount:{NAMESPACE}:{account}");
        for place in ["--all-namespaces", &format!("--namespace={NAMESPACE}")] {
            let logs = scene
                .cluster
                .plane
                .kubectl(["auth", "can-i", verb, resource, place, &who])
                .await;
            assert_eq!(
                (logs.stdout.trim(), logs.code),
                ("no", Some(1)),
                "{account}: {verb} {resource}: {logs:?}"
            );
        }
    }
    // Requests with their tokens are denied, with and without the Secret's name.
    for account in [NODE, CONTROLLER] {
        let token = token(&scene.cluster.plane, NAMESPACE, account).await;
        for wanted in [&["get", "secrets"][..], &["get", "secret", KEYS]] {
            let place = ["--namespace", NAMESPACE, "--token", &token];
            let logs = scene.cluster.plane.kubectl(wanted.iter().chain(&place));
            let logs = logs.await;
            let who = format!("system:serviceaccount:{NAMESPACE}:{account}");
            let refused = logs.stderr.contains("Forbidden") && logs.stderr.contains(&who);
            assert!(logs.code == Some(1) && refused, "{account}: {wanted:?}: {logs:?}");
        }
    }
    // The review distinguishes: permitted requests are not denied.
    let who = format!("--as=system:serviceaccount:{NAMESPACE}:{CONTROLLER}");
    let logs = scene
        .cluster
        .plane
        .kubectl(["auth", "can-i", "patch", "volumeattachments", &who])
        .await;
    assert_eq!((logs.stdout.trim(), logs.code), ("yes", Some(0)), "{logs:?}");
}

/// No API call was denied, and each sidecar used only its own role. Unused permissions are printed and must be
/// explained in the reference.
pub(crate) async fn used(scene: &Scene<'_>) {
    let common = rules(scene, &grouped(RBAC, NAMESPACE, &format!("roles/{CONTROLLER}"))).await;
    let calls = calls(&scene.cluster.plane.audit());
    assert!(calls.len() > 100, "only {} calls were logged", calls.len());
    let mut wrong = BTreeSet::new();
    let mut unused = Vec::new();
    let mut common_used = BTreeSet::new();
    for sidecar in ["provisioner", "attacher", "resizer", "snapshotter", "driver"] {
        let own = rules(
            scene,
            &group(RBAC, &format!("clusterroles/{NAMESPACE}-tier1-diskplugin-{sidecar}")),
        )
        .await;
        let mut used = BTreeSet::new();
        for call in calls.iter().filter(|call| call.by == sidecar) {
            if call.denied {
                wrong.insert(format!("{sidecar} was denied {:?}", call.right));
            }
            if own.contains(&call.right) {
                used.insert(call.right.clone());
            } else if call.namespace == NAMESPACE && common.contains(&call.right) {
                common_used.insert(call.right.clone());
            } else {
                wrong.insert(format!(
                    "{sidecar} did {:?} in {:?}, which its role does not give",
                    call.right, call.namespace
                ));
            }
        }
        unused.extend(own.difference(&used).map(|right| (sidecar, right.clone())));
    }
    unused.extend(common.difference(&common_used).map(|right| (COMMON, right.clone())));
    let reasons = reasons();
    for (who, (verb, resource)) in &unused {
        if !reasons.iter().any(|reason| reason.explains(who, verb, resource)) {
            println!("not used, and {PAGE} does not say why it stays: {who}: {verb} {resource}");
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The reason for an unused permission.
struct Reason {
    who: String,
    verbs: String,
    of: String,
}

impl Reason {
    fn explains(&self, who: &str, verb: &str, resource: &str) -> bool {
        let verbs: Vec<_> = self.verbs.split(", ").collect();
        (self.who == "all" || self.who == who)
            && verbs.contains(&verb)
            && (self.of == "all" || self.of.contains(&format!("`{resource}`")))
    }
}

/// The rows of the page.
fn reasons() -> Vec<Reason> {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE));
    let page = page.expect("the page is there");
    let (_, rest) = page.split_once("<!-- unused -->").expect("the page has the mark");
    let (table, _) = rest
        .split_once("<!-- end of unused -->")
        .expect("the page has the mark of the end");
    let rows = table.lines().filter(|line| line.starts_with('|')).skip(2);
    let reasons = rows.map(|row| {
        let cells: Vec<_> = row.split('|').map(|cell| cell.trim().to_owned()).collect();
        let [_, who, verbs, of, _, _] = cells.as_slice() else {
            panic!("{PAGE}: no row of four: {row}");
        };
        let (who, verbs, of) = (who.clone(), verbs.clone(), of.clone());
        Reason { who, verbs, of }
    });
    reasons.collect()
}

/// A call that the API server logged.
#[derive(Debug)]
struct Call {
    by: String,
    namespace: String,
    right: Right,
    denied: bool,
}

fn calls(log: &str) -> Vec<Call> {
    let lines = log.lines().filter_map(|line| {
        // The last line may be incomplete if the server was killed.
        let event: Value = serde_json::from_str(line).ok()?;
        let object = event.get("objectRef")?;
        let part = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
        let agent = event["userAgent"].as_str().unwrap_or_default();
        // Requests of a scenario with their tokens.
        if agent.starts_with("kubectl/") {
            return None;
        }
        let subresource = match object["subresource"].as_str() {
            Some(name) => format!("/{name}"),
            None => String::new(),
        };
        let verb = event["verb"].as_str()?.to_owned();
        let resource = named(&format!("{}{subresource}", part("resource")), &part("apiGroup"));
        Some(Call {
            // Requests of the driver without a user agent.
            by: agent
                .split('/')
                .next()
                .and_then(|name| name.strip_prefix("csi-"))
                .unwrap_or("driver")
                .to_owned(),
            namespace: part("namespace"),
            right: (verb, resource),
            denied: event["annotations"]["authorization.k8s.io/decision"] == "forbid",
        })
    });
    lines.collect()
}

/// The permissions of a role.
async fn rules(scene: &Scene<'_>, path: &str) -> BTreeSet<Right> {
    let role = scene
        .api
        .get(path)
        .await
        .unwrap_or_else(|| panic!("the chart has no {path}"));
    let texts =
        |value: &Value| -> Vec<String> { serde_json::from_value(value.clone()).expect("a rule has lists of texts") };
    let rules = role["rules"].as_array().expect("a role has rules").iter();
    let rights = rules.flat_map(|rule| {
        let (groups, verbs) = (texts(&rule["apiGroups"]), texts(&rule["verbs"]));
        let resources = texts(&rule["resources"]).into_iter();
        let named =
            resources.flat_map(move |resource| groups.clone().into_iter().map(move |group| named(&resource, &group)));
        named.flat_map(move |resource| verbs.clone().into_iter().map(move |verb| (verb, resource.clone())))
    });
    rights.collect()
}

/// `resource.group`, as in the reference.
fn named(resource: &str, group: &str) -> String {
    match group {
        "" => resource.to_owned(),
        group => format!("{resource}.{group}"),
    }
}

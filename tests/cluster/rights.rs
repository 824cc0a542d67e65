//! RBAC: compares the API calls of each sidecar with its role, and checks what must be denied.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::path::{group, grouped};
use crate::plane::NAMESPACE;
use crate::release::{CONTROLLER, KEYS, NODE, token};
use crate::scene::Scene;

/// Explains each unused permission.
const PAGE: &str = "docs/reference/kubernetes-rights.md";
/// The name of the namespace's Role in the page.
const COMMON: &str = "all (namespace)";
const RBAC: &str = "rbac.authorization.k8s.io";

/// One verb on one resource.
type Permission = (String, String);

/// No ServiceAccount of the chart can read Secrets, and the one of the node cannot access volumes either.
pub(crate) async fn secrets(scene: &Scene<'_>) {
    let plane = &scene.cluster.plane;
    let mut denied_calls = vec![
        (NODE, "list", "nodes"),
        (NODE, "patch", "nodes"),
        (NODE, "get", "volumeattachments"),
        (NODE, "list", "persistentvolumes"),
        (NODE, "patch", "volumeattachments"),
    ];
    for account in [NODE, CONTROLLER] {
        denied_calls.extend(["get", "list", "watch"].map(|verb| (account, verb, "secrets")));
    }
    for (account, verb, resource) in denied_calls {
        let user = format!("--as=system:serviceaccount:{NAMESPACE}:{account}");
        for scope in ["--all-namespaces", &format!("--namespace={NAMESPACE}")] {
            let output = plane.kubectl(["auth", "can-i", verb, resource, scope, &user]).await;
            assert_eq!(
                (output.stdout.trim(), output.code),
                ("no", Some(1)),
                "{account}: {verb} {resource}: {output:?}"
            );
        }
    }
    // Requests with their tokens are denied, with and without the Secret's name.
    for account in [NODE, CONTROLLER] {
        let token = token(plane, NAMESPACE, account).await;
        for request in [&["get", "secrets"][..], &["get", "secret", KEYS]] {
            let flags = ["--namespace", NAMESPACE, "--token", &token];
            let output = plane.kubectl(request.iter().chain(&flags)).await;
            let user = format!("system:serviceaccount:{NAMESPACE}:{account}");
            let denied = output.stderr.contains("Forbidden") && output.stderr.contains(&user);
            assert!(output.code == Some(1) && denied, "{account}: {request:?}: {output:?}");
        }
    }
    // A granted permission is allowed.
    let user = format!("--as=system:serviceaccount:{NAMESPACE}:{CONTROLLER}");
    let allowed = ["auth", "can-i", "patch", "volumeattachments", &user];
    let output = plane.kubectl(allowed).await;
    assert_eq!((output.stdout.trim(), output.code), ("yes", Some(0)), "{output:?}");
}

/// No API call was denied, and each sidecar used only its own role. Unused permissions are printed and must be
/// explained in the reference.
pub(crate) async fn used(scene: &Scene<'_>) {
    let common = rules(scene, &grouped(RBAC, NAMESPACE, &format!("roles/{CONTROLLER}"))).await;
    let calls = calls(&scene.cluster.plane.audit());
    assert!(calls.len() > 100, "only {} calls were logged", calls.len());
    let mut violations = BTreeSet::new();
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
                violations.insert(format!("{sidecar} was denied {:?}", call.permission));
            }
            if own.contains(&call.permission) {
                used.insert(call.permission.clone());
            } else if call.namespace == NAMESPACE && common.contains(&call.permission) {
                common_used.insert(call.permission.clone());
            } else {
                violations.insert(format!(
                    "{sidecar} did {:?} in {:?}, which its role does not grant",
                    call.permission, call.namespace
                ));
            }
        }
        unused.extend(own.difference(&used).map(|permission| (sidecar, permission.clone())));
    }
    let common_unused = common.difference(&common_used);
    unused.extend(common_unused.map(|permission| (COMMON, permission.clone())));
    let reasons = reasons();
    for (account, (verb, resource)) in &unused {
        if !reasons.iter().any(|reason| reason.explains(account, verb, resource)) {
            println!("unused, and {PAGE} does not explain it: {account}: {verb} {resource}");
        }
    }
    assert!(violations.is_empty(), "{violations:#?}");
}

/// The reason for an unused permission.
struct Reason {
    account: String,
    verbs: String,
    of: String,
}

impl Reason {
    fn explains(&self, account: &str, verb: &str, resource: &str) -> bool {
        let verbs: Vec<_> = self.verbs.split(", ").collect();
        (self.account == "all" || self.account == account)
            && verbs.contains(&verb)
            && (self.of == "all" || self.of.contains(&format!("`{resource}`")))
    }
}

/// The rows of the page.
fn reasons() -> Vec<Reason> {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE));
    let page = page.expect("the page exists");
    let (_, rest) = page.split_once("<!-- unused -->").expect("the page has the begin mark");
    let (table, _) = rest
        .split_once("<!-- end of unused -->")
        .expect("the page has the end mark");
    let rows = table.lines().filter(|line| line.starts_with('|')).skip(2);
    let reasons = rows.map(|row| {
        let cells: Vec<_> = row.split('|').map(|cell| cell.trim().to_owned()).collect();
        let [_, account, verbs, of, _, _] = cells.as_slice() else {
            panic!("{PAGE}: a row without four cells: {row}");
        };
        let (account, verbs, of) = (account.clone(), verbs.clone(), of.clone());
        Reason { account, verbs, of }
    });
    reasons.collect()
}

/// A call that the API server logged.
#[derive(Debug)]
struct Call {
    by: String,
    namespace: String,
    permission: Permission,
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
            permission: (verb, resource),
            denied: event["annotations"]["authorization.k8s.io/decision"] == "forbid",
        })
    });
    lines.collect()
}

/// The permissions of a role.
async fn rules(scene: &Scene<'_>, path: &str) -> BTreeSet<Permission> {
    let role = scene
        .api
        .get(path)
        .await
        .unwrap_or_else(|| panic!("the chart has no {path}"));
    let texts =
        |value: &Value| -> Vec<String> { serde_json::from_value(value.clone()).expect("a rule has lists of strings") };
    let rules = role["rules"].as_array().expect("a role has rules").iter();
    let permissions = rules.flat_map(|rule| {
        let (groups, verbs) = (texts(&rule["apiGroups"]), texts(&rule["verbs"]));
        let resources = texts(&rule["resources"]).into_iter();
        let named =
            resources.flat_map(move |resource| groups.clone().into_iter().map(move |group| named(&resource, &group)));
        named.flat_map(move |resource| verbs.clone().into_iter().map(move |verb| (verb, resource.clone())))
    });
    permissions.collect()
}

/// `resource.group`, as in the reference.
fn named(resource: &str, group: &str) -> String {
    match group {
        "" => resource.to_owned(),
        group => format!("{resource}.{group}"),
    }
}

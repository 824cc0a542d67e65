//! The RAM policies allow exactly the actions that the code needs.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::page::{files_below, page, read};
use crate::report;

const FOLDER: &str = "deploy/ram-policies";

fn policy(name: &str) -> Value {
    serde_json::from_str(&read(format!("{FOLDER}/{name}"))).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The only statement of a policy.
fn statement(name: &str) -> Value {
    let policy = policy(name);
    assert_eq!(policy["Version"], "1", "{name}");
    let [statement] = policy["Statement"].as_array().unwrap().as_slice() else {
        panic!("{name} must have one statement")
    };
    assert_eq!(statement["Effect"], "Allow", "{name}");
    statement.clone()
}

/// The actions of the ECS API that a policy allows.
fn allowed(name: &str) -> BTreeSet<String> {
    let actions = statement(name)["Action"].clone();
    let actions = actions.as_array().unwrap().iter().map(|action| {
        let action = action.as_str().unwrap();
        action.strip_prefix("ecs:").expect("an action of ECS").to_owned()
    });
    let all: Vec<String> = actions.collect();
    let set: BTreeSet<String> = all.iter().cloned().collect();
    assert_eq!(all.len(), set.len(), "{name} has an action twice");
    set
}

/// Each method of the client, with the action that it calls.
fn actions_by_method() -> Vec<(String, String)> {
    let text = read("crates/ecs/src/client.rs");
    let table = text.split_once("\nactions! {\n").unwrap().1;
    let lines = table.lines().filter(|line| !line.contains("//"));
    let table: String = lines.collect();
    let rows = table.split_terminator(';').filter(|row| row.contains('('));
    let methods = rows.map(|row| {
        let name = row.split_once('(').unwrap().0.trim();
        let action = row.split('"').nth(1).expect("each method has an action");
        assert!(action.starts_with(char::is_uppercase), "{row}");
        (name.to_owned(), action.to_owned())
    });
    methods.collect()
}

#[test]
fn the_policy_of_the_controller_allows_exactly_the_actions_that_the_code_calls() {
    let methods = actions_by_method();
    assert!(methods.len() > 20, "methods are missing: {methods:?}");
    let callers = ["src/disk", "src/csi", "src/app", "crates/ecs/src/poll"];
    let code: String = callers
        .iter()
        .flat_map(|path| files_below(path, "rs"))
        .map(read)
        .collect();
    let called = methods.iter().filter(|(method, action)| {
        // As a call, or as an argument of the macro that makes the call of each kind.
        code.contains(&format!(".{method}(")) || code.contains(&format!(" {method}({action}"))
    });
    let called: BTreeSet<String> = called.map(|(_, action)| action.clone()).collect();
    assert!(called.contains("AttachDisk") && called.contains("DescribeDisksFullStatus"));
    let allowed = allowed("controller.json");
    let missing = called.difference(&allowed).map(|action| format!("{action} is missing"));
    let unused = allowed
        .difference(&called)
        .map(|action| format!("nothing calls {action}"));
    report(missing.chain(unused));
}

/// tests/controller/verbs runs the lifecycle of a volume with these rights only.
#[test]
fn the_policy_for_volumes_only_lacks_the_actions_of_snapshots_and_modifications() {
    let (all, fewer) = (allowed("controller.json"), allowed("volumes-only.json"));
    assert!(fewer.is_subset(&all));
    let is_omitted =
        |action: &str| action.contains("Snapshot") || action.contains("Modify") || action == "DescribeTasks";
    let wrong = all
        .iter()
        .filter(|action| fewer.contains(*action) == is_omitted(action));
    report(wrong.map(|action| format!("volumes-only.json has {action}: {}", fewer.contains(action))));
}

#[test]
fn the_service_account_of_the_chart_can_assume_the_role() {
    for name in ["service-account", "instance", "account"] {
        let statement = statement(&format!("trust-{name}.json"));
        assert_eq!(statement["Action"], "sts:AssumeRole", "{name}");
        assert!(statement["Principal"].is_object(), "{name}");
    }
    let condition = statement("trust-service-account.json")["Condition"]["StringEquals"].clone();
    let account = condition["oidc:sub"].as_str().unwrap();
    let name = account.strip_prefix("system:serviceaccount:diskplugin:").unwrap();
    let rendered = read("tests/helm/golden/minimal.yaml");
    assert!(
        rendered.contains(&format!("serviceAccountName: \"{name}\"\n")),
        "{name}"
    );
    let audience = condition["oidc:aud"].as_str().unwrap();
    let values = read("deploy/helm/diskplugin/values.yaml");
    assert!(values.contains(&format!("audience: {audience}\n")), "{audience}");
    assert_eq!(statement("assume-role.json")["Action"][0], "sts:AssumeRole");
}

#[test]
fn the_guide_has_every_policy() {
    let page = page("docs/guides/credentials.md");
    let paths = files_below(FOLDER, "json").into_iter();
    let paths: Vec<String> = paths.map(|path| path.display().to_string()).collect();
    assert!(paths.len() > 4, "{paths:?}");
    let missing = paths.iter().filter(|path| !page.has_span(path));
    report(missing.map(|path| format!("{path} is not in the guide")));
}

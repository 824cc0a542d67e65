//! The RAM policies are what the code needs, and nothing else.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::page::{page, read, root};
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
        panic!("{name} has not one statement")
    };
    assert_eq!(statement["Effect"], "Allow", "{name}");
    statement.clone()
}

/// The actions of the ECS API that a policy allows.
fn allowed(name: &str) -> BTreeSet<String> {
    let actions = statement(name)["Action"].clone();
    let actions = actions.as_array().unwrap().iter().map(|action| {
        let action = action.as_str().unwrap();
        action.strip_prefix("ecs:").expect("it is of ECS").to_owned()
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
        let action = row.split('"').nth(1).expect("each method calls one");
        assert!(action.starts_with(char::is_uppercase), "{row}");
        (name.to_owned(), action.to_owned())
    });
    methods.collect()
}

/// Whether the code above the client asks for it.
fn is_asked_for(folder: &Path, call: &str) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return is_asked_for(&path, call);
        }
        std::fs::read_to_string(&path).unwrap().contains(call)
    })
}

#[test]
fn the_policy_of_the_controller_allows_what_the_code_asks_for_and_nothing_else() {
    let methods = actions_by_method();
    assert!(methods.len() > 20, "the walk misses methods: {methods:?}");
    let asked = methods.iter().filter(|(method, action)| {
        // As a call, or handed to the macro that makes the call of each kind.
        let calls = [format!(".{method}("), format!(" {method}({action}")];
        let above = ["src/disk", "src/csi", "src/app", "crates/ecs/src/poll"];
        let is_called = |folder| calls.iter().any(|call| is_asked_for(&root().join(folder), call));
        above.into_iter().any(is_called)
    });
    let asked: BTreeSet<String> = asked.map(|(_, action)| action.clone()).collect();
    assert!(asked.contains("AttachDisk") && asked.contains("DescribeDisksFullStatus"));
    let allowed = allowed("controller.json");
    let missing = asked.difference(&allowed).map(|action| format!("{action} is missing"));
    let needless = allowed
        .difference(&asked)
        .map(|action| format!("nothing calls {action}"));
    report(missing.chain(needless));
}

/// tests/controller/verbs plays the life of a volume with no more rights than these.
#[test]
fn the_policy_for_volumes_only_is_the_controllers_without_what_it_says() {
    let (all, fewer) = (allowed("controller.json"), allowed("volumes-only.json"));
    let left_out: Vec<&String> = all.difference(&fewer).collect();
    assert!(fewer.is_subset(&all));
    let is_for_the_rest =
        |action: &str| action.contains("Snapshot") || action.contains("Modify") || action == "DescribeTasks";
    let wrong = all
        .iter()
        .filter(|action| fewer.contains(*action) == is_for_the_rest(action));
    report(wrong.map(|action| format!("{action} is on the wrong side; left out are {left_out:?}")));
}

#[test]
fn who_may_assume_the_role_is_who_the_chart_runs() {
    for name in [
        "trust-service-account.json",
        "trust-instance.json",
        "trust-account.json",
    ] {
        assert_eq!(statement(name)["Action"], "sts:AssumeRole", "{name}");
        assert!(statement(name)["Principal"].is_object(), "{name}");
    }
    let condition = statement("trust-service-account.json")["Condition"]["StringEquals"].clone();
    let account = condition["oidc:sub"].as_str().unwrap();
    let name = account.strip_prefix("system:serviceaccount:diskplugin:").unwrap();
    let rendered = read("tests/helm/golden/minimal.yaml");
    assert!(rendered.contains(&format!("serviceAccountName: {name}\n")), "{name}");
    let audience = condition["oidc:aud"].as_str().unwrap();
    let values = read("deploy/helm/diskplugin/values.yaml");
    assert!(values.contains(&format!("audience: {audience}\n")), "{audience}");
    assert_eq!(statement("assume-role.json")["Action"][0], "sts:AssumeRole");
}

#[test]
fn the_guide_has_every_policy() {
    let page = page("docs/guides/credentials.md");
    let entries = std::fs::read_dir(root().join(FOLDER)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().display().to_string());
    let names: Vec<String> = names.collect();
    assert!(names.len() > 4, "{names:?}");
    report(
        names
            .into_iter()
            .map(|name| format!("{FOLDER}/{name}"))
            .filter(|path| !page.has_span(path))
            .map(|path| format!("{path} is not in the guide")),
    );
}

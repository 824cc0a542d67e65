//! Settings of the driver: its flags and the instance types.

use std::collections::BTreeSet;

use clap::{Arg, CommandFactory as _};
use diskplugin::app::{Cli, ControllerCli, NodeCli};
use diskplugin::model::instance_types::Document;
use serde_json::{Value, json};

use crate::render::{Object, all, arguments, list, one, read, text, texts, variant};
use crate::report;

#[test]
fn the_driver_accepts_its_flags() {
    let objects = all();
    let mut seen = BTreeSet::new();
    report(objects.iter().flat_map(Object::containers).filter_map(|container| {
        if !["diskplugin", "doctor"].contains(&container.name) {
            return None;
        }
        let args = arguments(container.body);
        let command = texts(container.body, "/command");
        let mut program = match command.as_slice() {
            // The image's entry point.
            [] => Cli::command(),
            ["/diskplugin-controller"] => ControllerCli::command(),
            ["/diskplugin-node"] => NodeCli::command(),
            other => return Some(format!("{}: unknown program {other:?}", container.at())),
        };
        seen.insert((program.get_name().to_owned(), args[0]));
        // From the environment of the pod.
        let pod = args.contains(&"--leader-election");
        let pod = pod.then_some("--leader-election-identity=pod");
        let line = ["diskplugin"].into_iter().chain(args).chain(pod);
        let rejection = program.try_get_matches_from_mut(line).err()?;
        Some(format!("{}: {rejection}", container.at()))
    }));
    let program = |name: &str, role| (name.to_owned(), role);
    let expected = [
        program("diskplugin", "doctor"),
        program("diskplugin-controller", "controller"),
        program("diskplugin-node", "doctor"),
        program("diskplugin-node", "node"),
    ];
    assert_eq!(seen, BTreeSet::from(expected));
}

#[test]
fn extra_arguments_are_flags_of_the_program() {
    let schema: Value = serde_json::from_str(&read("deploy/helm/diskplugin/values.schema.json")).unwrap();
    for (role, mut program) in [("controller", ControllerCli::command()), ("node", NodeCli::command())] {
        program.build();
        let flags = program.find_subcommand(role).unwrap().get_arguments();
        let names: BTreeSet<&str> = flags.filter_map(Arg::get_long).filter(|name| *name != "help").collect();
        let names: Vec<&str> = names.into_iter().collect();
        let pointer = format!("/properties/{role}/properties/extraArgs/items/pattern");
        assert_eq!(text(&schema, &pointer), format!("^--({})(=.*)?$", names.join("|")));
    }
}

#[test]
fn node_plugin_parses_the_rendered_instance_types() {
    let objects = variant("full");
    let content = |object: &Object| object.body.pointer("/data/instance-types.json").cloned();
    let content = objects.iter().find_map(content).unwrap();
    let types = Document::read(content.as_str().unwrap()).unwrap().types().clone();
    assert_eq!(types.0["ecs.g6.large"].disk_quantity, 17);
    assert_eq!(types.0["ecs.g6.large"].categories.len(), 2);
}

#[test]
fn controller_can_patch_only_the_config_map_that_nodes_mount() {
    let objects = variant("minimal");
    let controller = one(&objects, "Deployment").containers();
    let args = texts(controller[0].body, "/args");
    let name = args
        .iter()
        .find_map(|arg| arg.strip_prefix("--instance-types-config-map="))
        .unwrap();
    let maps = objects.iter().filter(|object| object.kind == "ConfigMap");
    let map = maps.clone().find(|map| map.name == name).unwrap();
    // An upgrade must not overwrite the content.
    assert_eq!(map.body.get("data"), None);
    let volumes = list(one(&objects, "DaemonSet").pod().unwrap(), "/volumes");
    let mounted = volumes.iter().filter_map(|volume| volume.get("configMap"));
    let wanted = json!({"name": name, "optional": true});
    assert!(mounted.clone().any(|map| *map == wanted), "{wanted}");
    let rules = list(&one(&objects, "Role").body, "/rules");
    let rule = rules
        .iter()
        .find(|rule| texts(rule, "/resources") == ["configmaps"])
        .unwrap();
    assert_eq!(texts(rule, "/resourceNames"), [name]);
    assert_eq!(texts(rule, "/verbs"), ["get", "patch"]);
}

//! The modules that a module may use.

use std::collections::BTreeSet;

use crate::source::{Named, Source};

/// Each module and the layers below it. `app` composes them and may use all.
const LAYERS: &[(&str, &[&str])] = &[
    // Their types are those of the client, and failures are also those of the cloud.
    ("model", &["ecs"]),
    ("base", &["ecs"]),
    ("linux", &["model", "base"]),
    ("cluster", &["model", "base"]),
    ("disk", &["ecs", "model", "base"]),
    ("node", &["linux", "model", "base"]),
    ("fencing", &["disk", "cluster", "model", "base"]),
    ("csi", &["disk", "node", "cluster", "model", "base"]),
    // Log lines, metrics, histories and traces, from the spans of calls in csi.
    ("telemetry", &["ecs", "csi", "model", "base"]),
    // Settings are parsed into the types of those who need them.
    ("cli", &["model", "base", "ecs", "csi", "telemetry"]),
    // It explains classes with the parser of the driver, in csi. app passes the constructor of the cloud client.
    ("ops", &["cli", "csi", "disk", "cluster", "ecs", "model", "base"]),
    // The pages, which show the state of all others.
    (
        "http",
        &[
            "telemetry",
            "ops",
            "csi",
            "disk",
            "node",
            "ecs",
            "linux",
            "cluster",
            "model",
            "base",
        ],
    ),
    (
        "app",
        &[
            "model",
            "base",
            "ecs",
            "linux",
            "cluster",
            "disk",
            "node",
            "csi",
            "fencing",
            "ops",
            "telemetry",
            "http",
            "cli",
        ],
    ),
    ("main", &["app"]),
    ("bin", &["app"]),
    ("lib", &[]),
];

/// The traits of interfaces. Outside of their modules, only `app` selects an implementation.
const INTERFACES: &[&str] = &["Transport", "Host", "Exec", "CredentialProvider"];

/// The properties of all files that the rules require.
#[derive(Debug)]
pub(crate) struct Layers {
    /// The types of the client and of `linux` that implement an interface.
    implementations: BTreeSet<String>,
}

impl Layers {
    pub(crate) fn of(sources: &[Source]) -> Self {
        let mut implementations = BTreeSet::new();
        for file in sources {
            if ["ecs", "linux"].contains(&file.module()) {
                let types = INTERFACES.iter().flat_map(|interface| file.implementors(interface));
                implementations.extend(types);
            }
        }
        Self { implementations }
    }

    /// The paths that this file must not use, one line each.
    pub(crate) fn violations(&self, file: &Source) -> Vec<String> {
        let Some((_, below)) = LAYERS.iter().find(|(name, _)| *name == file.module()) else {
            return vec![format!("{}: it has no layer", file.path)];
        };
        let named = file.named();
        let modules: BTreeSet<String> = named.iter().filter_map(whole_module).collect();
        let found = named.iter().filter_map(|one| {
            let mut segments = one.segments.clone();
            if modules.contains(&segments[0]) {
                segments.insert(0, "crate".to_owned());
            }
            let reason = self.reason(file, below, &segments)?;
            let path = one.segments.join("::");
            Some(format!("{}:{}: {path}: {reason}", file.path, one.line))
        });
        found.collect()
    }

    /// The reason why a path must not be used.
    fn reason(&self, file: &Source, below: &[&str], segments: &[String]) -> Option<String> {
        let own = file.module();
        let ups = segments.iter().take_while(|part| *part == "super").count();
        if ups > 0 && ups >= file.depth() {
            return Some("use crate instead of super for the root".to_owned());
        }
        let [root, used, rest @ ..] = segments else {
            return None;
        };
        if root == "ecs" && used != "model" && !below.contains(&"ecs") {
            return Some(format!("{own} is not above the client of the cloud"));
        }
        let at_root = root == "crate" || (["main", "bin"].contains(&own) && root == "diskplugin");
        if !at_root || used == own || !used.starts_with(char::is_lowercase) {
            return None;
        }
        if !below.contains(&used.as_str()) {
            return Some(format!("{own} is not above {used}"));
        }
        let is_implementation = rest.last().is_some_and(|name| self.implementations.contains(name));
        (own != "app" && is_implementation).then(|| format!("{own} must use the trait; app selects the implementation"))
    }
}

/// The module that this path imports as a whole.
fn whole_module(named: &Named) -> Option<String> {
    match named.segments.as_slice() {
        [root, module] if root == "crate" => Some(module.clone()),
        [root, module, own] if root == "crate" && own == "self" => Some(module.clone()),
        _ => None,
    }
}

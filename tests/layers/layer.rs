//! Which module may use which.

use std::collections::BTreeSet;

use crate::source::{Named, Source};

/// Each module and what stands below it. `app` composes and may use everything.
const LAYERS: &[(&str, &[&str])] = &[
    // Their types are those of the client, and failures are also those of the cloud.
    ("model", &["ecs"]),
    ("base", &["ecs"]),
    ("linux", &["model", "base"]),
    ("cluster", &["model", "base"]),
    ("disk", &["ecs", "model", "base"]),
    ("node", &["linux", "model", "base"]),
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

/// The traits at the borders. Outside of their own modules only `app` chooses who implements them.
const BORDERS: &[&str] = &["Transport", "Host", "Exec", "CredentialProvider"];

/// What the rules need to know of all files.
#[derive(Debug)]
pub(crate) struct House {
    /// The types of the client and of `linux` that implement a border.
    implementations: BTreeSet<String>,
}

impl House {
    pub(crate) fn survey(sources: &[Source]) -> Self {
        let mut implementations = BTreeSet::new();
        for file in sources {
            if ["ecs", "linux"].contains(&file.module()) {
                let types = BORDERS.iter().flat_map(|border| file.implementors(border));
                implementations.extend(types);
            }
        }
        Self { implementations }
    }

    /// What this file uses and may not, one line each.
    pub(crate) fn refused(&self, file: &Source) -> Vec<String> {
        let Some((_, below)) = LAYERS.iter().find(|(name, _)| *name == file.module()) else {
            return vec![format!("{}: no layer is known for it", file.path)];
        };
        let named = file.named();
        let modules: BTreeSet<String> = named.iter().filter_map(whole_module).collect();
        let found = named.iter().filter_map(|one| {
            let mut segments = one.segments.clone();
            if modules.contains(&segments[0]) {
                segments.insert(0, "crate".to_owned());
            }
            let reason = self.objection(file, below, &segments)?;
            let path = one.segments.join("::");
            Some(format!("{}:{}: {path}: {reason}", file.path, one.line))
        });
        found.collect()
    }

    fn objection(&self, file: &Source, below: &[&str], segments: &[String]) -> Option<String> {
        let own = file.module();
        let ups = segments.iter().take_while(|part| *part == "super").count();
        if ups > 0 && ups >= file.depth() {
            return Some("reaches the root by super: write crate".to_owned());
        }
        let [root, used, rest @ ..] = segments else {
            return None;
        };
        if root == "ecs" && used != "model" && !below.contains(&"ecs") {
            return Some(format!("{own} does not stand above the client of the cloud"));
        }
        let at_root = root == "crate" || (["main", "bin"].contains(&own) && root == "diskplugin");
        if !at_root || used == own || !used.starts_with(char::is_lowercase) {
            return None;
        }
        if !below.contains(&used.as_str()) {
            return Some(format!("{own} does not stand above {used}"));
        }
        let name = rest.last();
        if own != "app" && name.is_some_and(|name| self.implementations.contains(name)) {
            return Some(format!("{own} takes the trait, app chooses who implements it"));
        }
        None
    }
}

/// The module that this brings in under its own name, to be named through it.
fn whole_module(named: &Named) -> Option<String> {
    match named.segments.as_slice() {
        [root, module] if root == "crate" => Some(module.clone()),
        [root, module, own] if root == "crate" && own == "self" => Some(module.clone()),
        _ => None,
    }
}

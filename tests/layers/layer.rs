//! Which module may use which.

use std::collections::BTreeSet;

use crate::source::{Named, Source};

/// Each module and what stands below it. `app` composes and may use everything.
const LAYERS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("base", &[]),
    ("cloud", &["model", "base"]),
    ("host", &["model", "base"]),
    ("cluster", &["model", "base"]),
    ("disk", &["cloud", "model", "base"]),
    ("node", &["host", "model", "base"]),
    ("csi", &["disk", "node", "cluster", "model", "base"]),
    // It explains classes with the parser of the driver, in csi.
    ("ops", &["csi", "disk", "cluster", "model", "base"]),
    ("sim", &["cloud", "host", "model", "base"]),
    (
        "app",
        &[
            "model", "base", "cloud", "host", "cluster", "disk", "node", "csi", "ops", "sim", "cli",
        ],
    ),
    // Settings are parsed into the types of those who need them.
    ("cli", &["model", "base", "cloud", "csi", "ops", "sim"]),
    ("main", &["app", "cli"]),
    ("bin", &["app", "cli"]),
    ("lib", &[]),
];

/// The traits at the borders. Only `app` chooses who implements them.
const BORDERS: &[&str] = &["EcsApi", "Host", "Exec", "CredentialProvider"];

/// What the rules need to know of all files.
#[derive(Debug)]
pub(crate) struct House {
    /// The names by which `cloud` offers its actions and errors.
    contract: BTreeSet<String>,
    /// The types of `cloud` and `host` that implement a border.
    implementations: BTreeSet<String>,
}

impl House {
    pub(crate) fn survey(sources: &[Source]) -> Self {
        let mut contract: BTreeSet<String> = ["EcsApi", "Result", "action", "error"]
            .map(str::to_owned)
            .into();
        let mut implementations = BTreeSet::new();
        for file in sources {
            if file.path == "cloud/mod.rs" {
                contract.extend(file.named().iter().filter_map(reexported));
            }
            if ["cloud", "host"].contains(&file.module()) {
                let types = BORDERS.iter().flat_map(|border| file.implementors(border));
                implementations.extend(types);
            }
        }
        Self {
            contract,
            implementations,
        }
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
            let reason = self.objection(file, below, &segments, one.renamed)?;
            let path = one.segments.join("::");
            Some(format!("{}:{}: {path}: {reason}", file.path, one.line))
        });
        found.collect()
    }

    fn objection(
        &self,
        file: &Source,
        below: &[&str],
        segments: &[String],
        renamed: bool,
    ) -> Option<String> {
        let own = file.module();
        let ups = segments.iter().take_while(|part| *part == "super").count();
        if ups > 0 && ups >= file.depth() {
            return Some("reaches the root by super: write crate".to_owned());
        }
        let [root, used, rest @ ..] = segments else {
            return None;
        };
        let at_root = root == "crate" || (["main", "bin"].contains(&own) && root == "diskplugin");
        if !at_root || used == own || !used.starts_with(char::is_lowercase) {
            return None;
        }
        if !below.contains(&used.as_str()) {
            return Some(format!("{own} does not stand above {used}"));
        }
        let name = rest.last();
        if own != "app" && name.is_some_and(|name| self.implementations.contains(name)) {
            return Some(format!(
                "{own} takes the trait, app chooses who implements it"
            ));
        }
        let first = rest.first().map_or("self", String::as_str);
        if own == "sim" && (renamed && first == "self" || !self.shared_with_sim(used, first)) {
            return Some(format!("sim shares only the contract of {used}"));
        }
        None
    }

    /// The fake may know what is asked and answered, and none of the code that it judges.
    fn shared_with_sim(&self, used: &str, name: &str) -> bool {
        match used {
            // The module as a whole: what is named through it is looked at where it is named.
            _ if name == "self" => true,
            "cloud" => self.contract.contains(name),
            "host" => name == "exec" || name.starts_with(char::is_uppercase),
            _ => true,
        }
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

fn reexported(named: &Named) -> Option<String> {
    let [from, name] = named.segments.as_slice() else {
        return None;
    };
    (from == "action" || from == "error").then(|| name.clone())
}

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
    ("ops", &["disk", "cluster", "model", "base"]),
    ("sim", &["cloud", "host", "model", "base"]),
    (
        "app",
        &[
            "model", "base", "cloud", "host", "cluster", "disk", "node", "csi", "ops", "sim", "cli",
        ],
    ),
    // Settings are parsed into the types of those who need them.
    ("cli", &["model", "base", "cloud", "csi", "sim"]),
    ("main", &["app", "cli"]),
    ("bin", &["app", "cli"]),
    ("lib", &[]),
];

/// The traits at the borders. Only `app` chooses who implements them.
const BORDERS: &[&str] = &["Ecs", "Host", "Exec", "Provide"];

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
        let mut contract: BTreeSet<String> = ["Ecs", "Result", "action", "error"]
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

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(path: &str, text: &str) -> Vec<String> {
        let house = House::survey(&[
            Source::new("cloud/mod.rs", "pub use action::{AttachDisk, Page};"),
            Source::new("cloud/client.rs", "impl Ecs for Client {}"),
            Source::new("host/exec.rs", "impl Exec for Processes {}"),
        ]);
        house.refused(&Source::new(path, text))
    }

    #[test]
    fn a_use_against_the_layers_is_refused_with_its_line() {
        assert_eq!(
            refused("model/size.rs", "//! Doc.\n\nuse crate::base::Clock;"),
            ["model/size.rs:3: crate::base::Clock: model does not stand above base"]
        );
    }

    #[test]
    fn every_way_to_write_a_path_is_seen() {
        for text in [
            "use crate::csi;",
            "use crate::csi::status::Code;",
            "use crate::csi as other;",
            "pub(crate) use crate::csi::*;",
            "use crate::{model::Gib, csi::{self, status}};",
            "fn f(x: crate::csi::Code) {}",
            "fn f() { let _ = g(&[crate::csi::status::CODE]); }",
            "impl From<crate::csi::Code> for X {}",
            "macro_rules! m { () => { $crate::csi::call() }; }",
            "mod inner { use crate::csi::Code; }",
            "#[crate::csi::attribute] fn f() {}",
        ] {
            assert!(!refused("disk/create.rs", text).is_empty(), "{text}");
        }
    }

    #[test]
    fn what_only_looks_like_a_use_is_let_be() {
        for text in [
            "// use crate::csi::Code;",
            "/// See [`crate::csi::Code`].\nfn f() {}",
            "const TEXT: &str = \"crate::csi::Code\";",
            "use crate::cloud::{Ecs, Error};",
            "use crate::disk::slots::Slots;",
            "use super::slots::Slots;",
            "pub(crate) fn f() {}",
        ] {
            assert_eq!(refused("disk/create.rs", text), [""; 0], "{text}");
        }
    }

    #[test]
    fn tests_may_use_what_they_like_but_the_code_behind_them_may_not() {
        let tests = "#[cfg(test)]\n#[path = \"x\"]\nmod tests { use crate::sim::Sim; fn f() {} }\n";
        assert_eq!(refused("disk/create.rs", tests), [""; 0]);
        let behind = format!("{tests}use crate::sim::Sim;");
        assert_eq!(refused("disk/create.rs", &behind).len(), 1);
        let either = "#[cfg(any(test, feature = \"mock-cloud\"))]\nuse crate::sim::Sim;";
        assert_eq!(refused("disk/create.rs", either).len(), 1);
    }

    #[test]
    fn the_root_is_not_reached_by_super() {
        assert_eq!(
            refused("model/size.rs", "use super::super::base::Clock;").len(),
            1
        );
        assert_eq!(refused("model/mod.rs", "use super::base::Clock;").len(), 1);
        assert_eq!(
            refused("cloud/sign/v1.rs", "use super::super::wire;").len(),
            0
        );
    }

    #[test]
    fn only_app_and_its_command_line_use_the_fake_cloud() {
        let text = "use crate::sim::Sim;";
        assert_eq!(refused("app/demo.rs", text), [""; 0]);
        assert_eq!(refused("cli.rs", text), [""; 0]);
        for path in [
            "cloud/client.rs",
            "disk/create.rs",
            "node/stage.rs",
            "csi/mod.rs",
        ] {
            assert_eq!(refused(path, text).len(), 1, "{path}");
        }
    }

    #[test]
    fn the_fake_cloud_shares_the_contract_only() {
        for text in [
            "use crate::cloud::{AttachDisk, Ecs, Page, action::CreateDisk, error::Kind};",
            "use crate::host::{Command, Exec};",
            "use crate::cloud::{self, Ecs};\nfn f() -> cloud::Result<()> { cloud::Page::new() }",
        ] {
            assert_eq!(refused("sim/state.rs", text), [""; 0], "{text}");
        }
        for text in [
            "use crate::cloud as other;",
            "use crate::cloud::{self as other};",
            "use crate::cloud::*;",
            "use crate::cloud;\nfn f() { cloud::sign::v1::sign(); }",
            "use crate::cloud::sign::v1;",
            "use crate::cloud::wire::Disk;",
            "use crate::host::mountinfo::parse;",
            "use crate::host::Processes;",
            "use crate::disk::create;",
            "use crate::node::Plan;",
            "use crate::csi::proto;",
        ] {
            assert_eq!(refused("sim/state.rs", text).len(), 1, "{text}");
        }
    }

    #[test]
    fn who_implements_a_border_is_named_by_app_alone() {
        let text = "use crate::cloud::client::Client;";
        assert_eq!(refused("disk/create.rs", text).len(), 1);
        assert_eq!(refused("app/controller.rs", text), [""; 0]);
        assert_eq!(refused("cloud/retry.rs", text), [""; 0]);
    }

    #[test]
    fn the_program_is_held_by_its_library_name() {
        for program in ["main.rs", "bin/diskplugin-node.rs"] {
            assert_eq!(refused(program, "use diskplugin::cli::Cli;"), [""; 0]);
            assert_eq!(refused(program, "use diskplugin::cloud::Ecs;").len(), 1);
        }
    }

    #[test]
    fn a_module_without_a_layer_is_refused() {
        assert_eq!(
            refused("util/mod.rs", ""),
            ["util/mod.rs: no layer is known for it"]
        );
    }
}

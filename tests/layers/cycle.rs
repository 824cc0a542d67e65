//! Files that import each other, directly or through others.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::Source;

/// The imports of each file, by module path.
#[derive(Debug)]
pub(crate) struct Imports(BTreeMap<Vec<String>, BTreeSet<Vec<String>>>);

impl Imports {
    /// The imports between these files of a crate. A name that a module only re-exports is imported from the file that
    /// defines it.
    pub(crate) fn between<'a>(sources: impl Iterator<Item = &'a Source>) -> Self {
        let files: BTreeMap<_, _> = sources.map(|file| (path(file), file)).collect();
        let edges = files.iter().map(|(from, file)| {
            let named = file.named();
            let own = named.iter().filter(|one| !one.exported);
            let targets = own.filter_map(|one| target(&files, absolute(from, &one.segments)?));
            (from.clone(), targets.filter(|to| to != from).collect())
        });
        Self(edges.collect())
    }

    /// The files of cycles, each with an import of the cycle.
    pub(crate) fn cycles(&self) -> Vec<String> {
        let pairs = self.0.iter().flat_map(|(from, to)| to.iter().map(move |to| (from, to)));
        let back = pairs.filter(|(from, to)| self.reaches(to, from));
        back.map(|(from, to)| format!("{} imports {}", from.join("/"), to.join("/")))
            .collect()
    }

    fn reaches(&self, from: &Vec<String>, to: &Vec<String>) -> bool {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(file) = next.pop() {
            if file == to {
                return true;
            }
            if seen.insert(file) {
                next.extend(self.0.get(file).into_iter().flatten());
            }
        }
        false
    }
}

/// The module path of a file.
fn path(file: &Source) -> Vec<String> {
    let stem = file.path.trim_end_matches(".rs");
    let parts = stem.split('/').filter(|part| *part != "mod");
    parts.map(str::to_owned).collect()
}

/// The path from the crate's root.
fn absolute(from: &[String], segments: &[String]) -> Option<Vec<String>> {
    let ups = segments.iter().take_while(|one| *one == "super").count();
    let base = match segments.first()?.as_str() {
        "crate" => return Some(segments[1..].to_vec()),
        "self" => return Some([from, &segments[1..]].concat()),
        _ => from.get(..from.len().checked_sub(ups)?)?,
    };
    Some([base, &segments[ups..]].concat())
}

/// The file that defines the item of a path, through re-exports.
fn target(files: &BTreeMap<Vec<String>, &Source>, named: Vec<String>) -> Option<Vec<String>> {
    let mut named = named;
    // A re-export leads one level down.
    for _ in 0..8 {
        let known = (1..=named.len()).rev().find(|end| files.contains_key(&named[..*end]))?;
        let module = named[..known].to_vec();
        let Some(name) = named.get(known) else {
            return Some(module);
        };
        let exports = files[&module].named();
        let export = exports
            .iter()
            .find(|one| one.exported && one.segments.last() == Some(name));
        let Some(export) = export else {
            return Some(module);
        };
        let mut through = absolute(&module, &export.segments)?;
        through.extend_from_slice(&named[known + 1..]);
        named = through;
    }
    None
}

//! Codes of the cloud occur only in `crates/ecs/src/code`, which classifies responses.

use std::collections::BTreeSet;

use crate::source::Source;

const FOLDER: &str = "ecs/code/";
const TABLE: &str = "ecs/code/table.rs";

/// The codes in the table.
pub(crate) fn known(sources: &[Source]) -> BTreeSet<String> {
    let table = sources.iter().filter(|file| file.path == TABLE);
    let texts = table.flat_map(|file| file.texts());
    let words = texts.flat_map(|(_, text)| text.split_whitespace());
    words
        .filter(|word| word.starts_with(char::is_uppercase))
        .map(str::to_owned)
        .collect()
}

/// The codes in a file that must not contain them, one line each. Some are also kinds of Kubernetes, which two modules
/// read.
pub(crate) fn violations(file: &Source, known: &BTreeSet<String>) -> Vec<String> {
    let reads_kinds = file.module() == "cluster" || file.path.starts_with("ops/explain/");
    // The fake cloud responds with codes, and does not classify them.
    if file.path.starts_with(FOLDER) || file.path.starts_with("fake-ecs/") || reads_kinds {
        return Vec::new();
    }
    let codes = file.texts().filter(|(_, text)| known.contains(*text));
    let lines = codes.map(|(line, code)| format!("{}:{line}: {code} is classified in crates/ecs/src/code", file.path));
    lines.collect()
}

//! Codes of the cloud are compared only in `crates/ecs/src/code`, where responses are classified.

use std::collections::BTreeSet;

use crate::source::Source;

const PLACE: &str = "ecs/code/";
const TABLE: &str = "ecs/code/table.rs";

/// The codes in the table.
pub(crate) fn known(sources: &[Source]) -> BTreeSet<String> {
    let table = sources.iter().filter(|file| file.path == TABLE);
    let words = table.flat_map(|file| file.texts());
    words
        .flat_map(|(_, text)| text.split_whitespace())
        .filter(|word| word.starts_with(char::is_uppercase))
        .map(str::to_owned)
        .collect()
}

/// The codes that this file names and may not, one line each. Some are also kinds of Kubernetes, which these modules
/// read.
pub(crate) fn refused(file: &Source, known: &BTreeSet<String>) -> Vec<String> {
    let reads_kinds = file.module() == "cluster" || file.path.starts_with("ops/explain/");
    // The fake cloud answers with codes, and judges none.
    if file.path.starts_with(PLACE) || file.path.starts_with("fake-ecs/") || reads_kinds {
        return Vec::new();
    }
    let codes = file.texts().filter(|(_, text)| known.contains(*text));
    codes
        .map(|(line, code)| format!("{}:{line}: {code} is judged in crates/ecs/src/code", file.path))
        .collect()
}

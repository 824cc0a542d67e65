//! Rules for files: their length, and words that they must not contain.

use std::path::{Path, PathBuf};

use crate::source::Source;

const MAX_LINES: usize = 400;
/// `max_width` of rustfmt.toml, which does not wrap comments.
const MAX_COLUMNS: usize = 120;

/// Not part of the repository.
const NOT_OWNED: &[&str] = &[
    ".git",
    "target",
    "tests/tools/bin",
    "tests/helm/bin",
    "tests/cluster/bin",
];

/// Split, so that this file does not contain them.
const FORBIDDEN: &[(&str, &str)] = &[
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("/tmp", "/wt"), "a path of one machine"),
    (concat!("to", "do!"), "unfinished work"),
    (concat!("unimple", "mented!"), "unfinished work"),
    (concat!("FIX", "ME"), "unfinished work"),
    (concat!("#[ig", "nore"), "a test that does not run"),
];

/// A text file of the repository.
#[derive(Debug)]
pub(crate) struct Text {
    path: String,
    content: String,
}

impl Text {
    pub(crate) fn is_below(&self, folder: &str) -> bool {
        self.path.starts_with(folder)
    }

    /// The lines that contain one of these words.
    pub(crate) fn lines_with(&self, words: &[&str]) -> Vec<String> {
        let lines = self.content.lines().enumerate();
        let found = lines.filter(|(_, line)| words.iter().any(|word| line.contains(word)));
        found
            .map(|(index, line)| format!("{}:{}: {}", self.path, index + 1, line.trim()))
            .collect()
    }
}

/// The error for a file that is too long.
pub(crate) fn too_long(file: &Source) -> Option<String> {
    let lines = file.plain_lines;
    (lines > MAX_LINES).then(|| format!("{}: {lines} lines without its tests", file.path))
}

/// The comments that are wider than code may be.
pub(crate) fn wide_comments(text: &Text) -> Vec<String> {
    let lines = text.content.lines().enumerate().filter(|_| text.path.ends_with(".rs"));
    let wide = lines.filter(|(_, line)| line.trim_start().starts_with("//") && line.chars().count() > MAX_COLUMNS);
    let wide = wide.map(|(index, _)| format!("{}:{}: more than {MAX_COLUMNS} columns", text.path, index + 1));
    wide.collect()
}

/// The upper median; 0 for nothing.
pub(crate) fn median(mut numbers: Vec<usize>) -> usize {
    numbers.sort_unstable();
    numbers.get(numbers.len() / 2).copied().unwrap_or(0)
}

/// Every text file of the repository.
pub(crate) fn texts() -> Vec<Text> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = under(root).into_iter();
    let texts: Vec<Text> = files
        .filter_map(|path| {
            let content = String::from_utf8(std::fs::read(&path).ok()?).ok()?;
            let path = path.strip_prefix(root).ok()?.display().to_string();
            Some(Text { path, content })
        })
        .collect();
    assert!(texts.iter().any(|text| text.path == "Cargo.toml"), "files are missing");
    texts
}

/// The forbidden words in this text, one line each.
pub(crate) fn forbidden(text: &Text) -> Vec<String> {
    let lines = text.content.lines().enumerate();
    lines
        .flat_map(|(index, line)| {
            let found = FORBIDDEN.iter().filter(move |(word, _)| line.contains(word));
            found.map(move |(word, what)| format!("{}:{}: {word}: {what}", text.path, index + 1))
        })
        .collect()
}

/// Every file below a folder, in a stable order; links are not followed.
pub(crate) fn under(folder: &Path) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    let entries =
        std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{} is not readable: {error}", folder.display()));
    for entry in entries {
        let entry = entry.expect("the folder can be read");
        let kind = entry.file_type().expect("an entry has a type");
        if NOT_OWNED.iter().any(|path| entry.path() == root.join(path)) {
            continue;
        }
        if kind.is_dir() {
            files.extend(under(&entry.path()));
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    files
}

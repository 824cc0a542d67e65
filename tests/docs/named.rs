//! Files, anchors and make targets that a page names exist.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::page::{Page, markdown, page, pages, read, root};
use crate::report;

/// Folders of the repository, which identify a path in the text.
const FOLDERS: [&str; 11] = [
    "src", "crates", "tests", "benches", "docs", "examples", "proto", "scripts", "deploy", ".ci", "target",
];

/// Endings that identify a file of the repository.
const ENDINGS: [&str; 5] = ["rs", "md", "proto", "lock", "toml"];

#[test]
fn every_relative_link_leads_to_a_file_and_its_anchor() {
    report(markdown().iter().flat_map(dead_links));
}

#[test]
fn every_path_that_a_page_names_exists() {
    report(pages().iter().flat_map(missing_paths));
}

#[test]
fn every_make_target_that_a_page_names_exists() {
    let targets = targets(&read("Makefile"));
    report(pages().iter().flat_map(|page| missing_targets(page, &targets)));
}

fn dead_links(page: &Page) -> Vec<String> {
    let from = page.path.display();
    let folder = page.path.parent().unwrap_or(Path::new(""));
    let is_elsewhere = |link: &&String| link.contains("://") || link.starts_with("mailto:");
    let inner = page.links.iter().filter(|link| !is_elsewhere(link));
    inner
        .filter_map(|link| {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => page.path.clone(),
                path => normal(&folder.join(path)),
            };
            if !root().join(&target).exists() {
                return Some(format!("{from}: {link} does not exist"));
            }
            let known = anchor.is_empty() || {
                let target = crate::page::page(&target);
                target.anchors.iter().any(|known| known == anchor)
            };
            (!known).then(|| format!("{from}: {link} has no heading"))
        })
        .collect()
}

/// Without `..`, which links may contain.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            normal.pop();
        } else {
            normal.push(part);
        }
    }
    normal
}

/// In a row of a table or a sentence, `src/linux/` is followed by `device.rs`: a name without a folder is a file of the
/// last folder.
fn missing_paths(page: &Page) -> Vec<String> {
    let mut folder = PathBuf::new();
    let mut missing = Vec::new();
    for span in &page.spans {
        let path = Path::new(span.as_str());
        let first = path.components().next().map(|part| part.as_os_str());
        let in_folder = span.contains('/') && FOLDERS.iter().any(|f| first == Some(f.as_ref()));
        let kind = path.extension().and_then(|kind| kind.to_str());
        let is_file = kind.is_some_and(|kind| ENDINGS.contains(&kind));
        if span.contains(char::is_whitespace) || !(in_folder || is_file) {
            continue;
        }
        let found = root().join(path).exists() || (!span.contains('/') && root().join(&folder).join(path).exists());
        if in_folder {
            folder = match is_file {
                true => path.parent().unwrap_or(path).to_owned(),
                false => path.to_owned(),
            };
        }
        if !found && first != Some("target".as_ref()) {
            missing.push(format!("{}: {span} does not exist", page.path.display()));
        }
    }
    missing
}

/// Files that a command of a page applies or installs. Commands are run in the root of the repository.
#[test]
fn every_path_in_a_command_of_a_guide_exists() {
    report(pages().iter().flat_map(|page| {
        let text = page.blocks.iter().filter(|block| block.language == "text");
        let words = text.flat_map(|block| block.text.split(|c: char| c.is_whitespace() || "\"()".contains(c)));
        let paths = words.filter(|word| ["examples/", "deploy/"].iter().any(|folder| word.starts_with(folder)));
        let missing = paths.filter(|path| !root().join(path).exists());
        missing
            .map(|path| format!("{}: {path} does not exist", page.path.display()))
            .collect::<Vec<_>>()
    }));
}

/// A command in the line of the fence is not shown.
#[test]
fn the_language_of_a_block_is_one_word() {
    report(markdown().iter().flat_map(|page| {
        let joined = page.blocks.iter().filter(|b| b.language.contains(' '));
        joined.map(|b| format!("{}: {}", page.path.display(), b.language))
    }));
}

/// A prompt distinguishes commands from output. Without output the block must be suitable for pasting.
#[test]
fn blocks_without_output_have_no_prompts() {
    report(markdown().iter().flat_map(|page| {
        let text = page.blocks.iter().filter(|block| block.language == "text");
        let lines = text.flat_map(|block| block.text.lines());
        let prompts = lines.filter(|line| line.starts_with("$ ") || line.starts_with("> "));
        let wrong = prompts.map(|line| format!("{}: a prompt: {line}", page.path.display()));
        wrong.collect::<Vec<_>>()
    }));
}

fn targets(makefile: &str) -> BTreeSet<String> {
    let rules = makefile.lines().filter(|line| !line.starts_with(['\t', '#', '.']));
    let names = rules.filter_map(|line| line.split_once(':'));
    names
        .map(|(name, _)| name.trim().to_owned())
        .filter(|name| !name.contains(' '))
        .collect()
}

fn missing_targets(page: &Page, targets: &BTreeSet<String>) -> Vec<String> {
    let lines = page.blocks.iter().flat_map(|block| block.text.lines());
    let lines = lines.chain(page.spans.iter().map(String::as_str));
    let named = lines.filter_map(|line| line.trim_start_matches("$ ").strip_prefix("make "));
    let named = named.filter_map(|rest| rest.split_whitespace().next());
    named
        .filter(|name| !targets.contains(*name))
        .map(|name| format!("{}: make {name} does not exist", page.path.display()))
        .collect()
}

#[test]
fn a_dead_link_a_missing_path_and_an_unknown_target_are_found() {
    let text = "[a](nowhere.md) [b](README.md#nowhere) [c](README.md) `src/nothing.rs` `src/linux/` \
         `nothing.rs` `device.rs` `make nothing` `make demo`";
    let page = Page::read(Path::new("made-up.md"), text);
    assert_eq!(dead_links(&page).len(), 2);
    assert_eq!(missing_paths(&page).len(), 2, "{:?}", missing_paths(&page));
    assert_eq!(missing_targets(&page, &targets(&read("Makefile"))).len(), 1);
}

#[test]
fn the_readme_is_one_page() {
    let lines = page("README.md").text.lines().count();
    assert!(lines <= 100, "README.md has {lines} lines");
}

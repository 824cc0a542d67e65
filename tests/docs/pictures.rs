//! The pages' pictures. `scripts/pictures/draw` makes those in `docs/pictures`.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::page::{files_below, markdown, read, root};
use crate::report;

#[test]
fn every_picture_is_an_svg_or_png_below_200_kb_with_an_alternative_text() {
    let mut names = BTreeSet::new();
    for page in markdown() {
        let lines = page
            .text
            .lines()
            .filter_map(|line| line.strip_prefix("![")?.strip_suffix(')'));
        for (alternative, path) in lines.filter_map(|line| line.split_once("](")) {
            let path = page.path.parent().unwrap_or(Path::new("")).join(path);
            let bytes = std::fs::read(root().join(&path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let is_svg = bytes.starts_with(b"<svg ") && bytes.ends_with(b"</svg>\n");
            assert!(is_svg || bytes.starts_with(b"\x89PNG\r\n"), "{}", path.display());
            assert!(bytes.len() < 200_000, "{}: {} bytes", path.display(), bytes.len());
            assert!(alternative.contains(' '), "{}: {alternative:?}", path.display());
            names.extend(path.file_name().map(|name| name.display().to_string()));
        }
    }
    let unused = std::fs::read_dir(root().join("docs/pictures")).unwrap();
    let unused = unused.map(|entry| entry.unwrap().file_name().display().to_string());
    report(unused.filter(|name| !names.contains(name)));
}

#[test]
fn the_pictures_have_the_parts_of_what_they_show() {
    let between = |text: &str, start: &str, end: &str| -> Vec<String> {
        let found = text.split(start).skip(1).filter_map(|rest| rest.split_once(end));
        found.map(|(found, _)| found.to_owned()).collect()
    };
    let steps = between(&read("src/app/demo/steps.rs"), "show.step(\"", "\"");
    // Without the head of the table.
    let headings = between(&read("docs/guides/status-page.md"), "\n| ", " |").split_off(2);
    let mut parts = vec![("demo.svg".to_owned(), steps), ("status-page.png".to_owned(), headings)];
    for file in files_below("deploy/helm/diskplugin/files/dashboards", "json") {
        let board: Value = serde_json::from_str(&read(&file)).unwrap();
        let panels = board["panels"].as_array().unwrap().iter();
        let titles = panels.map(|panel| format!(">{}</text>", panel["title"].as_str().unwrap()));
        let name = format!("dashboard-{}.svg", file.file_stem().unwrap().display());
        parts.push((name, titles.collect()));
    }
    for (name, parts) in parts {
        assert!(parts.len() > 7, "{name}: {parts:?}");
        let picture = std::fs::read(root().join("docs/pictures").join(&name)).unwrap();
        let picture = String::from_utf8_lossy(&picture);
        let missing = parts.iter().filter(|part| !picture.contains(*part));
        report(missing.map(|part| format!("{name} lacks {part}: run scripts/pictures/draw")));
    }
}

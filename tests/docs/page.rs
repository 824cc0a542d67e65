//! A page, as Markdown is read.

use std::path::{Path, PathBuf};

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// A page and the parts that the tests check.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// From the root of the repository.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    /// Code within a line.
    pub(crate) spans: Vec<String>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) links: Vec<String>,
    /// The anchors of the headings.
    pub(crate) anchors: Vec<String>,
    /// The same, without the numbers of repeated headings.
    heads: Vec<String>,
}

/// A block of code.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub(crate) language: String,
    pub(crate) text: String,
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every page for users and contributors.
pub(crate) fn pages() -> Vec<Page> {
    let own = [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "crates/ecs/README.md",
        "crates/fake-ecs/README.md",
    ];
    let paths = own.into_iter().map(PathBuf::from).chain(files_below("docs", "md"));
    paths.map(page).collect()
}

/// Every Markdown file of the repository.
pub(crate) fn markdown() -> Vec<Page> {
    let entries = std::fs::read_dir(root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let own = entries.filter(|name| name != "target" && name != ".git");
    let paths: Vec<_> = own.flat_map(|name| files_below(name, "md")).collect();
    assert!(paths.len() > 40, "files are missing: {paths:?}");
    paths.iter().map(page).collect()
}

/// The files with this ending below a folder, or the file of this name, as paths from the root of the repository.
pub(crate) fn files_below(path: impl AsRef<Path>, ending: &str) -> Vec<PathBuf> {
    let path = path.as_ref();
    if !root().join(path).is_dir() {
        let is_kind = path.extension().is_some_and(|found| found == ending);
        return Vec::from_iter(is_kind.then(|| path.to_owned()));
    }
    let entries = std::fs::read_dir(root().join(path)).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    let paths = names.into_iter().flat_map(|name| files_below(path.join(name), ending));
    paths.collect()
}

pub(crate) fn page(path: impl AsRef<Path>) -> Page {
    let path = path.as_ref();
    Page::read(path, &read(path))
}

/// A file of the repository.
pub(crate) fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

impl Page {
    pub(crate) fn read(path: &Path, text: &str) -> Self {
        let mut page = Self {
            path: path.to_owned(),
            text: text.to_owned(),
            ..Self::default()
        };
        let (mut block, mut heading) = (None::<Block>, None::<String>);
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                    block = Some(Block {
                        language: language.to_string(),
                        text: String::new(),
                    });
                }
                Event::End(TagEnd::CodeBlock) => page.blocks.extend(block.take()),
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let found = heading.take().map(|heading| anchor(&heading));
                    // A repeated heading gets a number.
                    let found = found.map(|found| match page.heads.iter().filter(|h| **h == found).count() {
                        0 => (found.clone(), found),
                        count => (format!("{found}-{count}"), found),
                    });
                    if let Some((anchor, head)) = found {
                        page.anchors.push(anchor);
                        page.heads.push(head);
                    }
                }
                Event::Start(Tag::Link { dest_url, .. }) => page.links.push(dest_url.to_string()),
                Event::Text(text) => match (&mut block, &mut heading) {
                    (Some(block), _) => block.text.push_str(&text),
                    (None, Some(heading)) => heading.push_str(&text),
                    (None, None) => {}
                },
                Event::Code(code) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&code);
                    }
                    page.spans.push(code.to_string());
                }
                _ => {}
            }
        }
        page
    }

    pub(crate) fn has_span(&self, text: &str) -> bool {
        self.spans.iter().any(|span| span == text)
    }
}

/// The anchor that code hosts give a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars();
    let kept = kept.filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn a_page_has_spans_blocks_links_and_anchors() {
    let text = "# The `a` b's\n[x](y.md#z) and `src/lib.rs`\n```sh\nmake it\n```\n## The a bs\n## Other\n";
    let page = Page::read(Path::new("p.md"), text);
    assert_eq!(page.anchors, ["the-a-bs", "the-a-bs-1", "other"]);
    assert_eq!(page.links, ["y.md#z"]);
    assert_eq!(page.spans, ["a", "src/lib.rs"]);
    assert_eq!(page.blocks[0].language, "sh");
    assert_eq!(page.blocks[0].text, "make it\n");
}

/// A list item in lines of at most 120 columns; all but the first one are indented.
pub(crate) fn list_item(item: &str) -> String {
    let mut lines = vec![String::new()];
    for word in item.split(' ') {
        let line = lines.last_mut().expect("there is a line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.len() + 1 + word.len() <= 120 {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(format!("  {word}"));
        }
    }
    lines.join("\n")
}

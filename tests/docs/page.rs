//! A page, as Markdown is read.

use std::path::{Path, PathBuf};

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// A page and what the tests look at in it.
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
    /// The same, before those that read alike were counted.
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

/// Every page that users and contributors read.
pub(crate) fn pages() -> Vec<Page> {
    let mut paths: Vec<PathBuf> = [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "crates/ecs/README.md",
        "crates/fake-ecs/README.md",
    ]
    .iter()
    .map(PathBuf::from)
    .collect();
    collect(Path::new("docs"), &mut paths);
    assert!(paths.len() > 5, "the walk misses pages: {paths:?}");
    paths.iter().map(page).collect()
}

/// Every Markdown file of the repository.
pub(crate) fn markdown() -> Vec<Page> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(root()).unwrap() {
        let entry = entry.unwrap();
        let name = PathBuf::from(entry.file_name());
        let made = ["target", ".git"].iter().any(|made| name == Path::new(made));
        if entry.file_type().unwrap().is_dir() {
            if !made {
                collect(&name, &mut paths);
            }
        } else if name.extension().is_some_and(|kind| kind == "md") {
            paths.push(name);
        }
    }
    assert!(paths.len() > 40, "the walk misses files: {paths:?}");
    paths.iter().map(page).collect()
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

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(root().join(folder)).unwrap();
    let mut entries: Vec<_> = entries.map(|entry| entry.unwrap()).collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = folder.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|kind| kind == "md") {
            paths.push(path);
        }
    }
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
                    // Of two headings that read alike, the second one is counted.
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
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn a_page_is_read_for_spans_blocks_links_and_anchors() {
    let text = "# The `a` b's\n[x](y.md#z) and `src/lib.rs`\n```sh\nmake it\n```\n## The a bs\n## Other\n";
    let page = Page::read(Path::new("p.md"), text);
    assert_eq!(page.anchors, ["the-a-bs", "the-a-bs-1", "other"]);
    assert_eq!(page.links, ["y.md#z"]);
    assert_eq!(page.spans, ["a", "src/lib.rs"]);
    assert_eq!(page.blocks[0].language, "sh");
    assert_eq!(page.blocks[0].text, "make it\n");
}

/// A list item with lines of at most 120 columns, of which the further ones are indented.
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

//! The paths that a source file names.

use std::path::Path;

use proc_macro2::{Spacing, TokenStream, TokenTree};

/// A source file of a crate.
#[derive(Debug)]
pub(crate) struct Source {
    /// Relative to the sources of its crate, with slashes.
    pub(crate) path: String,
    /// All lines.
    pub(crate) lines: usize,
    /// The lines outside `#[cfg(test)]`.
    pub(crate) plain_lines: usize,
    /// The tokens outside `#[cfg(test)]`.
    tokens: Vec<Token>,
}

/// A path as written, groups resolved: `use a::{b, c::d}` names `a::b` and `a::c::d`.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) line: usize,
    pub(crate) segments: Vec<String>,
    /// Whether it is re-exported by `pub use`.
    pub(crate) exported: bool,
}

#[derive(Debug, Clone)]
struct Token {
    text: String,
    line: usize,
}

impl Source {
    /// The files of the driver, except modules that contain only tests.
    pub(crate) fn all() -> Vec<Self> {
        Self::under("src")
    }

    /// The files of all crates. A path of another crate than the driver begins with the name of the crate.
    pub(crate) fn of_all_crates() -> Vec<Self> {
        let mut found = Self::all();
        for name in ["ecs", "fake-ecs"] {
            for mut file in Self::under(&format!("crates/{name}/src")) {
                file.path = format!("{name}/{}", file.path);
                found.push(file);
            }
        }
        found
    }

    pub(crate) fn under(folder: &str) -> Vec<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let mut found = Vec::new();
        let mut test_only = Vec::new();
        for path in crate::files::under(&root) {
            let Some(name) = relative(&root, &path).filter(|name| name.ends_with(".rs")) else {
                continue;
            };
            let text = std::fs::read_to_string(&path).expect("a source file is readable text");
            let (source, tests) = Self::split(&name, &text);
            test_only.extend(tests);
            found.push(source);
        }
        assert!(!found.is_empty(), "no source under {}", root.display());
        found.retain(|file| !test_only.iter().any(|tests| file.is_part_of(tests)));
        found
    }

    /// The file, and the modules in other files that it declares for tests only.
    fn split(path: &str, text: &str) -> (Self, Vec<String>) {
        let stream: TokenStream = text
            .parse()
            .unwrap_or_else(|error| panic!("{path} does not parse: {error}"));
        let mut all = Vec::new();
        flatten(stream, &mut all);
        let (mut tokens, mut tests, mut test_lines) = (Vec::new(), Vec::new(), 0);
        let mut at = 0;
        while at < all.len() {
            if is_test_attribute(&all[at..]) {
                let end = end_of_item(&all, at);
                test_lines += all[end].line - all[at].line + 1;
                tests.extend(declared_module(&all[at..=end]).map(|name| beside(path, name)));
                at = end + 1;
            } else {
                tokens.push(all[at].clone());
                at += 1;
            }
        }
        let lines = text.lines().count();
        let source = Self {
            path: path.to_owned(),
            lines,
            plain_lines: lines - test_lines,
            tokens,
        };
        (source, tests)
    }

    /// The top-level module that the file belongs to.
    pub(crate) fn module(&self) -> &str {
        let first = self.path.split('/').next().unwrap_or(&self.path);
        first.trim_end_matches(".rs")
    }

    /// The number of `super` from the file to the root of the crate.
    pub(crate) fn depth(&self) -> usize {
        let parts = self.path.trim_end_matches(".rs").split('/');
        parts.filter(|part| !["mod", "lib", "main"].contains(part)).count()
    }

    /// Whether the file is the module `stem` or lies in it.
    fn is_part_of(&self, stem: &str) -> bool {
        let rest = self.path.strip_prefix(stem);
        rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    }

    /// Every path that the file names.
    pub(crate) fn named(&self) -> Vec<Named> {
        let mut named = Vec::new();
        for at in 0..self.tokens.len() {
            if self.starts_path(at) {
                let before = |back: usize| at.checked_sub(back).map_or("", |at| self.text(at));
                let exported = before(1) == "use" && ["pub", ")"].contains(&before(2));
                let first = named.len();
                self.tree(at, &[], &mut named);
                named[first..]
                    .iter_mut()
                    .for_each(|one: &mut Named| one.exported = exported);
            }
        }
        named
    }

    /// The types that the file implements a trait of this name for.
    pub(crate) fn implementors(&self, of: &str) -> Vec<String> {
        let text = |at: usize| self.text(at);
        (0..self.tokens.len())
            .filter(|&at| text(at) == of && text(at + 1) == "for" && is_name(text(at + 2)))
            .map(|at| text(at + 2).to_owned())
            .collect()
    }

    /// The contents of its string literals, each with its line.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (usize, &str)> {
        self.tokens.iter().filter_map(|token| {
            let text = token.text.strip_prefix("\"\"")?.strip_suffix('"')?;
            Some((token.line, text))
        })
    }

    fn text(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| &token.text)
    }

    fn starts_path(&self, at: usize) -> bool {
        let before = |back: usize| at.checked_sub(back).map_or("", |at| self.text(at));
        let continues = before(1) == "::" && (is_name(before(2)) || before(2) == ">");
        let in_group = before(1) == "::" && before(2) == "use";
        // `pub(in crate::disk)` imports nothing.
        let is_visibility = before(1) == "in" && before(2) == "(";
        is_name(self.text(at))
            && !is_visibility
            && (in_group || !continues)
            && (self.text(at + 1) == "::" || before(1) == "use")
    }

    /// Reads the path or group at `at` and returns its end.
    fn tree(&self, mut at: usize, prefix: &[String], named: &mut Vec<Named>) -> usize {
        let line = self.tokens.get(at).map_or(0, |token| token.line);
        let mut segments = prefix.to_vec();
        loop {
            match self.text(at) {
                "{" => {
                    at += 1;
                    while !["}", ""].contains(&self.text(at)) {
                        at = self.tree(at, &segments, named);
                        while !["}", ",", ""].contains(&self.text(at)) {
                            at += 1;
                        }
                        at += usize::from(self.text(at) == ",");
                    }
                    return at + 1;
                }
                name if is_name(name) || name == "*" => segments.push(name.to_owned()),
                _ => break,
            }
            at += 1;
            if self.text(at) != "::" {
                break;
            }
            at += 1;
        }
        named.push(Named {
            line,
            segments,
            exported: false,
        });
        at
    }
}

fn relative(root: &Path, path: &Path) -> Option<String> {
    let path = path.strip_prefix(root).ok()?.to_str()?;
    Some(path.replace('\\', "/"))
}

/// The stem of the file of `mod name;` in `path`.
fn beside(path: &str, name: &str) -> String {
    let stem = path.trim_end_matches(".rs");
    let (folder, own) = stem.rsplit_once('/').unwrap_or(("", stem));
    let folder = match own {
        "mod" | "lib" | "main" => folder.to_owned(),
        _ => stem.to_owned(),
    };
    format!("{folder}/{name}").trim_start_matches('/').to_owned()
}

fn declared_module(item: &[Token]) -> Option<&str> {
    let [.., keyword, name, end] = item else {
        return None;
    };
    (keyword.text == "mod" && end.text == ";").then_some(name.text.as_str())
}

/// `#[cfg(test)]` or `#[cfg(all(test, …))]`.
fn is_test_attribute(tokens: &[Token]) -> bool {
    let starts = |with: &[&str]| {
        let texts = tokens.iter().map(|token| token.text.as_str());
        texts.take(with.len()).eq(with.iter().copied())
    };
    starts(&["#", "[", "cfg", "(", "test", ")", "]"]) || starts(&["#", "[", "cfg", "(", "all", "(", "test", ","])
}

/// The last token of the item whose first attribute is at `at`.
fn end_of_item(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0_usize;
    let mut in_attribute = false;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        match token.text.as_str() {
            "[" | "(" | "{" => {
                in_attribute |= depth == 0 && index > at && tokens[index - 1].text == "#";
                depth += 1;
            }
            // The end of the enum or match that the item, such as a variant, belongs to.
            "]" | ")" | "}" if depth == 0 => return index - 1,
            "]" | ")" | "}" => {
                depth -= 1;
                if depth == 0 && token.text == "}" && !in_attribute {
                    return index;
                }
                in_attribute &= depth > 0;
            }
            ";" if depth == 0 => return index,
            _ => {}
        }
    }
    tokens.len() - 1
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

fn flatten(stream: TokenStream, out: &mut Vec<Token>) {
    for tree in stream {
        let line = tree.span().start().line;
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    proc_macro2::Delimiter::Brace => ("{", "}"),
                    proc_macro2::Delimiter::Bracket => ("[", "]"),
                    proc_macro2::Delimiter::Parenthesis => ("(", ")"),
                    proc_macro2::Delimiter::None => ("", ""),
                };
                push(out, open, line);
                flatten(group.stream(), out);
                push(out, close, group.span_close().end().line);
            }
            TokenTree::Punct(punct) => {
                let second = out
                    .last()
                    .is_some_and(|last| last.text == ":" && punct.as_char() == ':');
                match out.last_mut() {
                    Some(last) if second => last.text = "::".to_owned(),
                    _ if punct.as_char() == ':' && punct.spacing() == Spacing::Alone => {
                        push(out, " :", line);
                    }
                    _ => push(out, &punct.to_string(), line),
                }
            }
            TokenTree::Ident(name) => push(out, &name.to_string(), line),
            // The quote distinguishes it from a name.
            TokenTree::Literal(literal) => push(out, &format!("\"{literal}"), line),
        }
    }
}

fn push(out: &mut Vec<Token>, text: &str, line: usize) {
    out.push(Token {
        text: text.to_owned(),
        line,
    });
}

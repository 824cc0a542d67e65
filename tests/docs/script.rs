//! The commands of a page and their expected output.
//!
//! A block `sh` is executed as it is. In a block `console`, a line after `$ ` is executed, with continuations after
//! `> `, and the following lines are the expected output: `...` stands for any lines, `[..]` for a part of a line. A
//! command without output in the page can print anything. All blocks of a page are one session.

use crate::page::Page;

/// Lines that this suite does not execute, with the reason.
pub(crate) const ELSEWHERE: &[(&str, &str)] = &[
    (
        "make demo",
        "make test-all runs it; its output is compared with that of diskplugin demo",
    ),
    ("make demo ARGS=--keep", "waits for Ctrl-C; otherwise make demo"),
    ("make test", "runs this suite"),
    ("make sanity", "make test-all runs tests/sanity/run"),
    (
        "make sanity ARGS=--ginkgo.focus=NodeStageVolume",
        "a part of make sanity",
    ),
    (
        "make image",
        "takes minutes; make test-all runs tests/image/run on the image without the driver",
    ),
    ("make image ARCH=arm64", "as make image"),
    (
        "make cluster",
        "waits for Ctrl-C; tests/e2e executes the rest of its page on such a cluster",
    ),
    (
        "export KUBECONFIG=$PWD/target/cluster/kubeconfig PATH=\"$PWD/target/cluster/bin:$PATH\"",
        "is set already where tests/e2e executes the page",
    ),
    ("cargo build --locked", "the program is built already"),
    (
        "go install github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4",
        "make builds the same version",
    ),
    (
        "export PATH=\"$PWD/target/debug:$(go env GOPATH)/bin:$PATH\"",
        "both programs are on PATH already",
    ),
    ("export PROTO=\"$PWD/proto\"", "is set already"),
];

/// Replaces a line whose output is in the page.
const STAND_IN: (&str, &str) = ("make demo", "diskplugin demo");

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) typed: String,
    /// The expected output; empty if any is accepted.
    pub(crate) shown: Vec<String>,
}

/// The session of a page, without the lines of `ELSEWHERE`.
pub(crate) fn session(page: &Page) -> Vec<Step> {
    let mut steps = Vec::new();
    for block in &page.blocks {
        match block.language.as_str() {
            "sh" => {
                let lines = block.text.lines().filter(|line| !is_elsewhere(line));
                let typed = lines.collect::<Vec<_>>().join("\n");
                steps.push(Step {
                    typed,
                    shown: Vec::new(),
                });
            }
            "console" => steps.extend(console(&block.text)),
            _ => {}
        }
    }
    steps.retain(|step| !step.typed.trim().is_empty());
    for step in &mut steps {
        if step.typed == STAND_IN.0 && !step.shown.is_empty() {
            STAND_IN.1.clone_into(&mut step.typed);
        }
    }
    steps.retain(|step| !is_elsewhere(&step.typed));
    steps
}

fn is_elsewhere(line: &str) -> bool {
    ELSEWHERE.iter().any(|(known, _)| *known == line)
}

fn console(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in text.lines() {
        if let Some(typed) = line.strip_prefix("$ ") {
            steps.push(Step {
                typed: typed.to_owned(),
                shown: Vec::new(),
            });
            continue;
        }
        let step = steps.last_mut().expect("a block console begins with $");
        match line.strip_prefix("> ") {
            Some(more) if step.shown.is_empty() => {
                step.typed.push('\n');
                step.typed.push_str(more);
            }
            _ => step.shown.push(line.to_owned()),
        }
    }
    steps
}

/// Whether the output is the expected one.
pub(crate) fn agrees(shown: &[String], happened: &[&str]) -> bool {
    match (shown, happened) {
        ([], happened) => happened.iter().all(|line| line.trim().is_empty()),
        ([elision, rest @ ..], _) if elision == "..." => {
            (0..=happened.len()).any(|skip| agrees(rest, &happened[skip..]))
        }
        ([first, shown @ ..], [line, happened @ ..]) => {
            line_agrees(first.trim_end(), line.trim_end()) && agrees(shown, happened)
        }
        (_, []) => false,
    }
}

fn line_agrees(shown: &str, line: &str) -> bool {
    let Some((before, after)) = shown.split_once("[..]") else {
        return shown == line;
    };
    let Some(rest) = line.strip_prefix(before) else {
        return false;
    };
    let mut starts = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    starts.any(|at| line_agrees(after, &rest[at..]))
}

#[test]
fn elisions_match_lines_and_parts_of_lines() {
    let shown = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let happened = ["one", "two 2", "three"];
    for good in ["one\ntwo 2\nthree", "...\nthree", "one\n...", "one\ntwo [..]\nthree"] {
        assert!(agrees(&shown(good), &happened), "{good}");
    }
    for bad in [
        "",
        "one",
        "two 2\nthree",
        "one\n[..]",
        "...\nfour",
        "one\ntwo[..]3\nthree",
    ] {
        assert!(!agrees(&shown(bad), &happened), "{bad}");
    }
}

#[test]
fn a_console_block_has_commands_and_their_output() {
    let steps = console("$ a \\\n>   b\nx\n> y\n$ c\n");
    assert_eq!(steps.len(), 2);
    assert_eq!(steps[0].typed, "a \\\n  b");
    assert_eq!(steps[0].shown, ["x", "> y"]);
    assert!(steps[1].shown.is_empty());
}

//! The commands of a page and their expected output.
//!
//! A block `sh` is executed as it is. In a block `console`, a line after `$ ` is executed, with continuations after
//! `> `, and the following lines are the expected output: `...` stands for any lines, `[..]` for a part of a line. A
//! command without output in the page can print anything. All blocks of a page are one session.

use crate::page::Page;

/// Lines that this suite does not execute.
pub(crate) const ELSEWHERE: &[&str] = &[
    // make test-all runs it, and its output is compared with that of diskplugin demo.
    "make demo",
    // Waits for Ctrl-C; otherwise make demo.
    "make demo ARGS=--keep",
    // Runs this suite.
    "make test",
    // make test-all runs tests/sanity/run.
    "make sanity",
    "make sanity ARGS=--ginkgo.focus=NodeStageVolume",
    // Takes minutes; make test-all runs tests/image/run on the image without the driver.
    "make image",
    "make image ARCH=arm64",
    // Waits for Ctrl-C; tests/e2e executes the rest of its page on such a cluster, with these variables.
    "make cluster",
    "export KUBECONFIG=$PWD/target/cluster/kubeconfig PATH=\"$PWD/target/cluster/bin:$PATH\"",
    // Both programs are built already, make builds the same version of grpcurl, and the variables are set.
    "cargo build --locked",
    "go install github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4",
    "export PATH=\"$PWD/target/debug:$(go env GOPATH)/bin:$PATH\"",
    "export PROTO=\"$PWD/proto\"",
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
                steps.push(Step::of(&lines.collect::<Vec<_>>().join("\n")));
            }
            "console" => steps.extend(console(&block.text)),
            _ => {}
        }
    }
    for step in &mut steps {
        if step.typed == STAND_IN.0 && !step.shown.is_empty() {
            STAND_IN.1.clone_into(&mut step.typed);
        }
    }
    steps.retain(|step| !step.typed.trim().is_empty() && !is_elsewhere(&step.typed));
    steps
}

impl Step {
    fn of(typed: &str) -> Self {
        Self {
            typed: typed.to_owned(),
            shown: Vec::new(),
        }
    }
}

/// A script that executes the commands, each followed by a mark.
pub(crate) fn script<'a>(commands: impl IntoIterator<Item = &'a str>) -> String {
    let commands = commands.into_iter().enumerate();
    let steps = commands.map(|(index, typed)| format!("{typed}\nprintf '{}'\n", mark(index).replace('\n', "\\n")));
    steps.collect()
}

/// The steps that failed or whose output is not the expected one.
pub(crate) fn mismatches(page: &Page, steps: &[Step], printed: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut rest = printed;
    for (index, step) in steps.iter().enumerate() {
        let (name, typed) = (page.path.display(), &step.typed);
        let Some((output, after)) = rest.split_once(&mark(index)) else {
            wrong.push(format!("{name}: {typed}\nfailed or did not end:\n{rest}"));
            break;
        };
        rest = after;
        let lines: Vec<&str> = output.lines().collect();
        if !step.shown.is_empty() && !agrees(&step.shown, &lines) {
            let shown = step.shown.join("\n");
            wrong.push(format!("{name}: {typed}\nexpected:\n{shown}\nprinted:\n{output}"));
        }
    }
    wrong
}

fn mark(step: usize) -> String {
    format!("\n--- end of step {step} ---\n")
}

fn is_elsewhere(line: &str) -> bool {
    ELSEWHERE.contains(&line)
}

fn console(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in text.lines() {
        if let Some(typed) = line.strip_prefix("$ ") {
            steps.push(Step::of(typed));
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
fn agrees(shown: &[String], printed: &[&str]) -> bool {
    match (shown, printed) {
        ([], printed) => printed.iter().all(|line| line.trim().is_empty()),
        ([elision, rest @ ..], _) if elision == "..." => (0..=printed.len()).any(|skip| agrees(rest, &printed[skip..])),
        ([first, shown @ ..], [line, printed @ ..]) => {
            line_agrees(first.trim_end(), line.trim_end()) && agrees(shown, printed)
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
    let printed = ["one", "two 2", "three"];
    for good in ["one\ntwo 2\nthree", "...\nthree", "one\n...", "one\ntwo [..]\nthree"] {
        assert!(agrees(&shown(good), &printed), "{good}");
    }
    for bad in [
        "",
        "one",
        "two 2\nthree",
        "one\n[..]",
        "...\nfour",
        "one\ntwo[..]3\nthree",
    ] {
        assert!(!agrees(&shown(bad), &printed), "{bad}");
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

//! The tutorial, typed as it stands.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use crate::common::wait::until;
use crate::page::page;
use crate::program::tied;
use crate::scene::Scene;
use crate::script::{agrees, session};
use crate::stay;

const PAGE: &str = "docs/tutorials/cluster.md";
/// More than all waits of the page together.
const LONGEST: Duration = Duration::from_mins(16);

/// Whoever types what the page says sees what it shows.
pub(crate) async fn as_written(scene: &Scene<'_>) {
    let steps = session(&page(PAGE));
    assert!(steps.len() > 15, "the page has lost its steps: {steps:?}");
    let directory = scene.cluster.plane.directory("tutorial");
    let mut script = String::from("set -eu\nexec 2>&1\n");
    for (number, step) in steps.iter().enumerate() {
        write!(
            script,
            "{}\nprintf '{}'\n",
            step.typed,
            mark(number).replace('\n', "\\n")
        )
        .unwrap();
    }
    std::fs::write(directory.join("session.sh"), script).unwrap();
    let bin = stay::bin(&scene.cluster.worker.directory);
    let path = std::env::var("PATH").unwrap();
    let kubeconfig = stay::kubeconfig(scene.cluster, &scene.cluster.plane.server);
    let start = tied(Path::new("bash"))
        .args(["-c", "cd \"$0\" && exec bash session.sh"])
        .args([directory.display().to_string()])
        .env("PATH", format!("{}:{path}", bin.display()))
        .env("HOME", &directory)
        .env("KUBECONFIG", kubeconfig);
    let mut process = start.spawn();
    // Each of its waits is bounded.
    until("the tutorial ends", LONGEST, async || process.is_over().then_some(())).await;
    let printed = process.stdout();
    let mut rest = printed.as_str();
    for (number, step) in steps.iter().enumerate() {
        let (happened, after) = rest
            .split_once(&mark(number))
            .unwrap_or_else(|| panic!("{PAGE}: {}\nfailed or did not end:\n{rest}", step.typed));
        rest = after;
        let lines: Vec<&str> = happened.lines().collect();
        assert!(
            step.shown.is_empty() || agrees(&step.shown, &lines),
            "{PAGE}: {}\nshows:\n{}\nbut:\n{happened}",
            step.typed,
            step.shown.join("\n"),
        );
    }
}

fn mark(step: usize) -> String {
    format!("\n--- end of step {step} ---\n")
}

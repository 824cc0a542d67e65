//! The commands of the tutorial on a cluster.

use std::path::Path;
use std::time::Duration;

use crate::common::wait::until;
use crate::page::page;
use crate::program::tied;
use crate::scene::Scene;
use crate::script::{mismatches, script, session};
use crate::stay;

const PAGE: &str = "docs/tutorials/cluster.md";
/// Longer than all waits of the page together.
const TIMEOUT: Duration = Duration::from_mins(16);

/// The commands of the page print its output.
pub(crate) async fn as_written(scene: &Scene<'_>) {
    let page = page(PAGE);
    let steps = session(&page);
    assert!(steps.len() > 15, "steps are missing: {steps:?}");
    let directory = scene.cluster.plane.directory("tutorial");
    let commands = script(steps.iter().map(|step| step.typed.as_str()));
    std::fs::write(directory.join("session.sh"), format!("set -eu\nexec 2>&1\n{commands}")).unwrap();
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
    // Each of its waits has a timeout.
    until("the tutorial ends", TIMEOUT, async || process.is_over().then_some(())).await;
    let wrong = mismatches(&page, &steps, &process.stdout());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

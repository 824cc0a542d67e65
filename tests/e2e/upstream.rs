//! Kubernetes' storage suite for drivers, External.Storage, on this cluster. `upstream/driver.yaml` describes the
//! driver, and `upstream/run.yaml` selects specs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use serde::Deserialize;
use tokio::runtime::Builder;

use crate::cluster::Cluster;
use crate::common::machine::can_resize_mounted_ext;
use crate::common::process::Start;
use crate::common::wait::until;
use crate::images::{self, target};
use crate::program::{built, tied};
use crate::report::{self, Report, Spec};
use crate::scene::Scene;
use crate::stay;

/// The argument that selects the whole suite. Further arguments are regular expressions that select specs by name.
pub(crate) const WORD: &str = "upstream";
/// If fewer specs pass, capabilities of the driver are missing in `driver.yaml`.
const MIN_PASSED: usize = 120;
/// Timeout of the chosen specs on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(10);

/// The selection of specs.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Plan {
    /// A part of the names of all specs for a driver.
    pub(crate) focus: String,
    pub(crate) left_out: Vec<LeftOut>,
    grow_mounted_ext4: Vec<String>,
    chosen: Vec<String>,
    at_once: u32,
}

/// Specs that cannot run on this cluster.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LeftOut {
    /// A part of their names.
    pub(crate) specs: String,
    pub(crate) because: String,
}

impl Plan {
    fn read() -> Self {
        let text = std::fs::read_to_string(file("run.yaml")).expect("a file of the repository");
        serde_saphyr::from_str(&text).expect("the file is valid")
    }

    /// Parts of the names of specs that this machine cannot run.
    pub(crate) fn beyond_this_machine(&self) -> &[String] {
        if can_resize_mounted_ext() {
            &[]
        } else {
            &self.grow_mounted_ext4
        }
    }

    /// The regular expression of all specs that are not run.
    fn skip(&self) -> String {
        let left_out = self.left_out.iter().map(|one| &one.specs);
        let all = left_out.chain(self.beyond_this_machine());
        all.map(|text| literal(text)).collect::<Vec<_>>().join("|")
    }
}

/// Starts a cluster, runs the suite on it, and prints its output.
pub(crate) fn run() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(2).collect();
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let (plan, report) = runtime.expect("a runtime can be built").block_on(async {
        let cluster = Cluster::start().await;
        // Some specs move a pod.
        cluster.second().await;
        let plan = Plan::read();
        let start = prepare(&cluster, &plan, &focus(&plan, &names)).await;
        let mut ginkgo = start.command().spawn().expect("ginkgo was built");
        // It has a timeout.
        ginkgo.wait().await.expect("a child can be waited for");
        let report = report(&cluster);
        keep(&cluster);
        (plan, report)
    });
    println!("{report}");
    let mut problems: Vec<String> = report.failed().map(|spec| spec.name()).collect();
    if names.is_empty() {
        let passed = report.passed().count();
        if passed < MIN_PASSED {
            problems.push(format!("{passed} passed, at least {MIN_PASSED} are required"));
        }
        problems.extend(report::difference(&report, &plan));
    }
    for text in plan.beyond_this_machine() {
        println!("SKIPPED: {text}, because this machine withholds CAP_SYS_RESOURCE");
    }
    for problem in &problems {
        println!("upstream: {problem}");
    }
    ExitCode::from(u8::from(!problems.is_empty()))
}

/// The chosen specs pass, and none of them is skipped.
pub(crate) async fn run_selected(scene: &Scene<'_>) {
    let cluster = scene.cluster;
    let plan = Plan::read();
    let names: Vec<String> = plan.chosen.iter().map(|text| literal(text)).collect();
    let start = prepare(cluster, &plan, &focus(&plan, &names)).await;
    let mut ginkgo = start.spawn();
    until("the chosen specs have ended", TIMEOUT, async || {
        ginkgo.is_over().then_some(())
    })
    .await;
    let report = report(cluster);
    assert_eq!(report.failed().count(), 0, "{report}");
    let passed: Vec<String> = report.passed().map(Spec::name).collect();
    let is_missing = |text: &&String| !passed.iter().any(|name| name.contains(*text));
    let missing: Vec<&String> = plan.chosen.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "not run: {missing:?}\n{report}");
}

/// The regular expression of all specs, or of those with one of these parts in their names.
fn focus(plan: &Plan, names: &[String]) -> String {
    if names.is_empty() {
        return plan.focus.clone();
    }
    format!("{}.*({})", plan.focus, names.join("|"))
}

/// The regular expression of this text.
fn literal(text: &str) -> String {
    let escaped = text.chars().map(|c| match c.is_ascii_punctuation() {
        true => format!("\\{c}"),
        false => c.to_string(),
    });
    escaped.collect()
}

/// Imports the images of the suite's pods, and returns the command.
async fn prepare(cluster: &Cluster, plan: &Plan, focus: &str) -> Start {
    let (archive, mut nodes) = (images::upstream().await, 0);
    for worker in cluster.workers() {
        worker.import(&archive).await;
        nodes += 1;
    }
    let directory = directory(cluster);
    let bin = stay::bin(&cluster.worker.directory);
    let path = std::env::var("PATH").expect("PATH is set");
    let kubeconfig = stay::kubeconfig(cluster, &cluster.plane.server);
    tied(&built("ginkgo"))
        .args([
            &format!("--procs={}", plan.at_once),
            &format!("--focus={focus}"),
            &format!("--skip={}", plan.skip()),
            "--timeout=2h",
            "--no-color",
            "--silence-skips",
            "--json-report=report.json",
            &format!("--output-dir={}", directory.display()),
        ])
        .args([built("upstream.test").display().to_string().as_str(), "--"])
        .args([
            &format!("--storage.testdriver={}", file("driver.yaml").display()),
            &format!("--kubeconfig={kubeconfig}"),
            &format!("--kubelet-root-dir={}", cluster.worker.kubelet_dir().display()),
            "--provider=local",
            &format!("--num-nodes={nodes}"),
            &format!("--e2e-output-dir={}", directory.display()),
        ])
        .env("PATH", format!("{}:{path}", bin.display()))
        .env("HOME", &directory)
}

fn directory(cluster: &Cluster) -> PathBuf {
    cluster.plane.directory(WORD)
}

fn report(cluster: &Cluster) -> Report {
    Report::read(&directory(cluster).join("report.json"))
}

/// Keeps the report in the target directory.
fn keep(cluster: &Cluster) {
    let report = directory(cluster).join("report.json");
    std::fs::copy(report, target().join("e2e/upstream.json")).expect("the directory exists");
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/e2e/upstream")
        .join(name)
}

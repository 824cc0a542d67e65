//! Kubernetes' own storage suite for a driver, External.Storage, as its authors wrote it, on this cluster. What it is
//! told of the driver is in `upstream/driver.yaml`, what of it is run in `upstream/run.yaml`.

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

/// The argument that asks for all of it. Others after it are regular expressions: only specs of such names are run.
pub(crate) const WORD: &str = "upstream";
/// Fewer that pass mean that the suite was not told what the driver can.
const LEAST: usize = 120;
/// Longer than the chosen specs take on a busy machine.
const LONGEST: Duration = Duration::from_mins(10);

/// What of the suite is run.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Plan {
    /// What the names of all specs for a driver have in them.
    pub(crate) focus: String,
    pub(crate) left_out: Vec<LeftOut>,
    grow_mounted_ext4: Vec<String>,
    chosen: Vec<String>,
    at_once: u32,
}

/// Specs that cannot run here.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LeftOut {
    /// What their names have in them.
    pub(crate) specs: String,
    pub(crate) because: String,
}

impl Plan {
    fn read() -> Self {
        let text = std::fs::read_to_string(file("run.yaml")).expect("it is part of the sources");
        serde_saphyr::from_str(&text).expect("it is such a file")
    }

    /// What the names of specs have in them that this machine cannot run, and others can.
    pub(crate) fn beyond_this_machine(&self) -> &[String] {
        if can_resize_mounted_ext() {
            &[]
        } else {
            &self.grow_mounted_ext4
        }
    }

    /// The regular expression of all that is not run.
    fn skip(&self) -> String {
        let left_out = self.left_out.iter().map(|one| &one.specs);
        let all = left_out.chain(self.beyond_this_machine());
        all.map(|text| literal(text)).collect::<Vec<_>>().join("|")
    }
}

/// Starts a cluster and runs the suite on it, for a person who watches it.
pub(crate) fn run() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(2).collect();
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let (plan, report) = runtime.expect("a runtime can be made").block_on(async {
        let cluster = Cluster::start().await;
        // Some specs move a pod.
        cluster.grow().await;
        let plan = Plan::read();
        let start = prepare(&cluster, &plan, &focus(&plan, &names)).await;
        let mut ginkgo = start.command().spawn().expect("ginkgo was built");
        // It ends by itself: it was given a time.
        ginkgo.wait().await.expect("a child can be waited for");
        let report = report(&cluster);
        keep(&cluster);
        (plan, report)
    });
    println!("{report}");
    let mut complaints: Vec<String> = report.failed().map(|spec| spec.name()).collect();
    if names.is_empty() {
        let passed = report.passed().count();
        if passed < LEAST {
            complaints.push(format!("{passed} passed, {LEAST} are wanted at least"));
        }
        complaints.extend(report::compared(&report, &plan));
    }
    for text in plan.beyond_this_machine() {
        println!("SKIPPED: {text}, because this machine withholds CAP_SYS_RESOURCE");
    }
    for complaint in &complaints {
        println!("upstream: {complaint}");
    }
    if complaints.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The specs that are run with all other scenarios pass, and none of them is skipped.
pub(crate) async fn run_selected(scene: &Scene<'_>) {
    let cluster = scene.cluster;
    let plan = Plan::read();
    let names: Vec<String> = plan.chosen.iter().map(|text| literal(text)).collect();
    let start = prepare(cluster, &plan, &focus(&plan, &names)).await;
    let mut ginkgo = start.spawn();
    until("the chosen specs have run", LONGEST, async || {
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

/// The regular expression of all specs, or of those that have one of these in their names.
fn focus(plan: &Plan, names: &[String]) -> String {
    if names.is_empty() {
        return plan.focus.clone();
    }
    format!("{}.*({})", plan.focus, names.join("|"))
}

/// The regular expression of this text.
fn literal(text: &str) -> String {
    let escaped = text.chars().map(|c| {
        if c.is_ascii_punctuation() {
            format!("\\{c}")
        } else {
            c.to_string()
        }
    });
    escaped.collect()
}

/// Brings the images in that the suite's pods want; how to start it.
async fn prepare(cluster: &Cluster, plan: &Plan, focus: &str) -> Start {
    let (archive, mut nodes) = (images::upstream().await, 0);
    for worker in cluster.workers() {
        worker.import(&archive).await;
        nodes += 1;
    }
    let directory = directory(cluster);
    let bin = stay::bin(&cluster.worker.directory);
    let path = std::env::var("PATH").expect("there is one");
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

/// Leaves the report for whoever wants to know more.
fn keep(cluster: &Cluster) {
    let report = directory(cluster).join("report.json");
    std::fs::copy(report, target().join("e2e/upstream.json")).expect("the directory is there");
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/e2e/upstream")
        .join(name)
}

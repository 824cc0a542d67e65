//! The driver in a real Kubernetes with a real kubelet: containerd runs the driver's own image, installed by its own
//! chart, and pods use its volumes, which are loop devices behind the fake cloud.
//!
//! All scenarios share one cluster; those that disturb others come after the others, one at a time. With the argument
//! `stay` the cluster is there for a person, until Ctrl-C; with `figure` it is measured, with `upstream` Kubernetes'
//! own storage suite runs on it. Needs what `scripts/setup cluster` brings, and root.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "other suites use the rest")]
mod common;

// The control plane is that of tests/cluster.
#[path = "../cluster/address.rs"]
mod address;
#[path = "../cluster/api.rs"]
#[expect(dead_code, reason = "tests/cluster uses the rest")]
mod api;
#[path = "../cluster/cloud.rs"]
#[expect(dead_code, reason = "tests/cluster uses the rest")]
mod cloud;
#[path = "../cluster/helm.rs"]
#[expect(dead_code, reason = "the suite without kubelets uses the rest")]
mod helm;
#[path = "../cluster/keys.rs"]
mod keys;
#[path = "../cluster/log_lines.rs"]
mod log_lines;
#[path = "../cluster/namespace.rs"]
mod namespace;
#[path = "../cluster/path.rs"]
#[expect(dead_code, reason = "tests/cluster uses the rest")]
mod path;
#[path = "../cluster/plane.rs"]
#[expect(dead_code, reason = "tests/cluster uses the rest")]
mod plane;
#[path = "../cluster/program.rs"]
#[expect(dead_code, reason = "tests/cluster uses the rest")]
mod program;
#[path = "../cluster/suite.rs"]
mod suite;
#[path = "../cluster/wait.rs"]
mod wait;

// The tutorial is read as tests/docs reads pages.
#[path = "../docs/page.rs"]
#[expect(dead_code, reason = "tests/docs uses the rest")]
mod page;
#[path = "../docs/script.rs"]
mod script;

mod cluster;
mod command;
mod door;
mod figure;
mod images;
mod install;
mod needs;
mod network;
mod outside;
mod report;
mod scene;
mod site;
mod stay;
mod upstream;
mod worker;

mod disturb;
mod drained;
mod keep;
mod moved;
mod share;
mod stuck;
mod tutorial;

fn main() -> std::process::ExitCode {
    if std::env::var_os(outside::INSIDE).is_none() {
        return outside::enter();
    }
    match std::env::args().nth(1).as_deref() {
        Some(stay::WORD) => return stay::run(),
        Some(figure::WORD) => return figure::run(),
        Some(upstream::WORD) => return upstream::run(),
        _ => {}
    }
    let together = suite::scenarios![
        "database" => keep::database,
        "block" => keep::block,
        "tutorial" => tutorial::as_written,
        "read-only" => share::read_only,
        "group" => share::group,
        "two-pods" => share::two_pods,
        "once" => share::once,
    ];
    let alone = suite::scenarios![
        // Its pod is in the release's namespace, which the tutorial shows.
        "helm-test" => keep::helm_test,
        "stuck" => stuck::the_cause_is_named,
        "upstream" => upstream::run_selected,
        "kubelet" => disturb::kubelet_restarted,
        "upgraded" => disturb::upgraded,
        "killed" => disturb::killed_in_mid_stage,
        "moved" => moved::to_another_node,
        "drained" => drained::its_pod_starts_elsewhere,
        "uninstalled" => disturb::uninstalled,
    ];
    suite::run(vec![together, alone])
}
